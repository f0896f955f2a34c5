#include "weft/text/vocabulary.h"

#include "weft/base/error.h"
#include "weft/io/host_array.h"

namespace weft::text {

bool TextIndex::insert(std::string_view text, uint32_t value) {
  if (2 * (count_ + 1) > slots_.size()) grow();
  const uint64_t hash = hash_text(text);
  size_t at = hash & mask_;
  for (; slots_[at].value != kNone; at = (at + 1) & mask_)
    if (text == text_of(slots_[at])) return false;
  last_offset_ = texts_.size();
  if (texts_.size() + text.size() > UINT32_MAX)
    fail_runtime("tokenizer.vocab", "more than 4 GiB of tokens; use a smaller vocabulary");
  texts_ += text;
  slots_[at] = {static_cast<uint32_t>(hash >> 32), static_cast<uint32_t>(last_offset_),
                static_cast<uint32_t>(text.size()), value};
  ++count_;
  return true;
}

void TextIndex::grow() {
  std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
  old.swap(slots_);
  mask_ = slots_.size() - 1;
  for (const Slot& slot : old) {
    if (slot.value == kNone) continue;
    size_t at = hash_text(text_of(slot)) & mask_;
    while (slots_[at].value != kNone) at = (at + 1) & mask_;
    slots_[at] = slot;
  }
}

void TextIndex::clear() {
  slots_.assign(slots_.size(), {});
  texts_.clear();
  count_ = 0;
}

void Vocabulary::add(std::string_view token, int64_t id) {
  if (id < 0 || id > INT32_MAX)
    fail_runtime("tokenizer.vocab", "the token {} has the id {}; ids are from 0 to {}",
                 quoted_name(token), id, INT32_MAX);
  const auto at = static_cast<TokenId>(id);
  if (const auto other = token_of(at))
    fail_runtime("tokenizer.vocab", "the tokens {} and {} have one id, {}; each needs its own",
                 quoted_name(*other), quoted_name(token), id);
  if (!index_.insert(token, static_cast<uint32_t>(at)))
    fail_runtime("tokenizer.vocab", "the token {} is there twice, with the ids {} and {}",
                 quoted_name(token), *id_of(token), id);
  const Place place{static_cast<uint32_t>(index_.last_offset()),
                    static_cast<uint32_t>(token.size())};
  last_id_ = std::max(last_id_, at);
  if (static_cast<size_t>(id) < 4 * index_.size() + 4096) {
    if (dense_.size() <= static_cast<size_t>(id))
      dense_.resize(static_cast<size_t>(id) + 1, {0, kNoToken});
    dense_[static_cast<size_t>(id)] = place;
  } else {
    by_id_[at] = place;
  }
}

std::optional<std::string_view> Vocabulary::token_of(TokenId id) const {
  if (id >= 0 && static_cast<size_t>(id) < dense_.size() &&
      dense_[static_cast<size_t>(id)].size != kNoToken)
    return text_of(dense_[static_cast<size_t>(id)]);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? std::nullopt : std::optional(text_of(found->second));
}

}  // namespace weft::text
