// What the package tokenizers learns from the same texts is tests/python/test_text.py.
#include "weft/text/train_bpe.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/text/tokenizer.h"

namespace weft::text {
namespace {

std::string trained(BpeTraining options, std::initializer_list<std::string_view> texts) {
  BpeTrainer trainer(std::move(options));
  for (const std::string_view text : texts) trainer.add(text);
  return trainer.train();
}

std::string error_of(BpeTraining options) {
  try {
    BpeTrainer trainer(std::move(options));
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(BpeTrainer, MergesWhatIsSeenMostOften) {
  const Tokenizer t =
      Tokenizer::from_json(trained({.vocab_size = 259}, {"low low low lot", "lower"}));
  EXPECT_EQ(t.vocab_size(), 259u);  // l o: 5, lo w: 4, then space lo: 3 of lot and two low
  EXPECT_TRUE(t.token_to_id("lo").has_value());
  EXPECT_TRUE(t.token_to_id("low").has_value());
  EXPECT_EQ(t.encode("low").size(), 1u);
}

TEST(BpeTrainer, EndsWherePairsAreRare) {
  const Tokenizer t = Tokenizer::from_json(trained({.vocab_size = 1000}, {"abab cd"}));
  EXPECT_EQ(t.vocab_size(), 257u);  // a b twice, everything else once
  EXPECT_EQ(Tokenizer::from_json(trained({.vocab_size = 1000}, {})).vocab_size(), 256u);
}

TEST(BpeTrainer, GivesTheSameInAnyOrder) {
  const BpeTraining options{.vocab_size = 300, .special_tokens = {"<|end|>"}};
  const std::string_view a = "the cat sat on the mat", b = "that hat, the bat; \xe2\x82\xac 12345";
  EXPECT_EQ(trained(options, {a, b, a}), trained(options, {b, a, a}));
}

TEST(BpeTrainer, MergesRunsFromTheLeft) {
  const Tokenizer t =
      Tokenizer::from_json(trained({.vocab_size = 258, .pattern = "a+"}, {"aaaaaaa", "aaaaa"}));
  EXPECT_EQ(t.decode(t.encode("aaaaaaa")), "aaaaaaa");
  EXPECT_EQ(t.encode("aaaaaaa").size(), 3u);  // aaaa aa a
}

TEST(BpeTrainer, AnyBytesComeBack) {
  const Tokenizer t = Tokenizer::from_json(trained(
      {.vocab_size = 280, .special_tokens = {"<|end|>"}}, {"\xff\xfe\0z", "\xf0\x9f\x98\x80"}));
  EXPECT_EQ(t.decode(t.encode("\xf0\x9f\x98\x80 \xc3\xa9\t\n")), "\xf0\x9f\x98\x80 \xc3\xa9\t\n");
  EXPECT_EQ(t.encode("a<|end|>").back(), 0);
}

TEST(BpeTrainer, SaysWhatIsWrong) {
  EXPECT_NE(error_of({.vocab_size = 256, .special_tokens = {"<s>"}})
                .find("a vocabulary of 256 tokens, but all bytes and the special tokens are 257"),
            std::string::npos);
  EXPECT_NE(error_of({.special_tokens = {"<s>", "<s>"}}).find("is empty or there twice"),
            std::string::npos);
  EXPECT_NE(error_of({.pattern = "("}).find("regex"), std::string::npos);
}

}  // namespace
}  // namespace weft::text
