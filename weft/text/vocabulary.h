// Texts found by hashing: TextIndex, and on it a tokenizer's Vocabulary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weft/base/hash.h"
#include "weft/text/parts.h"

namespace weft::text {

/// Texts and a number for each, in one array with open addressing. At most 4 GiB of texts.
class TextIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  /// kNone: it is not there.
  uint32_t find(std::string_view text) const {
    if (slots_.empty()) return kNone;
    const uint64_t hash = hash_text(text);
    for (size_t at = hash & mask_;; at = (at + 1) & mask_) {
      const Slot& slot = slots_[at];
      if (slot.value == kNone) return kNone;
      if (slot.tag == static_cast<uint32_t>(hash >> 32) && text == text_of(slot)) return slot.value;
    }
  }
  /// False, and nothing happens, where it is there. `value` is not kNone.
  bool insert(std::string_view text, uint32_t value);
  size_t size() const { return count_; }
  size_t bytes() const { return texts_.size(); }
  void clear();
  /// Where insert() has put the last text.
  size_t last_offset() const { return last_offset_; }
  std::string_view text_at(size_t offset, size_t size) const {
    return std::string_view(texts_).substr(offset, size);
  }

 private:
  struct Slot {
    uint32_t tag = 0, offset = 0, size = 0, value = kNone;
  };
  std::string_view text_of(const Slot& s) const { return text_at(s.offset, s.size); }
  void grow();

  std::vector<Slot> slots_;
  size_t mask_ = 0, count_ = 0, last_offset_ = 0;
  std::string texts_;
};

/// Tokens and their ids, which may have gaps.
class Vocabulary {
 public:
  /// Errors ("tokenizer.vocab"): a token or an id that is there, an id below 0.
  void add(std::string_view token, int64_t id);
  std::optional<TokenId> id_of(std::string_view token) const {
    const uint32_t found = index_.find(token);
    return found == TextIndex::kNone ? std::nullopt : std::optional(static_cast<TokenId>(found));
  }
  std::optional<std::string_view> token_of(TokenId id) const;
  size_t size() const { return index_.size(); }
  TokenId last_id() const { return last_id_; }  // -1: there is none
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& entry : by_id_) visit(text_of(entry.second), entry.first);
    for (size_t id = 0; id < dense_.size(); ++id)
      if (dense_[id].size != kNoToken) visit(text_of(dense_[id]), static_cast<TokenId>(id));
  }

 private:
  struct Place {
    uint32_t offset, size;
  };
  static constexpr uint32_t kNoToken = UINT32_MAX;
  std::string_view text_of(Place p) const { return index_.text_at(p.offset, p.size); }

  TextIndex index_;
  std::vector<Place> dense_;                  // by id, while ids have no wide gaps
  std::unordered_map<TokenId, Place> by_id_;  // those behind a wide gap
  TokenId last_id_ = -1;
};

}  // namespace weft::text
