#include "weft/llm/chat_session.h"

#include <gtest/gtest.h>

#include "tests/support/llm/fake_generator.h"
#include "weft/base/error.h"

namespace weft::llm {
namespace {

struct Conversation {
  FakeGenerator generator;
  ChatSession chat{generator};
  std::string heard;
  int steps_left = -1;

  std::string ask(std::string_view text) {
    heard.clear();
    const auto on_text = [&](std::string_view part) { heard += part; };
    const auto stop = [&] { return steps_left >= 0 && steps_left-- == 0; };
    return chat.ask(text, on_text, stop).text;
  }
};

TEST(ChatSession, AnswersAndRemembers) {
  Conversation c;
  c.chat.set_system("Be brief.");
  EXPECT_EQ(c.ask("Hé 日本"), "re: Hé 日本");
  EXPECT_EQ(c.heard, "re: Hé 日本");
  c.ask("two");
  EXPECT_EQ(c.generator.prompt(),
            "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHé 日本<|im_end|>\n"
            "<|im_start|>assistant\nre: Hé 日本<|im_end|>\n<|im_start|>user\ntwo<|im_end|>\n"
            "<|im_start|>assistant\n");
  c.chat.clear();
  c.ask("three");
  EXPECT_EQ(c.generator.prompt().find("two"), std::string::npos);
  EXPECT_NE(c.generator.prompt().find("Be brief."), std::string::npos);
}

TEST(ChatSession, KeepsWhatCameBeforeItWasStopped) {
  Conversation c;
  c.steps_left = 6;
  EXPECT_EQ(c.ask("LONG 1000"), "word w");
  EXPECT_EQ(c.chat.messages().back().content, "word w");
  EXPECT_TRUE(c.generator.idle());
}

TEST(ChatSession, GivesAnotherAnswer) {
  Conversation c;
  const auto nothing = [](std::string_view) {};
  const auto never = [] { return false; };
  EXPECT_THROW(c.chat.retry(nothing, never), Error);
  c.ask("one");
  const Request first = c.generator.last;
  c.chat.retry(nothing, never);
  EXPECT_EQ(c.chat.messages().size(), 2u);
  EXPECT_EQ(first.prompt, c.generator.last.prompt);
  EXPECT_NE(first.sampling.seed, c.generator.last.sampling.seed);
}

TEST(ChatSession, StaysAsItWasAfterAnError) {
  Conversation c;
  c.ask("one");
  EXPECT_THROW(c.ask("FAIL"), Error);
  EXPECT_EQ(c.chat.messages().size(), 2u);
  c.generator.options.context = 100;
  EXPECT_THROW(c.ask(std::string(200, 'x')), Error);
  EXPECT_EQ(c.chat.messages().size(), 2u);
}

TEST(ChatSession, ForgetsTheOldestWhereTheContextIsFull) {
  Conversation c;
  c.chat.set_system("S");
  c.generator.options.context = 400;
  for (int i = 0; i < 20; ++i) c.ask("question " + std::to_string(i));
  EXPECT_LT(c.generator.last.prompt.size(), 350u);
  EXPECT_NE(c.generator.prompt().find("system\nS<"), std::string::npos);
  EXPECT_NE(c.generator.prompt().find("question 18"), std::string::npos);
  EXPECT_EQ(c.generator.prompt().find("question 3<"), std::string::npos);
}

TEST(ChatSession, IsSavedAndLoaded) {
  Conversation c;
  c.chat.set_system("S \"q\"\n");
  c.ask("one");
  Conversation d;
  d.chat.load(c.chat.json(), "saved");
  EXPECT_EQ(d.chat.json(), c.chat.json());
  EXPECT_EQ(d.chat.system(), "S \"q\"\n");
  for (const char* bad : {"{}", "[1]", "[{\"role\": 1}]", "["}) {
    EXPECT_THROW(d.chat.load(bad, "bad"), Error) << bad;
    EXPECT_EQ(d.chat.json(), c.chat.json());
  }
}

}  // namespace
}  // namespace weft::llm
