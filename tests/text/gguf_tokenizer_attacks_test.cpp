// GGUF files whose tokenizers lie, of each of the four models: an Error for each.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/text/gguf_writer.h"
#include "weft/base/error.h"
#include "weft/text/gguf_tokenizer.h"
#include "weft/text/tokenizer.h"

namespace weft::text {
namespace {

using Texts = std::vector<std::string>;

void expect_refused(const std::function<void()>& read, std::string_view code,
                    std::string_view problem) {
  try {
    read();
    ADD_FAILURE() << "not refused: " << problem;
  } catch (const InternalError& error) {
    ADD_FAILURE() << error.what();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    EXPECT_NE(error.message().find(problem), std::string::npos)
        << error.message() << "\nwithout: " << problem;
  }
}

/// As models of sentences have it.
GgufWriter bert() {
  GgufWriter w;
  w.text("model", "bert");
  w.texts("tokens", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁un", "able"});
  w.numbers<int32_t>("token_type", {3, 2, 3, 3, 1, 1});
  w.number<uint32_t>("cls_token_id", 2);
  w.number<uint32_t>("seperator_token_id", 3);
  return w;
}
GgufWriter unigram() {
  GgufWriter w;
  w.text("model", "t5");
  w.texts("tokens", {"<unk>", "</s>", "▁", "a"});
  w.numbers<float>("scores", {0, 0, -1, -2});
  w.numbers<int32_t>("token_type", {2, 3, 1, 1});
  w.number<uint32_t>("eos_token_id", 1);
  w.number<uint32_t>("unknown_token_id", 0);
  return w;
}
GgufWriter sentence_pieces() {
  GgufWriter w = unigram();
  w.text("model", "llama");
  return w;
}
GgufWriter byte_pairs() {
  GgufWriter w;
  w.text("model", "gpt2");
  w.text("pre", "gpt-2");
  w.texts("tokens", {"a", "b", "ab"});
  w.texts("merges", {"a b"});
  return w;
}

/// Of a good file with one change.
void refused(GgufWriter w, const std::function<void(GgufWriter&)>& change, std::string_view problem,
             std::string_view code = "tokenizer.gguf") {
  change(w);
  expect_refused([&] { (void)Tokenizer::from_gguf(w.content, "m.gguf"); }, code, problem);
}

TEST(GgufTokenizerAttacks, TheseFilesAreGood) {
  for (const GgufWriter& w : {bert(), unigram(), sentence_pieces(), byte_pairs()}) {
    EXPECT_FALSE(Tokenizer::from_gguf(w.content).encode("a").empty());
    EXPECT_FALSE(tokenizer_files(w.content).tokenizer.empty());
  }
}

TEST(GgufTokenizerAttacks, NoTokenizer) {
  refused(bert(), [](auto& w) { w.erase("model"); }, "the file has no tokenizer");
  refused(
      bert(), [](auto& w) { w.text("model", "rwkv"); }, "is 'rwkv', not gpt2, llama, bert or t5");
  refused(bert(), [](auto& w) { w.template number<uint32_t>("model", 4); }, "model is no text");
}

TEST(GgufTokenizerAttacks, TokensAreTexts) {
  for (const GgufWriter& good : {bert(), unigram(), sentence_pieces(), byte_pairs()}) {
    refused(good, [](auto& w) { w.erase("tokens"); }, "tokens is no list of texts");
    refused(good, [](auto& w) { w.text("tokens", "a"); }, "tokens is no list of texts");
    refused(
        good, [](auto& w) { w.template numbers<int32_t>("tokens", {1, 2}); },
        "tokens is no list of texts");
    refused(
        good, [](auto& w) { w.template numbers<int32_t>("token_type", {1}); },
        "token_type has 1 numbers for");
  }
}

TEST(GgufTokenizerAttacks, RolesAreTokens) {
  for (const GgufWriter& good : {bert(), unigram(), sentence_pieces(), byte_pairs()})
    for (const char* role : {"cls_token_id", "seperator_token_id", "padding_token_id",
                             "mask_token_id", "bos_token_id", "eos_token_id", "eot_token_id"}) {
      const std::string problem = role + std::string(" is no token: ");
      refused(good, [&](auto& w) { w.template number<uint32_t>(role, 6); }, problem + "6 of");
      refused(good, [&](auto& w) { w.template number<int64_t>(role, -1); }, problem + "-1 of");
      refused(good, [&](auto& w) { w.template number<uint64_t>(role, UINT64_MAX); }, problem);
      refused(good, [&](auto& w) { w.text(role, "[CLS]"); }, problem);
    }
  for (const GgufWriter& good : {bert(), unigram(), sentence_pieces()})
    refused(
        good, [&](auto& w) { w.template number<uint32_t>("unknown_token_id", 1 << 30); },
        "unknown_token_id is no token");
}

TEST(GgufTokenizerAttacks, WordPieces) {
  refused(
      bert(),
      [](auto& w) { w.texts("tokens", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁un", "▁un"}); },
      "the token 'un' is there twice, with the ids 4 and 5", "tokenizer.vocab");
  refused(
      bert(), [](auto& w) { w.texts("tokens", {"[PAD]", "[X]", "[CLS]", "[SEP]", "▁un", "able"}); },
      "the unknown token '[UNK]' is not in the vocabulary", "tokenizer.model");
  // Without what is put around a text nothing is.
  GgufWriter w = bert();
  w.erase("cls_token_id");
  w.erase("seperator_token_id");
  EXPECT_EQ(Tokenizer::from_gguf(w.content).encode("unable"), (std::vector<TokenId>{4, 5}));
}

TEST(GgufTokenizerAttacks, Unigrams) {
  refused(unigram(), [](auto& w) { w.erase("scores"); }, "scores is missing");
  refused(
      unigram(), [](auto& w) { w.template numbers<float>("scores", {1}); },
      "scores has 1 numbers for 4 tokens");
  refused(unigram(), [](auto& w) { w.text("scores", "1"); }, "scores has");
  refused(
      unigram(), [](auto& w) { w.template numbers<float>("scores", {0, 0, NAN, -1}); },
      "scores has a score that is no number");
  refused(
      unigram(), [](auto& w) { w.template numbers<float>("scores", {0, 0, INFINITY, -1}); },
      "scores has a score that is not finite");
  refused(
      unigram(), [](auto& w) { w.texts("tokens", {"<unk>", "</s>", "a", "a"}); },
      "the token 'a' is there twice", "tokenizer.vocab");
  refused(
      unigram(), [](auto& w) { w.texts("tokens", {"<unk>", "</s>", std::string(2000, 'x'), "a"}); },
      "a token of 2000 bytes", "tokenizer.model");
  refused(
      unigram(),
      [](auto& w) {
        w.template numbers<uint8_t>("precompiled_charsmap", {255, 255, 255, 255, 1, 2, 3, 4});
      },
      "", "tokenizer.charsmap");
}

TEST(GgufTokenizerAttacks, SentencePieces) {
  refused(sentence_pieces(), [](auto& w) { w.erase("scores"); }, "scores is missing");
  // Of which only the order counts.
  GgufWriter ordered = sentence_pieces();
  ordered.numbers<float>("scores", {0, 0, -INFINITY, -1});
  EXPECT_EQ(Tokenizer::from_gguf(ordered.content).encode("a").back(), 3);
  refused(
      sentence_pieces(), [](auto& w) { w.template numbers<float>("scores", {0, 0, NAN, -1}); },
      "scores has a score that is no number");
  refused(
      sentence_pieces(),
      [](auto& w) { w.texts("tokens", {"<unk>", "</s>", std::string(2000, 'x'), "a"}); },
      "tokens has a token of more than 1024 bytes");
}

TEST(GgufTokenizerAttacks, BytePairs) {
  refused(
      byte_pairs(), [](auto& w) { w.text("pre", "mine"); },
      "pre names a way to cut words that is not known, 'mine'");
  refused(byte_pairs(), [](auto& w) { w.erase("merges"); }, "merges is no list of texts");
  for (const char* merge : {"a c", "b a", "ab", "", " ", "a  b"})
    refused(
        byte_pairs(), [&](auto& w) { w.texts("merges", {merge}); },
        "merges has a merge of what is not in the vocabulary");
}

TEST(GgufTokenizerAttacks, AWholeTokenizer) {
  const auto whole = [](GgufValue value, std::string_view code, std::string_view problem) {
    GgufWriter w = bert();
    w.content.metadata.emplace_back("tokenizer.huggingface.json", std::move(value));
    expect_refused([&] { (void)Tokenizer::from_gguf(w.content, "m.gguf"); }, code, problem);
  };
  whole(GgufValue::of_number<uint32_t>(7), "tokenizer.gguf",
        "tokenizer.huggingface.json is no text");
  whole(GgufValue::of("{"), "json.format", "m.gguf");
  whole(GgufValue::of(R"({"model": {"type": "WordPiece"}})"), "tokenizer.json",
        "no object of tokens and ids");
}

TEST(GgufTokenizerAttacks, FoldersOfThem) {
  const auto no_folder = [](GgufWriter w, const std::function<void(GgufWriter&)>& change,
                            std::string_view problem) {
    change(w);
    expect_refused([&] { (void)tokenizer_files(w.content, "m.gguf"); }, "tokenizer.gguf", problem);
  };
  no_folder(bert(), [](auto& w) { w.text("model", "rwkv"); }, "not gpt2, llama, bert or t5");
  no_folder(bert(), [](auto& w) { w.erase("tokens"); }, "tokens is no list of texts");
  no_folder(
      bert(), [](auto& w) { w.template number<int32_t>("cls_token_id", 99); },
      "cls_token_id is no token: 99 of 6");
  no_folder(unigram(), [](auto& w) { w.erase("scores"); }, "scores is missing");
  no_folder(
      unigram(), [](auto& w) { w.template numbers<float>("scores", {0, 0, -INFINITY, -1}); },
      "scores has a score that is not finite");
  no_folder(byte_pairs(), [](auto& w) { w.erase("merges"); }, "merges is no list of texts");
  no_folder(
      bert(),
      [](auto& w) {
        w.content.metadata.emplace_back("tokenizer.huggingface.json",
                                        GgufValue::of_number<uint32_t>(7));
      },
      "tokenizer.huggingface.json is no text");
}

}  // namespace
}  // namespace weft::text
