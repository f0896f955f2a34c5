#include "weft/llm/answer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "weft/trust/random.h"

namespace weft::llm {
namespace {

std::string run(const std::vector<std::string>& stops, const std::vector<std::string>& pieces) {
  StopTexts texts(stops);
  std::string all;
  for (const std::string& piece : pieces) all += texts.add(piece) + "|";
  return all + texts.finish() + (texts.found() ? "!" : "");
}

TEST(StopTexts, HoldsBackWhatMayBeOne) {
  EXPECT_EQ(run({"END"}, {"aE", "N", "x", "EN", "D", "b"}), "a||ENx||||!");
  EXPECT_EQ(run({"END"}, {"a", "EN"}), "a||EN");
  EXPECT_EQ(run({"ab", "abc", "bcd"}, {"xa", "y"}), "x|ay|");
  EXPECT_EQ(run({"aab"}, {"aaa", "b"}), "a||!");
  EXPECT_EQ(run({"\n"}, {"one\ntwo"}), "one|!");
  EXPECT_EQ(run({}, {"a", ""}), "a||");
  EXPECT_EQ(run({""}, {"a"}), "a|");
  EXPECT_EQ(run({"日本"}, {"日", "x"}), "|日x|");
}

TEST(StopTexts, GivesWhatIsBeforeTheFirstHoweverItIsCut) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (int64_t k = random.below(30); k > 0; --k) text += static_cast<char>('a' + random.below(2));
    std::vector<std::string> stops(3);
    bool found = false;
    for (std::string& stop : stops) {
      for (int64_t k = 1 + random.below(5); k > 0; --k)
        stop += static_cast<char>('a' + random.below(2));
      found |= text.find(stop) != std::string::npos;
    }
    StopTexts texts(stops);
    std::string given;
    for (size_t at = 0; at < text.size() && !texts.found();) {
      const size_t size = 1 + static_cast<size_t>(random.below(4));
      given += texts.add(text.substr(at, size));
      at += size;
    }
    given += texts.finish();
    ASSERT_EQ(texts.found(), found);
    ASSERT_TRUE(text.starts_with(given));
    for (const std::string& stop : stops) ASSERT_EQ(given.find(stop), std::string::npos);
    if (!found) {
      ASSERT_EQ(given, text);
      continue;
    }
    ASSERT_TRUE(std::any_of(stops.begin(), stops.end(), [&](const std::string& stop) {
      return text.substr(given.size()).starts_with(stop);
    }));
  }
}

// Llama 2's way: a space in front of all words, and none where a text begins.
TEST(Answer, GoesOnInATextOrBeginsOne) {
  const auto tokenizer = text::Tokenizer::from_json(R"({
      "model": {"type": "BPE", "vocab": {"▁a": 0, "▁b": 1, "c": 2, "<s>": 3}, "merges": []},
      "added_tokens": [{"id": 3, "content": "<s>", "special": true, "single_word": false,
                        "lstrip": false, "rstrip": false, "normalized": false}],
      "decoder": {"type": "Sequence", "decoders": [
          {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"},
          {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}})",
                                                    "words");
  const auto answered = [&](std::vector<text::TokenId> before) {
    Answer answer(tokenizer, {}, before);
    std::string all;
    for (const text::TokenId id : {1, 2, 0}) all += answer.add(id);
    return all + answer.finish();
  };
  EXPECT_EQ(answered({}), "bc a");
  EXPECT_EQ(answered({3, 0}), " bc a");
  EXPECT_EQ(answered({3}), "bc a");
}

}  // namespace
}  // namespace weft::llm
