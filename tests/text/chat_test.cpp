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
