#include "weft/text/tokenizer.h"

#include <algorithm>
#include <mutex>

#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/text/build.h"
#include "weft/text/vocabulary.h"

namespace weft::text {
namespace {

/// The tokens of words that were met. Forgets all when it is full.
class WordCache {
 public:
  void tokenize(const Model& model, std::string_view word, std::vector<TokenId>& out) {
    if (word.size() > kLongestWord) return model.tokenize(word, out);
    if (const uint32_t found = index_.find(word); found != TextIndex::kNone) {
      const Entry& e = entries_[found];
      out.insert(out.end(), ids_.begin() + e.begin, ids_.begin() + e.begin + e.count);
      return;
    }
    const size_t begin = out.size();
    model.tokenize(word, out);
    if (entries_.size() >= kMostWords) clear();
    index_.insert(word, static_cast<uint32_t>(entries_.size()));
    entries_.push_back(
        {static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(out.size() - begin)});
    ids_.insert(ids_.end(), out.begin() + static_cast<ptrdiff_t>(begin), out.end());
  }

 private:
  struct Entry {
    uint32_t begin, count;
  };
  static constexpr size_t kLongestWord = 64, kMostWords = size_t{1} << 16;
  void clear() {
    index_.clear();
    entries_.clear();
    ids_.clear();
  }
  TextIndex index_;
  std::vector<Entry> entries_;
  std::vector<TokenId> ids_;
};

/// How many of each text stay.
std::pair<size_t, size_t> kept(size_t a, size_t b, const Truncation& t, size_t most) {
  const size_t all = a + b;
  if (all <= most) return {a, b};
  const size_t away = all - most;
  if (t.strategy != Truncation::Strategy::LongestFirst) {
    size_t& from = t.strategy == Truncation::Strategy::OnlyFirst ? a : b;
    if (from <= away)
      fail("tokenizer.truncation",
           "{} tokens have to become {}, and the text to be cut has only {}; use the strategy "
           "longest_first or a greater max_length",
           all, most, from);
    from -= away;
    return {a, b};
  }
  size_t shorter = std::min(a, b);
  size_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = shorter + most % 2;
  }
  return a <= b ? std::pair(shorter, longer) : std::pair(longer, shorter);
}

void truncate(std::vector<TokenId>& ids, size_t length, bool left) {
  if (length >= ids.size()) return;
  const auto away = static_cast<ptrdiff_t>(ids.size() - length);
  left ? ids.erase(ids.begin(), ids.begin() + away) : ids.erase(ids.end() - away, ids.end());
}

void add(Encoding& out, const std::vector<TokenId>& ids, int32_t type, bool special) {
  out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  out.type_ids.resize(out.ids.size(), type);
  out.special_mask.resize(out.ids.size(), special ? 1 : 0);
  out.attention_mask.resize(out.ids.size(), 1);
}

void pad(Encoding& e, const Padding& padding, size_t longest) {
  size_t length = padding.length > 0 ? padding.length : longest;
  const size_t multiple = std::max<size_t>(padding.multiple_of, 1);
  length = (length + multiple - 1) / multiple * multiple;
  if (length <= e.ids.size()) return;
  const size_t more = length - e.ids.size();
  const auto fill = [&](auto& numbers, auto value) {
    numbers.insert(padding.left ? numbers.begin() : numbers.end(), more, value);
  };
  fill(e.ids, padding.id);
  fill(e.type_ids, padding.type_id);
  fill(e.special_mask, uint8_t{1});
  fill(e.attention_mask, uint8_t{0});
}

}  // namespace

struct Tokenizer::State {
  explicit State(TokenizerParts given) : parts(std::move(given)) {
    if (parts.pre_tokenizer && parts.model->can_take_bytes() && parts.pre_tokenizer->leave_bytes())
      parts.model->take_bytes();
    added = AddedTokens(std::move(parts.added), parts.normalizer.get());
  }

  std::unique_ptr<WordCache> take_cache() {
    const std::lock_guard lock(mutex);
    if (caches.empty()) return std::make_unique<WordCache>();
    std::unique_ptr<WordCache> cache = std::move(caches.back());
    caches.pop_back();
    return cache;
  }
  void give_cache(std::unique_ptr<WordCache> cache) {
    const std::lock_guard lock(mutex);
    caches.push_back(std::move(cache));
  }

  /// The text's own tokens.
  std::vector<TokenId> tokens_of(std::string_view given, bool parse_special) {
    std::string repaired;
    if (!is_utf8(given)) given = repaired = valid_utf8(given);
    std::vector<TokenId> out;
    std::unique_ptr<WordCache> cache = take_cache();
    const auto word = [&](std::string_view w, bool) { cache->tokenize(*parts.model, w, out); };
    const auto text = [&](std::string_view piece, bool first, TokenId token) {
      if (token >= 0) return out.push_back(token);
      if (!parts.pre_tokenizer) return word(piece, first);
      parts.pre_tokenizer->split(piece, first, word);
    };
    added.cut(given, false, parse_special, [&](std::string_view piece, bool first, TokenId token) {
      if (token >= 0) return out.push_back(token);
      const std::string normal = parts.normalizer ? parts.normalizer->apply(piece) : "";
      added.cut(parts.normalizer ? normal : piece, true, parse_special,
                [&](std::string_view p, bool f, TokenId t) { text(p, f && first, t); });
    });
    give_cache(std::move(cache));
    return out;
  }

  const std::vector<Template::Item>& around(bool pair, bool special) const {
    static const Template kNothing;
    const Template& t = special ? parts.around : kNothing;
    return pair ? t.pair : t.single;
  }

  TokenizerParts parts;
  AddedTokens added;
  std::mutex mutex;
  std::vector<std::unique_ptr<WordCache>> caches;  // as many as threads were in encode() at once
};

Tokenizer::Tokenizer(TokenizerParts parts) : state_(std::make_unique<State>(std::move(parts))) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  return encoding(text, {}, options).ids;
}

Encoding Tokenizer::encoding(std::string_view text, std::optional<std::string_view> pair,
                             const EncodeOptions& options) const {
  Encoding out = unpadded(text, pair, options);
  if (padding()) pad(out, *padding(), out.ids.size());
  return out;
}

Encoding Tokenizer::unpadded(std::string_view text, std::optional<std::string_view> pair,
                             const EncodeOptions& options) const {
  std::vector<TokenId> first = state_->tokens_of(text, options.parse_special), second;
  if (pair) second = state_->tokens_of(*pair, options.parse_special);
  const auto& around = state_->around(pair.has_value(), options.add_special_tokens);
  if (const std::optional<Truncation>& t = truncation()) {
    size_t own = 0;
    for (const Template::Item& item : around) own += item.ids.size();
    const size_t most = t->max_length > own ? t->max_length - own : 0;
    const auto [a, b] = kept(first.size(), second.size(), *t, most);
    truncate(first, a, t->left);
    truncate(second, b, t->left);
  }
  Encoding out;
  for (const Template::Item& item : around) {
    const bool special = item.kind == Template::Item::Tokens;
    add(out,
        special                              ? item.ids
        : item.kind == Template::Item::First ? first
                                             : second,
        item.type_id, special);
  }
  return out;
}

std::vector<Encoding> Tokenizer::encodings(std::span<const std::string> texts,
                                           const EncodeOptions& options) const {
  std::vector<Encoding> all;
  size_t longest = 0;
  for (const std::string& text : texts) {
    all.push_back(unpadded(text, {}, options));
    longest = std::max(longest, all.back().ids.size());
  }
  if (padding())
    for (Encoding& e : all) pad(e, *padding(), longest);
  return all;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  for (const TokenId id : ids) {
    const AddedToken* added = state_->added.find(id);
    const auto token =
        added ? std::optional<std::string_view>(added->content) : state_->parts.model->token_of(id);
    if (!token) continue;
    if (skip_special_tokens && added && added->special) continue;
    tokens.emplace_back(*token);
  }
  if (state_->parts.decoder) state_->parts.decoder->decode(tokens);
  std::string out;
  for (const std::string& token : tokens) {
    if (!state_->parts.decoder && &token != tokens.data()) out += ' ';
    out += token;
  }
  return out;
}

std::optional<TokenId> Tokenizer::token_to_id(std::string_view token) const {
  if (const AddedToken* added = state_->added.find(token)) return added->id;
  return state_->parts.model->id_of(token);
}

std::optional<std::string> Tokenizer::id_to_token(TokenId id) const {
  if (const AddedToken* added = state_->added.find(id)) return added->content;
  const auto token = state_->parts.model->token_of(id);
  return token ? std::optional(std::string(*token)) : std::nullopt;
}

size_t Tokenizer::vocab_size() const {
  size_t size = state_->parts.model->size();
  for (const AddedToken& token : state_->added.all())
    if (!state_->parts.model->token_of(token.id)) ++size;
  return size;
}

std::vector<SpecialToken> Tokenizer::special_tokens() const {
  std::vector<SpecialToken> all;
  for (const AddedToken& token : state_->added.all())
    if (token.special) all.push_back({token.content, token.id});
  return all;
}

std::optional<TokenId> Tokenizer::named_token(std::string_view role) const {
  const auto found = state_->parts.roles.find(role);
  return found == state_->parts.roles.end() ? std::nullopt : std::optional(found->second);
}

const std::string& Tokenizer::chat_template() const { return state_->parts.chat_template; }
const std::optional<Truncation>& Tokenizer::truncation() const { return state_->parts.truncation; }
const std::optional<Padding>& Tokenizer::padding() const { return state_->parts.padding; }
void Tokenizer::set_truncation(std::optional<Truncation> t) { state_->parts.truncation = t; }
void Tokenizer::set_padding(std::optional<Padding> padding) { state_->parts.padding = padding; }

// ---- streams

std::string DecodeStream::step(TokenId id) {
  const AddedToken* added = tokenizer_->state_->added.find(id);
  if (skip_special_ && added && added->special) return "";
  ids_.push_back(id);
  return rest(false);
}
std::string DecodeStream::finish() { return rest(true); }

/// What the ids that were not given yet add to the text of those before them: a decoder may look at
/// what is at a text's beginning, so that one token goes before.
std::string DecodeStream::rest(bool whole) {
  constexpr size_t kMostHeld = 16;  // a character has at most four bytes, and a token one or more
  constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  const std::span<const TokenId> all(ids_);
  const std::string before = tokenizer_->decode(all.first(given_), skip_special_);
  std::string text = tokenizer_->decode(all, skip_special_);
  // Bytes that are no text together with those before them.
  if (!text.starts_with(before))
    text = before + tokenizer_->decode(all.subspan(given_), skip_special_);
  const bool held = text.ends_with(kReplacement) && !whole && ids_.size() - given_ < kMostHeld;
  if (held) return "";
  if (text.size() <= before.size()) {
    if (!whole && ids_.size() - given_ > 1) ids_.pop_back();  // it adds nothing
    return "";
  }
  ids_.erase(ids_.begin(), ids_.begin() + static_cast<ptrdiff_t>(given_));
  given_ = ids_.size();
  return text.substr(before.size());
}

}  // namespace weft::text
