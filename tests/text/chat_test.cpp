#include "weft/text/chat.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"

namespace weft::text {
namespace {

const std::vector<ChatMessage> kChat = {{"system", "Be nice."}, {"user", "Hi \"you\"\n"}};

TEST(ChatTemplate, IsChatMlWhereThereIsNone) {
  const ChatTemplate chat("", "", "");
  EXPECT_EQ(chat.prompt(kChat),
            "<|im_start|>system\nBe nice.<|im_end|>\n<|im_start|>user\nHi \"you\"\n<|im_end|>\n"
            "<|im_start|>assistant\n");
  ChatOptions options;
  options.add_generation_prompt = false;
  EXPECT_EQ(chat.prompt(std::vector<ChatMessage>{{"user", "x"}}, options),
            "<|im_start|>user\nx<|im_end|>\n");
}

TEST(ChatTemplate, ChatMlHasTools) {
  ChatMessage call{"assistant", "Well."};
  call.tool_calls = {{"c1", "f", R"({"x": 1})"}, {"c2", "g", "no json"}};
  ChatMessage result{"tool", "2"};
  ChatOptions options;
  options.add_generation_prompt = false;
  options.tools = R"([{"name":"f"}, {"name":"g"}])";
  const ChatTemplate chat("", "", "");
  const std::string tools =
      "# Tools\n\nThese functions can be called:\n<tools>\n{\"name\": \"f\"}\n{\"name\": \"g\"}\n"
      "</tools>\n\nTo call one, write a JSON object with its name and arguments in tags:\n"
      "<tool_call>\n{\"name\": \"NAME\", \"arguments\": {}}\n</tool_call><|im_end|>\n";
  const std::string calls =
      "<|im_start|>assistant\nWell.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n"
      "</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": no json}\n</tool_call>"
      "<|im_end|>\n<|im_start|>user\n<tool_response>\n2\n</tool_response><|im_end|>\n";
  EXPECT_EQ(chat.prompt(std::vector<ChatMessage>{{"system", "Be nice."}, call, result}, options),
            "<|im_start|>system\nBe nice.\n\n" + tools + calls);
  EXPECT_EQ(chat.prompt(std::vector<ChatMessage>{call, result}, options),
            "<|im_start|>system\n" + tools + calls);
  EXPECT_EQ(chat.prompt("[]", options), "<|im_start|>system\n" + tools);
  EXPECT_EQ(chat.prompt("[]"), "<|im_start|>assistant\n");
}

TEST(ChatTemplate, KnowsTokensToolsDocumentsAndVariables) {
  const ChatTemplate chat(
      "{{ bos_token }}{{ eos_token }}{{ tools[0].name }}{{ documents | length }}{{ thinking }}",
      "<s>", "</s>");
  ChatOptions options;
  options.tools = R"([{"name": "f"}])";
  options.documents = "[1, 2]";
  options.variables = R"( {"thinking": true, "bos_token": "B"} )";
  EXPECT_EQ(chat.prompt(kChat, options), "B</s>f2True");
  EXPECT_EQ(chat.prompt("[]", {.tools = "[{\"name\": 1}]", .documents = "[]", .variables = "{}"}),
            "<s></s>10");
}

TEST(ChatTemplate, GivesCallsAsDicts) {
  ChatMessage call{"assistant", ""};
  call.tool_calls = {{"c1", "f", R"({"x": 1})"}, {"c2", "g", "no json"}};
  call.reasoning = "hm";
  ChatMessage result{"tool", "2"};
  result.tool_call_id = "c1";
  const ChatTemplate chat(
      "{% for m in messages %}{{ m.reasoning_content }}{% for c in m.tool_calls %}{{ c.id }}"
      "{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{{ m.tool_call_id }}"
      "{% endfor %}",
      "", "");
  EXPECT_EQ(chat.prompt(std::vector<ChatMessage>{call, result}), "hmc1f{\"x\": 1}c2g\"no json\"c1");
}

TEST(ChatTemplate, RefusesWhatIsNoJson) {
  const ChatTemplate chat("{{ x }}", "", "");
  for (const char* bad : {"[", "[],\"x\":[]", "", "[] x"})
    EXPECT_THROW(chat.prompt(bad), Error) << bad;
  for (const char* bad : {"[]", "{", "{} {}", "1"})
    EXPECT_THROW(chat.prompt(kChat, {.variables = bad}), Error) << bad;
  EXPECT_THROW(chat.prompt(kChat, {.tools = "[}"}), Error);
}

}  // namespace
}  // namespace weft::text
