#include "weft/text/train_bpe.h"

#include <algorithm>
#include <numeric>
#include <queue>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/base/utf8.h"
#include "weft/io/host_array.h"
#include "weft/text/pre_tokenizers.h"
#include "weft/text/vocabulary.h"

namespace weft::text {
namespace {

constexpr size_t kBytes = 256;

struct Pair {
  TokenId left, right;
  auto operator<=>(const Pair&) const = default;
};
struct HashOfPair {
  size_t operator()(const Pair& p) const {
    return hash_mix(static_cast<uint64_t>(p.left) << 32 | static_cast<uint32_t>(p.right));
  }
};

struct Word {
  std::vector<TokenId> symbols;
  uint64_t count;  // in the texts
};

/// The words of all texts as they merge, and how often each pair is seen in them.
class Merging {
 public:
  explicit Merging(std::vector<Word> words) : words_(std::move(words)) {
    for (uint32_t w = 0; w < words_.size(); ++w) {
      const std::vector<TokenId>& s = words_[w].symbols;
      for (size_t i = 0; i + 1 < s.size(); ++i) more({s[i], s[i + 1]}, w);
    }
    queue_grown();
  }

  /// The pair that is seen most often; none: all are seen less often than that.
  std::optional<Pair> best(uint64_t min_frequency) {
    while (!queue_.empty()) {
      const Queued top = queue_.top();
      const auto found = pairs_.find(top.pair);
      const uint64_t count = found == pairs_.end() ? 0 : found->second.count;
      if (count == top.count) return count < min_frequency ? std::nullopt : std::optional(top.pair);
      queue_.pop();  // counts have changed since; where they have grown it is queued again already
      if (count != 0 && count < top.count) queue_.push({count, top.pair});
    }
    return {};
  }

  void merge(Pair pair, TokenId merged) {
    const std::vector<uint32_t> where = std::move(pairs_.at(pair).words);
    for (const uint32_t w : where) merge_in(w, pair, merged);
    pairs_.erase(pair);
    queue_grown();
  }

 private:
  struct Seen {
    uint64_t count = 0;
    std::vector<uint32_t> words;  // where it may be
  };
  struct Queued {
    uint64_t count;
    Pair pair;
    bool operator<(const Queued& other) const {
      return count != other.count ? count < other.count : other.pair < pair;
    }
  };

  void more(Pair pair, uint32_t word) {
    Seen& seen = pairs_[pair];
    seen.count += words_[word].count;
    if (!seen.words.empty() && seen.words.back() == word) return;
    seen.words.push_back(word);
    grown_.push_back(pair);
  }
  void fewer(Pair pair, uint32_t word) { pairs_[pair].count -= words_[word].count; }

  void merge_in(uint32_t w, Pair pair, TokenId merged) {
    std::vector<TokenId>& s = words_[w].symbols;
    size_t kept = 0;
    for (size_t i = 0; i < s.size(); ++i) {
      if (i + 1 == s.size() || s[i] != pair.left || s[i + 1] != pair.right) {
        s[kept++] = s[i];
        continue;
      }
      if (kept > 0) {
        fewer({s[kept - 1], pair.left}, w);
        more({s[kept - 1], merged}, w);
      }
      if (i + 2 < s.size()) {
        fewer({pair.right, s[i + 2]}, w);
        more({merged, s[i + 2]}, w);
      }
      s[kept++] = merged;
      ++i;
    }
    s.resize(kept);
  }

  void queue_grown() {
    std::sort(grown_.begin(), grown_.end());
    grown_.erase(std::unique(grown_.begin(), grown_.end()), grown_.end());
    for (const Pair& pair : grown_) queue_.push({pairs_[pair].count, pair});
    grown_.clear();
  }

  std::vector<Word> words_;
  std::unordered_map<Pair, Seen, HashOfPair> pairs_;
  std::priority_queue<Queued> queue_;
  std::vector<Pair> grown_;
};

/// Bytes in the order of the characters that stand for them, as the package tokenizers numbers
/// them.
std::vector<uint8_t> bytes_in_order() {
  std::vector<uint8_t> bytes(kBytes);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  std::sort(bytes.begin(), bytes.end(),
            [](uint8_t a, uint8_t b) { return byte_character(a) < byte_character(b); });
  return bytes;
}

void write_byte_level(JsonWriter& json, bool use_regex) {
  json.begin_object().field("type", "ByteLevel").field("add_prefix_space", false);
  json.field("trim_offsets", true).field("use_regex", use_regex).end_object();
}

void write_pre_tokenizer(JsonWriter& json, const std::string& pattern) {
  if (pattern.empty()) return write_byte_level(json, true);
  json.begin_object().field("type", "Sequence").key("pretokenizers").begin_array();
  json.begin_object().field("type", "Split").key("pattern");
  json.begin_object().field("Regex", pattern).end_object();
  json.field("behavior", "Isolated").field("invert", false).end_object();
  write_byte_level(json, false);
  json.end_array().end_object();
}

void write_special(JsonWriter& json, const std::vector<std::string>& tokens) {
  json.begin_array();
  for (size_t id = 0; id < tokens.size(); ++id) {
    json.begin_object().field("id", id).field("content", tokens[id]);
    for (const char* no : {"single_word", "lstrip", "rstrip", "normalized"}) json.field(no, false);
    json.field("special", true).end_object();
  }
  json.end_array();
}

/// tokenizer.json of the package tokenizers (huggingface.co/docs/tokenizers).
std::string tokenizer_json(const BpeTraining& options, const std::vector<std::string>& tokens,
                           const std::vector<Pair>& merges) {
  JsonWriter json;
  json.begin_object().field("version", "1.0");
  json.key("truncation").null().key("padding").null().key("added_tokens");
  write_special(json, options.special_tokens);
  json.key("normalizer").null().key("pre_tokenizer");
  write_pre_tokenizer(json, options.pattern);
  json.key("post_processor").null().key("decoder");
  write_byte_level(json, true);
  json.key("model").begin_object().field("type", "BPE");
  for (const char* none :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"})
    json.key(none).null();
  for (const char* no : {"fuse_unk", "byte_fallback", "ignore_merges"}) json.field(no, false);
  json.key("vocab").begin_object();
  for (size_t id = 0; id < tokens.size(); ++id) json.field(tokens[id], id);
  json.end_object().key("merges").begin_array();
  for (const Pair& m : merges) {
    json.begin_array().value(tokens[static_cast<size_t>(m.left)]);
    json.value(tokens[static_cast<size_t>(m.right)]).end_array();
  }
  return json.end_array().end_object().end_object().take();
}

}  // namespace

struct BpeTrainer::State {
  BpeTraining options;
  PreTokenizerPtr words_of;
  TextIndex index;
  std::vector<std::pair<std::string, uint64_t>> words;  // and how often each was seen
};

BpeTrainer::BpeTrainer(BpeTraining options) : state_(std::make_unique<State>()) {
  const std::vector<std::string>& special = options.special_tokens;
  const size_t least = kBytes + special.size();
  if (options.vocab_size < least)
    fail("tokenizer.training",
         "a vocabulary of {} tokens, but all bytes and the special tokens are {}; make it larger",
         options.vocab_size, least);
  for (size_t i = 0; i < special.size(); ++i)
    if (special[i].empty() || std::find(special.begin(), special.begin() + static_cast<long>(i),
                                        special[i]) != special.begin() + static_cast<long>(i))
      fail("tokenizer.training", "special token {}, {}, is empty or there twice; leave it out", i,
           quoted_name(special[i]));
  state_->words_of = split_pre_tokenizer(
      Pattern::of_regex(options.pattern.empty() ? kGpt2Pattern : options.pattern),
      SplitBehavior::Isolated);
  state_->options = std::move(options);
}
BpeTrainer::~BpeTrainer() = default;

void BpeTrainer::add(std::string_view text) {
  State& s = *state_;
  s.words_of->split(valid_utf8(text), true, [&](std::string_view word, bool) {
    uint32_t at = s.index.find(word);
    if (at == TextIndex::kNone) {
      at = static_cast<uint32_t>(s.words.size());
      s.index.insert(word, at);
      s.words.emplace_back(word, 0);
    }
    ++s.words[at].second;
  });
}

std::string BpeTrainer::train(FunctionRef<void(size_t, size_t)> progress) const {
  const BpeTraining& options = state_->options;
  std::vector<std::string> tokens = options.special_tokens;
  TokenId of_byte[kBytes];
  for (const uint8_t byte : bytes_in_order()) {
    of_byte[byte] = static_cast<TokenId>(tokens.size());
    append_spelling(tokens.emplace_back(),
                    std::string_view(reinterpret_cast<const char*>(&byte), 1));
  }
  std::unordered_map<std::string, TokenId> ids;
  for (size_t id = 0; id < tokens.size(); ++id) ids.emplace(tokens[id], static_cast<TokenId>(id));

  std::vector<Word> words;
  for (const auto& [text, count] : state_->words) {
    words.push_back({{}, count});
    for (const char byte : text)
      words.back().symbols.push_back(of_byte[static_cast<uint8_t>(byte)]);
  }
  Merging merging(std::move(words));
  std::vector<Pair> merges;
  progress(tokens.size(), options.vocab_size);
  while (tokens.size() < options.vocab_size) {
    const std::optional<Pair> pair = merging.best(std::max<uint64_t>(options.min_frequency, 1));
    if (!pair) break;
    // Other pairs may have made the same text.
    const auto [named, fresh] = ids.emplace(
        tokens[static_cast<size_t>(pair->left)] + tokens[static_cast<size_t>(pair->right)],
        static_cast<TokenId>(tokens.size()));
    if (fresh) tokens.push_back(named->first);
    merges.push_back(*pair);
    merging.merge(*pair, named->second);
    progress(tokens.size(), options.vocab_size);
  }
  return tokenizer_json(options, tokens, merges);
}

std::string BpeTrainer::train() const {
  return train([](size_t, size_t) {});
}

}  // namespace weft::text
