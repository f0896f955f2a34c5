// Tiny vocabularies; what the package tokenizers makes of large ones is tests/python/test_text.py.
#include "weft/text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "tests/text/gguf_writer.h"
#include "weft/base/error.h"

namespace weft::text {
namespace {

using Ids = std::vector<TokenId>;

std::string json(std::string_view model, std::string_view rest = "") {
  return "{\"model\": " + std::string(model) + std::string(rest) + "}";
}

constexpr std::string_view kBpe =
    R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "abb": 3, "aa": 4, "aaaa": 5},
        "merges": ["a b", ["ab", "b"], "a a", "aa aa"]})";

TEST(Tokenizer, MergesPairsByRank) {
  const Tokenizer t = Tokenizer::from_json(json(kBpe));
  EXPECT_EQ(t.encode("abb"), Ids{3});
  EXPECT_EQ(t.encode("aab"), (Ids{0, 2}));
  EXPECT_EQ(t.encode("aaaaaaa"), (Ids{5, 4, 0}));
  EXPECT_EQ(t.encode("abxb"), Ids{3});  // no unknown token: left out
  EXPECT_EQ(t.encode(""), Ids{});
  EXPECT_EQ(t.decode(Ids{3, 99, -5, 0}), "abb a");
  EXPECT_EQ(t.vocab_size(), 6u);
  EXPECT_EQ(t.token_to_id("abb"), 3);
  EXPECT_EQ(t.id_to_token(7), std::nullopt);
}

TEST(Tokenizer, GivesTheSameForLongWords) {
  const Tokenizer t = Tokenizer::from_json(json(kBpe));
  // 120 characters, which a heap of pairs merges, of parts that never merge with each other.
  std::string word;
  Ids ids;
  for (int i = 0; i < 30; ++i) {
    word += "aabb";
    for (const TokenId id : t.encode("aabb")) ids.push_back(id);
  }
  EXPECT_EQ(t.encode(word), ids);
}

/// Pairs of tokens and what they merge to, best first, as the model of a tokenizer.json.
struct Merges {
  std::vector<std::string> tokens = {"a", "b", "c"};
  std::vector<std::pair<size_t, size_t>> pairs;

  size_t merged(size_t rank) const {
    const std::string both = tokens[pairs[rank].first] + tokens[pairs[rank].second];
    return static_cast<size_t>(std::ranges::find(tokens, both) - tokens.begin());
  }
  Tokenizer tokenizer() const {
    std::string vocab, merges;
    for (size_t i = 0; i < tokens.size(); ++i)
      vocab += (i ? ", \"" : "\"") + tokens[i] + "\": " + std::to_string(i);
    for (const auto& [left, right] : pairs)
      merges += (merges.empty() ? "\"" : ", \"") + tokens[left] + " " + tokens[right] + "\"";
    return Tokenizer::from_json(
        json(R"({"type": "BPE", "vocab": {)" + vocab + R"(}, "merges": [)" + merges + "]}"));
  }
  /// The best pair again and again, the leftmost of it.
  Ids merge(Ids ids) const {
    for (;;) {
      size_t best = pairs.size(), place = 0;
      for (size_t rank = 0; rank < best; ++rank)
        for (size_t i = 0; i + 1 < ids.size() && rank < best; ++i)
          if (static_cast<size_t>(ids[i]) == pairs[rank].first &&
              static_cast<size_t>(ids[i + 1]) == pairs[rank].second)
            best = rank, place = i;
      if (best == pairs.size()) return ids;
      ids[place] = static_cast<TokenId>(merged(best));
      ids.erase(ids.begin() + static_cast<int64_t>(place) + 1);
    }
  }
};

TEST(Tokenizer, MergesLongWordsInTheOrderOfRanks) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    Merges m;
    while (m.pairs.size() < 12) {
      const std::pair pair(random() % m.tokens.size(), random() % m.tokens.size());
      const std::string both = m.tokens[pair.first] + m.tokens[pair.second];
      if (std::ranges::find(m.tokens, both) != m.tokens.end()) continue;
      m.tokens.push_back(both);
      m.pairs.push_back(pair);
    }
    std::shuffle(m.pairs.begin(), m.pairs.end(), random);  // larger ones may come first
    std::string word;
    Ids letters;
    for (int i = 0; i < 300; ++i) {
      letters.push_back(static_cast<TokenId>(random() % 3));
      word += static_cast<char>('a' + letters.back());
    }
    EXPECT_EQ(m.tokenizer().encode(word), m.merge(letters));
  }
}

TEST(Tokenizer, TakesNoLongerThanTheTextIsLong) {
  const Tokenizer t =
      Tokenizer::from_json(json(kBpe, R"(, "pre_tokenizer": {"type": "ByteLevel"})"));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(t.encode(std::string(1000000, 'a')).size(), 250000u);
  EXPECT_EQ(t.encode(std::string(1000000, ' ')).size(), 0u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));  // not quadratic
}

TEST(Tokenizer, FallsBackToBytes) {
  std::string vocab = R"({"<unk>": 0, "h": 1)";
  for (int byte = 0; byte < 256; ++byte) {
    char name[32];
    std::snprintf(name, sizeof(name), ", \"<0x%02X>\": %d", static_cast<unsigned>(byte), byte + 2);
    vocab += name;
  }
  const Tokenizer t = Tokenizer::from_json(json(
      R"({"type": "BPE", "unk_token": "<unk>", "byte_fallback": true, "merges": [], "vocab": )" +
          vocab + "}}",
      R"(, "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]})"));
  EXPECT_EQ(t.encode("hé"), (Ids{1, 0xc3 + 2, 0xa9 + 2}));
  EXPECT_EQ(t.decode(t.encode("hé👍")), "hé👍");
  EXPECT_EQ(t.decode(Ids{0xc3 + 2, 1}), "\ufffdh");
  DecodeStream stream(t);
  EXPECT_EQ(stream.step(0xc3 + 2), "");
  EXPECT_EQ(stream.step(0xa9 + 2), "é");
  EXPECT_EQ(stream.step(0xf0 + 2), "");
  EXPECT_EQ(stream.finish(), "\ufffd");
}

constexpr std::string_view kBert = R"(
  {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 10,
   "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "un": 3, "##aff": 4, "##able": 5, "!": 6, "日": 7}})";
constexpr std::string_view kBertRest = R"(,
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"}, "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
  "added_tokens": [{"id": 1, "content": "[CLS]", "special": true}, {"id": 2, "content": "[SEP]", "special": true}])";

TEST(Tokenizer, IsBerts) {
  Tokenizer t = Tokenizer::from_json(json(kBert, kBertRest));
  EXPECT_EQ(t.encode("ÚNAFFABLE! 日日"), (Ids{1, 3, 4, 5, 6, 7, 7, 2}));
  EXPECT_EQ(t.encode("unaffablex"), (Ids{1, 0, 2}));
  const Encoding e = t.encoding("un", "!!");
  EXPECT_EQ(e.ids, (Ids{1, 3, 2, 6, 6, 2}));
  EXPECT_EQ(e.type_ids, (std::vector<int32_t>{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(e.special_mask, (std::vector<uint8_t>{1, 0, 1, 0, 0, 1}));
  EXPECT_EQ(t.decode(e.ids), "un!!");
  EXPECT_EQ(t.decode(e.ids, false), "[CLS] un [SEP]!! [SEP]");
  t.set_truncation(Truncation{4});
  t.set_padding(Padding{6, 1, true, 0});
  EXPECT_EQ(t.encode("!!!!!"), (Ids{0, 0, 1, 6, 6, 2}));
  const std::vector<std::string> texts{"!", "!!"};
  t.set_padding(Padding{});
  const std::vector<Encoding> all = t.encodings(texts);
  EXPECT_EQ(all[0].ids, (Ids{1, 6, 2, 0}));
  EXPECT_EQ(all[0].attention_mask, (std::vector<uint8_t>{1, 1, 1, 0}));
  t.set_truncation(Truncation{4, Truncation::Strategy::OnlyFirst});
  EXPECT_THROW(t.encoding("!", "!!!!!!"), Error);
}

TEST(Tokenizer, AddedTokensTakeSpacesOnceAndKnowWords) {
  const Tokenizer t = Tokenizer::from_json(json(kBert, R"(, "added_tokens": [
      {"id": 8, "content": " ", "lstrip": true, "rstrip": true, "normalized": false},
      {"id": 9, "content": "ab", "single_word": true, "normalized": false}])"));
  EXPECT_EQ(t.encode("!   !"), (Ids{6, 8, 6}));  // the second space is the first one's
  EXPECT_EQ(t.encode("ab!"), (Ids{9, 6}));
  EXPECT_EQ(t.encode("\u2160ab"), Ids{0});  // a Roman number is a part of a word
}

TEST(Tokenizer, KeepsSpecialTokensOutOfWhatUsersWrote) {
  const Tokenizer t = Tokenizer::from_json(json(kBert, kBertRest));
  EXPECT_EQ(t.encode("[SEP]!", {false}), (Ids{2, 6}));
  EXPECT_EQ(t.encode("[SEP]!", {false, false}), (Ids{0, 0, 0, 6}));  // [, sep, ]
}

TEST(Tokenizer, FindsTheBestSegmentation) {
  const Tokenizer t = Tokenizer::from_json(json(
      R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["▁", -2], ["▁a", -3], ["b", -4], ["▁ab", -6], ["bc", -5]]})",
      R"(, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
         "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"})"));
  EXPECT_EQ(t.encode("ab"), Ids{4});
  EXPECT_EQ(t.encode("abc b"), (Ids{2, 5, 1, 3}));
  EXPECT_EQ(t.encode("xyz b"), (Ids{1, 0, 1, 3}));
  EXPECT_EQ(t.decode(t.encode("ab b")), "ab b");
}

TEST(Tokenizer, ReadsTextThatIsNotUtf8) {
  const Tokenizer t = Tokenizer::from_json(
      json(R"({"type": "WordLevel", "unk_token": "u", "vocab": {"u": 0, "a\ufffdb": 1}})"));
  EXPECT_EQ(t.encode("a\xff"
                     "b"),
            Ids{1});
}

TEST(Tokenizer, MayBeUsedByThreads) {
  const Tokenizer t = Tokenizer::from_json(json(kBpe));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) EXPECT_EQ(t.encode("aaaaaaa"), (Ids{5, 4, 0}));
    });
  for (std::thread& thread : threads) thread.join();
}

// ---- GGUF

TEST(GgufTokenizer, IsSentencePiece) {
  GgufWriter w;
  w.text("model", "llama");
  w.texts("tokens", {"<unk>", "<s>", "▁", "a", "b", "▁a", "ab", "<0xC3>", "<0xA9>"});
  w.numbers<float>("scores", {0, 0, -5, -6, -7, -2, -1, 0, 0});
  w.numbers<int32_t>("token_type", {2, 3, 1, 1, 1, 1, 1, 6, 6});
  w.number<uint32_t>("bos_token_id", 1);
  w.number<uint32_t>("unknown_token_id", 0);
  const Tokenizer t = Tokenizer::from_gguf(w.content);
  EXPECT_EQ(t.encode("ab a"), (Ids{1, 2, 6, 5}));  // ab has the higher score
  EXPECT_EQ(t.decode(t.encode("ab a")), "ab a");
  EXPECT_EQ(t.named_token("bos"), 1);
}

// Which no text holds, and which must not cut a character of one.
TEST(GgufTokenizer, HasAnAddedTokenThatIsNotUtf8) {
  GgufWriter w;
  w.text("model", "llama");
  w.texts("tokens", {"<unk>", "\xf2\x96\x81", "\xbf", "a"});
  w.numbers<float>("scores", {0, 0, 0, -1});
  w.numbers<int32_t>("token_type", {2, 3, 3, 1});
  w.number<uint32_t>("unknown_token_id", 0);
  const Tokenizer t = Tokenizer::from_gguf(w.content);
  EXPECT_EQ(t.encode("a\xf2\x96\x81\xbf").back(), 0);
  EXPECT_EQ(t.encode("\xf2\x96\x81"), t.encode("\xef\xbf\xbd"));  // U+FFFD
}

TEST(GgufTokenizer, IsBytePairs) {
  GgufWriter w;
  w.text("model", "gpt2");
  w.text("pre", "llama-bpe");
  w.texts("tokens", {"a", "b", "Ġ", "Ġa", "1", "11", "<|end|>", "111"});
  w.texts("merges", {"Ġ a", "1 1", "11 1"});
  w.numbers<int32_t>("token_type", {1, 1, 1, 1, 1, 1, 3, 1});
  const Tokenizer t = Tokenizer::from_gguf(w.content);
  EXPECT_EQ(t.encode("a ab 11111<|end|>"), (Ids{0, 3, 1, 2, 7, 5, 6}));
  EXPECT_EQ(t.decode(t.encode("a ab 11111")), "a ab 11111");
}

TEST(GgufTokenizer, IsBerts) {
  GgufWriter w;
  w.text("model", "bert");
  w.texts("tokens", {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁un", "able", "▁!"});
  w.numbers<int32_t>("token_type", {3, 2, 3, 3, 1, 1, 1});
  w.number<uint32_t>("cls_token_id", 2);
  w.number<uint32_t>("seperator_token_id", 3);
  const Tokenizer t = Tokenizer::from_gguf(w.content);
  EXPECT_EQ(t.encode("Unable!"), (Ids{2, 4, 5, 6, 3}));
  EXPECT_EQ(t.encoding("un", "!").ids, (Ids{2, 4, 3, 6, 3}));
  EXPECT_EQ(t.encoding("un", "!").type_ids, (std::vector<int32_t>{0, 0, 0, 1, 1}));
}

}  // namespace
}  // namespace weft::text
