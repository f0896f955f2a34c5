#include "weft/text/added_tokens.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/io/host_array.h"
#include "weft/text/unicode.h"

namespace weft::text {
namespace {

bool ends_with_word(std::string_view text) {
  if (text.empty()) return false;
  size_t at = code_point_before(text, text.size());
  return is_word(next_code_point(text, at));
}
bool starts_with_word(std::string_view text) {
  size_t at = 0;
  return !text.empty() && is_word(next_code_point(text, at));
}

size_t spaces_before(std::string_view text, size_t begin, size_t low) {
  while (begin > low) {
    const size_t before = code_point_before(text, begin);
    size_t at = before;
    if (!is_space(next_code_point(text, at))) break;
    begin = before;
  }
  return begin;
}
size_t spaces_behind(std::string_view text, size_t end) {
  for (size_t at = end; at < text.size() && is_space(next_code_point(text, at));) end = at;
  return end;
}

void check(const AddedToken& token) {
  if (token.content.empty())
    fail_runtime("tokenizer.added", "the added token of id {} is empty; give it a text", token.id);
  if (token.content.size() > Trie::kLongestKey)
    fail_runtime("tokenizer.added",
                 "the added token of id {} has {} bytes; at most {} are possible", token.id,
                 token.content.size(), Trie::kLongestKey);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer)
    : tokens_(std::move(tokens)) {
  std::vector<std::string> contents(tokens_.size());  // as they are looked for
  std::vector<std::pair<std::string_view, int32_t>> keys[2];
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    check(token);
    const bool is_new = by_content_.emplace(token.content, i).second;
    if (!is_new || !by_id_.emplace(token.id, i).second)
      fail_runtime(
          "tokenizer.added",
          "the added token {} of id {} has the text or the id of another; each needs its own",
          quoted_name(token.content), token.id);
    // Texts are UTF-8: what is not would be found in the middle of a character alone.
    if (!is_utf8(token.content)) continue;
    const bool changes = token.normalized && normalizer != nullptr;
    contents[i] = changes ? normalizer->apply(token.content) : token.content;
    if (contents[i].size() <= Trie::kLongestKey && !contents[i].empty())
      keys[token.normalized].emplace_back(contents[i], static_cast<int32_t>(i));
  }
  for (int which = 0; which < 2; ++which) {
    // Of those that become the same the first counts.
    std::sort(keys[which].begin(), keys[which].end());
    const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
    keys[which].erase(std::unique(keys[which].begin(), keys[which].end(), same), keys[which].end());
    if (!keys[which].empty()) tries_[which] = std::make_unique<const Trie>(std::move(keys[which]));
  }
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}
const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

/// The leftmost, and the longest of those.
std::optional<AddedTokens::Match> AddedTokens::next_match(std::string_view text, size_t from,
                                                          const Trie& trie,
                                                          bool parse_special) const {
  for (size_t at = from; at < text.size(); ++at) {
    size_t length = 0;
    size_t which = 0;
    trie.for_each_prefix(text.substr(at), [&](size_t size, int32_t value) {
      length = size;
      which = static_cast<size_t>(value);
    });
    if (length == 0) continue;
    const AddedToken& token = tokens_[which];
    const bool inside = token.single_word && (ends_with_word(text.substr(0, at)) ||
                                              starts_with_word(text.substr(at + length)));
    if (inside || (token.special && !parse_special)) {
      at += length - 1;
      continue;
    }
    return Match{at, at + length, &token};
  }
  return {};
}

void AddedTokens::cut(std::string_view text, bool is_normalized, bool parse_special,
                      Sink sink) const {
  const auto& trie = tries_[is_normalized];
  size_t last = 0;  // what is before it has been given
  for (size_t from = 0; trie != nullptr;) {
    const std::optional<Match> match = next_match(text, from, *trie, parse_special);
    if (!match) break;
    from = match->end;
    size_t begin = match->begin, end = match->end;
    if (match->token->lstrip) begin = std::max(spaces_before(text, begin, 0), last);
    if (match->token->rstrip) end = spaces_behind(text, end);
    if (begin >= end) continue;  // nothing but spaces that the one before it took
    if (last < begin) sink(text.substr(last, begin - last), last == 0, -1);
    sink(text.substr(begin, end - begin), begin == 0, match->token->id);
    last = end;
  }
  if (last < text.size()) sink(text.substr(last), last == 0, -1);
}

}  // namespace weft::text
