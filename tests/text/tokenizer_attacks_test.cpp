// Files that lie: an Error of bounded time and memory for each.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "weft/base/error.h"
#include "weft/text/tokenizer.h"

namespace weft::text {
namespace {

void expect_refused(const std::string& json, std::string_view code, std::string_view problem) {
  try {
    Tokenizer::from_json(json, "t.json");
    ADD_FAILURE() << json.substr(0, 200);
  } catch (const InternalError& error) {
    ADD_FAILURE() << error.what();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << json.substr(0, 200);
    EXPECT_NE(error.message().find(problem), std::string::npos)
        << error.message() << "\nwithout: " << problem;
  }
}

std::string with(std::string_view rest) {
  return R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}, )" +
         std::string(rest) + "}";
}

TEST(TokenizerAttacks, VocabulariesAndMerges) {
  const auto bpe = [](std::string_view vocab, std::string_view merges) {
    return R"({"model": {"type": "BPE", "vocab": {)" + std::string(vocab) + R"(}, "merges": [)" +
           std::string(merges) + "]}}";
  };
  const std::string ab = R"("a": 0, "b": 1)";
  expect_refused(bpe(ab, R"("a b")"), "tokenizer.json",
                 "a merge with 'ab', which is not in the vocabulary");
  expect_refused(bpe(ab, R"("a x")"), "tokenizer.json",
                 "a merge with 'x', which is not in the vocabulary");
  expect_refused(bpe(ab, R"("a b c")"), "tokenizer.json", "a merge of other than two tokens");
  expect_refused(bpe(ab, R"(["a"])"), "tokenizer.json", "a merge of other than two tokens");
  expect_refused(bpe(ab, "7"), "tokenizer.json", "a number where a string has to be");
  expect_refused(bpe(R"("a": -1)", ""), "tokenizer.json",
                 "-1 where an integer from 0 to 2147483647 has to be");
  expect_refused(bpe(R"("a": 2147483648)", ""), "tokenizer.json", "has to be");
  expect_refused(bpe(R"("a": 1.5)", ""), "tokenizer.json", "has to be");
  expect_refused(bpe(R"("a": 0, "b": 0)", ""), "tokenizer.vocab",
                 "the tokens 'a' and 'b' have one id, 0");
  expect_refused(bpe(R"("a": 0, "a": 1)", ""), "tokenizer.vocab",
                 "the token 'a' is there twice, with the ids 0 and 1");
  // Ids with wide gaps are possible, and take no memory for what is between.
  const Tokenizer sparse =
      Tokenizer::from_json(bpe(R"("a": 0, "b": 2147483647, "c": 1000000000)", ""));
  EXPECT_EQ(sparse.encode("abc"), (std::vector<TokenId>{0, 2147483647, 1000000000}));
  EXPECT_EQ(sparse.id_to_token(2147483647), "b");
}

TEST(TokenizerAttacks, PartsThatAreWrong) {
  const std::pair<const char*, const char*> rows[] = {
      {R"("normalizer": {"type": "Nothing"})", "an unknown normalizer, Nothing"},
      {R"("normalizer": 7)", "a number where an object has to be"},
      {R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "!!"})", "no Base64"},
      {R"("pre_tokenizer": {"type": "Split", "pattern": {"String": " "}, "behavior": "Sideways"})",
       "an unknown word, Sideways"},
      {R"("pre_tokenizer": {"type": "Metaspace", "replacement": "ab"})",
       "a text that is not one character"},
      {R"("pre_tokenizer": {"type": "FixedLength", "length": 0})", "0 where an integer from 1"},
      {R"("decoder": {"type": "Strip", "content": "a", "start": -1, "stop": 0})",
       "-1 where an integer from 0"},
      {R"("post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}}], "pair": [], "special_tokens": {}})",
       "a special token without a row in special_tokens"},
      {R"("post_processor": {"type": "TemplateProcessing", "single": [{}], "pair": []})",
       "neither a Sequence nor a SpecialToken"},
      {R"("post_processor": {"type": "Sequence", "processors": [{"type": "TemplateProcessing"}, {"type": "TemplateProcessing"}]})",
       "the second of two steps that put tokens around a text"},
      {R"("added_tokens": [{"id": 1, "content": "x"}])", "the id of the model's token 'b'"},
      {R"("added_tokens": [{"id": -7, "content": "x"}])", "-7 where an integer from 0"},
      {R"("truncation": {"max_length": 4, "strategy": "Some"})", "an unknown strategy"},
      {R"("padding": {"strategy": {"Fixed": 99999999999}})", "99999999999 where an integer from 0"},
      {R"("normalizer": null, "normalizer": null)", "there twice"},
  };
  for (const auto& [rest, problem] : rows) expect_refused(with(rest), "tokenizer.json", problem);
  expect_refused(R"({"model": {"type": "Thing", "vocab": {}}})", "tokenizer.json",
                 "an unknown model, Thing");
  expect_refused("[]", "tokenizer.json", "no tokenizer.json: it has no \"model\"");
  expect_refused(R"({"model": {"type": "BPE"}})", "tokenizer.json", "no object of tokens and ids");
  expect_refused(with(R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a"}})"),
                 "regex.pattern", "missing closing parenthesis");
  expect_refused(
      with(R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"})"),
      "tokenizer.charsmap", "0 bytes of 2");
}

TEST(TokenizerAttacks, AddedTokens) {
  expect_refused(with(R"("added_tokens": [{"id": 7, "content": ""}])"), "tokenizer.added",
                 "the added token of id 7 is empty");
  expect_refused(with(R"("added_tokens": [{"id": 7, "content": "x"}, {"id": 8, "content": "x"}])"),
                 "tokenizer.added", "has the text or the id of another");
  expect_refused(with(R"("added_tokens": [{"id": 7, "content": "x"}, {"id": 7, "content": "y"}])"),
                 "tokenizer.added", "has the text or the id of another");
  expect_refused(
      with("\"added_tokens\": [{\"id\": 7, \"content\": \"" + std::string(2000, 'x') + "\"}]"),
      "tokenizer.added", "has 2000 bytes; at most 1024");
}

TEST(TokenizerAttacks, Models) {
  expect_refused(R"({"model": {"type": "BPE", "unk_token": "u", "vocab": {"a": 0}, "merges": []}})",
                 "tokenizer.model", "the unknown token 'u' is not in the vocabulary");
  expect_refused(R"({"model": {"type": "Unigram", "unk_id": 2, "vocab": [["a", 0]]}})",
                 "tokenizer.json", "past the end of the vocabulary");
  expect_refused(R"({"model": {"type": "Unigram", "vocab": [["a"]]}})", "tokenizer.json",
                 "no pair of a token and its score");
  expect_refused(
      "{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"" + std::string(2000, 'a') + "\", 0]]}}",
      "tokenizer.model", "a token of 2000 bytes; this model takes them up to 1024");
  const Tokenizer t = Tokenizer::from_json(
      R"({"model": {"type": "Unigram", "unk_id": null, "vocab": [["a", 0]]}})");
  try {
    t.encode("ab");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "'b' is not in the vocabulary, which has no unknown token; give it one");
  }
}

TEST(TokenizerAttacks, Nesting) {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += R"({"type": "Sequence", "normalizers": [)";
  expect_refused(R"({"normalizer": )" + deep, "json.format", "nesting deeper than 64");
  expect_refused(std::string(100000, '['), "json.format", "nesting deeper than 64");
}

TEST(TokenizerAttacks, Sequences) {
  std::string steps = R"({"type": "NFC"})";
  for (int i = 0; i < 50; ++i) steps += R"(, {"type": "NFC"})";
  expect_refused(with(R"("normalizer": {"type": "Sequence", "normalizers": [)" + steps + "]}"),
                 "tokenizer.json", "a sequence of more than 50 steps");
}

TEST(TokenizerAttacks, PatternsThatTakeLong) {
  const Tokenizer t = Tokenizer::from_json(with(
      R"("pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|aa)+$|(a*)b"}, "behavior": "Isolated"})"));
  EXPECT_EQ(t.encode("aac").size(), 2U);
  try {
    t.encode(std::string(5000, 'a') + "c");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "regex.steps");
  }
}

TEST(TokenizerAttacks, Folders) {
  const std::string folder = testing::TempDir() + "tokenizer_attacks";
  std::filesystem::create_directory(folder);
  try {
    Tokenizer::from_file(folder);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "tokenizer.file");
    EXPECT_NE(error.message().find("the folder has no tokenizer.json"), std::string::npos);
  }
  std::ofstream(folder + "/tokenizer.json")
      << with("\"added_tokens\": [{\"id\": 2, \"content\": \"<s>\", \"special\": true}]");
  std::ofstream(folder + "/tokenizer_config.json")
      << R"({"bos_token": {"content": "<s>"}, "chat_template": "{{ x }}"})";
  const Tokenizer t = Tokenizer::from_file(folder);
  EXPECT_EQ(t.named_token("bos"), 2);
  EXPECT_EQ(t.chat_template(), "{{ x }}");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace weft::text
