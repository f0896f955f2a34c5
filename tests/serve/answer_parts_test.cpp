// Thoughts, words and calls are told apart, wherever the text is cut.
#include "weft/serve/answer_parts.h"

#include <gtest/gtest.h>

namespace weft::serve {
namespace {

struct Row {
  const char *answer, *reasoning, *content, *calls;
};

const Row kRows[] = {
    {"plain", "", "plain", ""},
    {"", "", "", ""},
    {"  \n", "", "  \n", ""},
    {"<think>a\nb</think>\n\nc", "a\nb", "c", ""},
    {"\n<think>\na</think>c", "a", "c", ""},
    {"<think>never ends", "never ends", "", ""},
    {"a <think> b", "", "a <think> b", ""},
    {"<thin air", "", "<thin air", ""},
    {"<tool_call>{\"name\": \"f\", \"arguments\": {\"x\": 1}}</tool_call>", "", "", "f{\"x\":1}"},
    {"<tool_call>\n{\"name\": \"f\"}\n</tool_call>\n<tool_call>{\"name\": \"g\", \"arguments\": {}}"
     "</tool_call>",
     "", "", "f{}g{}"},
    {"See: <tool_call>{\"name\": \"f\"}</tool_call> done", "", "See: done", "f{}"},
    {"<tool_call>{\"name\": \"f\"}", "", "", "f{}"},
    {"<tool_call>{\"name\": \"h\"}</tool_call>", "", "<tool_call>{\"name\": \"h\"}</tool_call>",
     ""},
    {"<tool_call>no json</tool_call>", "", "<tool_call>no json</tool_call>", ""},
    {"<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>", "",
     "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>", ""},
    {"<think>x</think><tool_call>{\"name\": \"f\"}</tool_call>", "x", "", "f{}"},
    {"{\"name\": \"f\", \"parameters\": {\"s\": \"}\\\"\"}}", "", "", "f{\"s\":\"}\\\"\"}"},
    {" {\"name\": \"f\"}; {\"name\": \"g\"}\n", "", "", "f{}g{}"},
    {"{\"name\": \"f\"} and more", "", "{\"name\": \"f\"} and more", ""},
    {"{\"name\": \"h\"}", "", "{\"name\": \"h\"}", ""},
    {"{\"answer\": 42}", "", "{\"answer\": 42}", ""},
    {"{{{", "", "{{{", ""},
};

struct Told {
  std::string reasoning, content, calls;
};

void add(Told& told, const std::vector<AnswerPart>& parts) {
  for (const AnswerPart& part : parts) {
    if (part.kind == AnswerPart::Kind::Content) told.content += part.text;
    if (part.kind == AnswerPart::Kind::Reasoning) told.reasoning += part.text;
    if (part.kind == AnswerPart::Kind::Call) told.calls += part.call.name + part.call.arguments;
  }
}

TEST(AnswerParts, WhereverTheTextIsCut) {
  for (const Row& row : kRows) {
    const std::string answer = row.answer;
    for (size_t size = 1; size <= answer.size() + 1; ++size) {
      AnswerParts parts({"f", "g"});
      Told told;
      for (size_t at = 0; at < answer.size(); at += size)
        add(told, parts.feed(answer.substr(at, size)));
      add(told, parts.finish());
      EXPECT_EQ(told.reasoning, row.reasoning) << answer << " by " << size;
      EXPECT_EQ(told.content, row.content) << answer << " by " << size;
      EXPECT_EQ(told.calls, row.calls) << answer << " by " << size;
      EXPECT_EQ(parts.has_calls(), row.calls[0] != '\0');
    }
  }
}

TEST(AnswerParts, WithoutToolsNothingIsACall) {
  AnswerParts parts;
  Told told;
  add(told, parts.feed("<tool_call>{\"name\": \"f\"}</tool_call>"));
  EXPECT_EQ(told.content, "<tool_call>{\"name\": \"f\"}</tool_call>");  // and at once
  AnswerParts bare;
  add(told = {}, bare.feed("{\"name\""));
  EXPECT_EQ(told.content, "{\"name\"");
}

TEST(AnswerParts, ACallThatThePromptBegan) {
  AnswerParts parts({"f"}, "<tool_call>\n{\"name\": \"f\", \"arguments\": ");
  Told told;
  add(told, parts.feed("{\"x\": 2}}\n</tool_call>"));
  EXPECT_EQ(told.calls, "f{\"x\":2}");
}

}  // namespace
}  // namespace weft::serve
