#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/io/host_array.h"
#include "weft/text/models.h"

namespace weft::text {
namespace {

/// Merges by the pair that they merge: open addressing.
class MergeTable {
 public:
  struct Found {
    uint32_t rank;  // kNone: the pair does not merge
    TokenId merged;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  explicit MergeTable(const std::vector<Merge>& merges) {
    size_t size = 16;
    while (size < 2 * merges.size()) size *= 2;
    slots_.resize(size);
    for (const Merge& m : merges) {
      Slot& slot = slots_[place(m.left, m.right)];
      slot = {key(m.left, m.right), {m.rank, m.merged}};
    }
  }
  Found find(TokenId left, TokenId right) const { return slots_[place(left, right)].found; }

 private:
  struct Slot {
    uint64_t key = UINT64_MAX;
    Found found{kNone, 0};
  };
  static uint64_t key(TokenId left, TokenId right) {
    return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
  }
  /// Where the pair is, or would be.
  size_t place(TokenId left, TokenId right) const {
    const uint64_t wanted = key(left, right);
    size_t at = hash_mix(wanted) & (slots_.size() - 1);
    while (slots_[at].key != wanted && slots_[at].key != UINT64_MAX)
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }
  std::vector<Slot> slots_;
};

/// Places of pairs, the lowest rank first and in it the leftmost. Those of a rank are nearly always
/// found from left to right, and many have the same: a list for each, and a heap for what comes out
/// of order.
class PairQueue {
 public:
  struct Pair {
    uint32_t rank, left;
  };

  void push(uint32_t rank, uint32_t left) {
    Places& places = places_[rank];
    if (places.empty()) ranks_.push(rank);
    if (places.list.empty() || places.list.back() <= left)
      places.list.push_back(left);
    else
      places.rest.push(left);
  }
  std::optional<Pair> pop() {
    while (!ranks_.empty()) {
      const uint32_t rank = ranks_.top();
      Places& places = places_[rank];
      if (!places.empty()) return Pair{rank, places.pop()};
      ranks_.pop();
      places.list.clear();
      places.next = 0;
    }
    return std::nullopt;
  }

 private:
  template <class T>
  using Heap = std::priority_queue<T, std::vector<T>, std::greater<>>;
  struct Places {
    std::vector<uint32_t> list;  // rising
    size_t next = 0;
    Heap<uint32_t> rest;

    bool empty() const { return next == list.size() && rest.empty(); }
    uint32_t pop() {
      if (rest.empty() || (next < list.size() && list[next] <= rest.top())) return list[next++];
      const uint32_t left = rest.top();
      rest.pop();
      return left;
    }
  };
  std::unordered_map<uint32_t, Places> places_;
  Heap<uint32_t> ranks_;  // of all that are not empty, and some that are
};

class Bpe final : public Model {
 public:
  Bpe(Vocabulary vocabulary, const std::vector<Merge>& merges, BpeOptions options)
      : vocabulary_(std::move(vocabulary)), merges_(merges), options_(std::move(options)) {
    if (!options_.unknown.empty()) {
      unknown_ = vocabulary_.id_of(options_.unknown).value_or(kNoToken);
      if (unknown_ == kNoToken)
        fail_runtime("tokenizer.model", "the unknown token {} is not in the vocabulary; add it",
                     quoted_name(options_.unknown));
    }
    for (int byte = 0; byte < 256; ++byte)
      byte_tokens_[static_cast<size_t>(byte)] =
          vocabulary_.id_of(byte_token(static_cast<uint8_t>(byte))).value_or(kNoToken);
  }

  std::optional<TokenId> id_of(std::string_view token) const override {
    return vocabulary_.id_of(token);
  }
  std::optional<std::string_view> token_of(TokenId id) const override {
    return vocabulary_.token_of(id);
  }
  size_t size() const override { return vocabulary_.size(); }

  bool can_take_bytes() const override { return !options_.byte_fallback; }
  void take_bytes() override {
    takes_bytes_ = true;
    for (int place = 0; place < 4; ++place)
      for (int byte = 0; byte < 256; ++byte) {
        std::string name;
        append_utf8(name, byte_character(static_cast<uint8_t>(byte)));
        symbols_of_bytes_[static_cast<size_t>(place)][static_cast<size_t>(byte)] =
            symbol(name, (place & 1) != 0, (place & 2) != 0);
      }
    if (options_.ignore_merges)
      vocabulary_.for_each([&](std::string_view token, TokenId id) {
        if (const auto bytes = spelt_bytes(token))
          whole_words_.insert(*bytes, static_cast<uint32_t>(id));
      });
  }

  void tokenize(std::string_view word, std::vector<TokenId>& out) const override {
    if (word.empty()) return;
    if (options_.ignore_merges) {
      if (const std::optional<TokenId> whole = whole_word(word)) {
        out.push_back(*whole);
        return;
      }
    }
    std::vector<TokenId> symbols;
    takes_bytes_ ? add_bytes(word, symbols) : add_characters(word, symbols);
    symbols.size() <= kShort ? merge_short(symbols) : merge_long(symbols);
    out.insert(out.end(), symbols.begin(), symbols.end());
  }

 private:
  static constexpr TokenId kNoToken = -1;
  static constexpr size_t kShort = 32;

  std::optional<TokenId> whole_word(std::string_view word) const {
    if (!takes_bytes_) return vocabulary_.id_of(word);
    const uint32_t found = whole_words_.find(word);
    return found == TextIndex::kNone ? std::nullopt : std::optional(static_cast<TokenId>(found));
  }

  TokenId symbol(std::string_view character, bool first, bool last) const {
    if (options_.continuing_prefix.empty() && options_.end_suffix.empty())
      return vocabulary_.id_of(character).value_or(kNoToken);
    std::string name = first ? "" : options_.continuing_prefix;
    name += character;
    if (last) name += options_.end_suffix;
    return vocabulary_.id_of(name).value_or(kNoToken);
  }

  void add_unknown(bool& pending, std::vector<TokenId>& out) const {
    if (unknown_ == kNoToken) return;
    if (pending && !options_.fuse_unknown) out.push_back(unknown_);
    pending = true;
  }

  void add_bytes(std::string_view word, std::vector<TokenId>& out) const {
    bool unknown = false;  // one is to be added before the next token
    for (size_t i = 0; i < word.size(); ++i) {
      const size_t place = (i == 0 ? 1u : 0u) | (i + 1 == word.size() ? 2u : 0u);
      const TokenId id = symbols_of_bytes_[place][static_cast<uint8_t>(word[i])];
      if (id == kNoToken) {
        add_unknown(unknown, out);
        continue;
      }
      if (unknown) out.push_back(unknown_);
      unknown = false;
      out.push_back(id);
    }
    if (unknown) out.push_back(unknown_);
  }

  void add_characters(std::string_view word, std::vector<TokenId>& out) const {
    bool unknown = false;
    for (size_t at = 0; at < word.size();) {
      const size_t begin = at;
      next_code_point(word, at);
      const std::string_view character = word.substr(begin, at - begin);
      if (const TokenId id = symbol(character, begin == 0, at == word.size()); id != kNoToken) {
        if (unknown) out.push_back(unknown_);
        unknown = false;
        out.push_back(id);
      } else if (!options_.byte_fallback ||
                 !add_fallback(character, begin == 0, at == word.size(), out)) {
        add_unknown(unknown, out);
      }
    }
    if (unknown) out.push_back(unknown_);
  }

  bool add_fallback(std::string_view character, bool first, bool last,
                    std::vector<TokenId>& out) const {
    std::string name = first ? "" : options_.continuing_prefix;
    name += character;
    if (last) name += options_.end_suffix;
    for (const char byte : name)
      if (byte_tokens_[static_cast<uint8_t>(byte)] == kNoToken) return false;
    for (const char byte : name) out.push_back(byte_tokens_[static_cast<uint8_t>(byte)]);
    return true;
  }

  /// The best pair again and again, by looking at all of them.
  void merge_short(std::vector<TokenId>& symbols) const {
    if (symbols.size() < 2) return;
    std::array<MergeTable::Found, kShort> pairs;
    size_t count = symbols.size();
    for (size_t i = 0; i + 1 < count; ++i) pairs[i] = merges_.find(symbols[i], symbols[i + 1]);
    while (count > 1) {
      size_t best = 0;
      for (size_t i = 1; i + 1 < count; ++i)
        if (pairs[i].rank < pairs[best].rank) best = i;
      if (pairs[best].rank == MergeTable::kNone) break;
      symbols[best] = pairs[best].merged;
      --count;
      for (size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
      for (size_t i = best + 1; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
      if (best > 0) pairs[best - 1] = merges_.find(symbols[best - 1], symbols[best]);
      if (best + 1 < count) pairs[best] = merges_.find(symbols[best], symbols[best + 1]);
    }
    symbols.resize(count);
  }

  /// The same with a queue of pairs: at most n log n.
  void merge_long(std::vector<TokenId>& symbols) const {
    const auto count = static_cast<uint32_t>(symbols.size()), none = count;
    std::vector<uint32_t> before(count), after(count);
    PairQueue queue;
    const auto pair_at = [&](uint32_t left) {
      return merges_.find(symbols[left], symbols[after[left]]);
    };
    const auto push = [&](uint32_t left) {
      if (left == none || after[left] == none) return;
      if (const uint32_t rank = pair_at(left).rank; rank != MergeTable::kNone)
        queue.push(rank, left);
    };
    for (uint32_t i = 0; i < count; ++i) {
      before[i] = i == 0 ? none : i - 1;
      after[i] = i + 1;
    }
    for (uint32_t i = 0; i < count; ++i) push(i);
    while (const std::optional<PairQueue::Pair> top = queue.pop()) {
      const uint32_t left = top->left, right = after[left];
      if (symbols[left] == kNoToken || right == none) continue;
      const MergeTable::Found now = pair_at(left);
      if (now.rank != top->rank) continue;
      symbols[left] = now.merged;
      symbols[right] = kNoToken;
      after[left] = after[right];
      if (after[left] != none) before[after[left]] = left;
      push(before[left]);
      push(left);
    }
    std::erase(symbols, kNoToken);
  }

  Vocabulary vocabulary_;
  MergeTable merges_;
  BpeOptions options_;
  TokenId unknown_ = kNoToken;
  bool takes_bytes_ = false;
  std::array<TokenId, 256> byte_tokens_{};
  std::array<std::array<TokenId, 256>, 4> symbols_of_bytes_{};  // [first | last << 1]
  TextIndex whole_words_;
};

}  // namespace

std::string byte_token(uint8_t byte) { return strformat("<0x{:02X}>", byte); }

std::unique_ptr<Model> bpe_model(Vocabulary vocabulary, const std::vector<Merge>& merges,
                                 BpeOptions options) {
  return std::make_unique<Bpe>(std::move(vocabulary), merges, std::move(options));
}

}  // namespace weft::text
