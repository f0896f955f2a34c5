#include <algorithm>
#include <numeric>

#include "weft/base/error.h"
#include "weft/llm/grammar.h"
#include "weft/text/parts.h"

namespace weft::llm {

namespace {
using text::TokenId;
using text::Tokenizer;

/// A token that adds the same letter wherever it is, so that what follows it is as in a text.
TokenId anchor_of(const Tokenizer& tokenizer) {
  for (TokenId id = 0; id < static_cast<TokenId>(tokenizer.vocab_size()); ++id) {
    const TokenId twice[] = {id, id};
    const std::string one = tokenizer.decode(std::span(twice, 1));
    if (one.size() == 1 && one[0] > ' ' && tokenizer.decode(twice) == one + one) return id;
  }
  fail("llm.grammar", "no token of the vocabulary is a letter; grammars need to know their texts");
}

std::string bytes_of(const Tokenizer& tokenizer, TokenId anchor, TokenId id) {
  const TokenId two[] = {anchor, id};
  std::string text = tokenizer.decode(two);
  if (text.size() < 2) return "";  // special
  text.erase(0, 1);
  const std::string token = tokenizer.id_to_token(id).value_or("");
  if (const auto byte = text::coded_byte(token)) return *byte;
  // A part of a character: its bytes are spelt, as byte-level vocabularies have them.
  if (text.find("\xef\xbf\xbd") != std::string::npos)
    return text::spelt_bytes(token).value_or(std::string());
  return text;
}
}  // namespace

GrammarVocabulary::GrammarVocabulary(const Tokenizer& tokenizer, std::vector<TokenId> end_tokens)
    : pieces_(tokenizer.vocab_size()), end_tokens_(std::move(end_tokens)) {
  const TokenId anchor = anchor_of(tokenizer);
  for (size_t id = 0; id < pieces_.size(); ++id)
    pieces_[id] = bytes_of(tokenizer, anchor, static_cast<TokenId>(id));
  build();
}

GrammarVocabulary::GrammarVocabulary(std::span<const std::string> pieces,
                                     std::vector<TokenId> end_tokens)
    : pieces_(pieces.begin(), pieces.end()), end_tokens_(std::move(end_tokens)) {
  build();
}

void GrammarVocabulary::build() {
  for (const TokenId id : end_tokens_) {
    if (id < 0 || static_cast<size_t>(id) >= pieces_.size())
      fail("llm.grammar", "end token {} is not in the vocabulary of {}", id, pieces_.size());
    pieces_[static_cast<size_t>(id)].clear();
  }
  std::vector<int32_t> order(pieces_.size());
  std::iota(order.begin(), order.end(), 0);
  const auto piece_of = [&](int32_t id) -> const std::string& {
    return pieces_[static_cast<size_t>(id)];
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return piece_of(a) != piece_of(b) ? piece_of(a) < piece_of(b) : a < b;
  });
  same_.assign(pieces_.size(), -1);
  std::vector<uint32_t> open;  // nodes on the way to the last token
  const auto close = [&](size_t depth) {
    for (; open.size() > depth; open.pop_back())
      nodes_[open.back()].end = static_cast<uint32_t>(nodes_.size());
  };
  std::string_view before;
  for (const int32_t id : order) {
    const std::string& piece = piece_of(id);
    if (piece.empty() || piece.size() > UINT16_MAX) continue;
    const size_t shared = static_cast<size_t>(
        std::mismatch(before.begin(), before.end(), piece.begin(), piece.end()).first -
        before.begin());
    close(shared);
    for (size_t i = shared; i < piece.size(); ++i) {
      open.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({0, -1, static_cast<uint16_t>(i + 1), static_cast<uint8_t>(piece[i])});
    }
    same_[static_cast<size_t>(id)] = nodes_[open.back()].token;
    nodes_[open.back()].token = id;
    before = piece;
  }
  close(0);
}

}  // namespace weft::llm
