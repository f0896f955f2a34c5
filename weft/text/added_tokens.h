// Added tokens: texts that are tokens wherever they stand, found before words are.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/parts.h"
#include "weft/text/trie.h"

namespace weft::text {

struct AddedToken {
  std::string content;
  TokenId id = 0;
  bool special = false;                 // for control: left out when texts are made of tokens
  bool normalized = false;              // looked for in the normalised text
  bool single_word = false;             // not in the middle of a word
  bool lstrip = false, rstrip = false;  // takes the white space before, behind it
};

class AddedTokens {
 public:
  AddedTokens() = default;
  /// Errors ("tokenizer.added"): empty ones, too long ones, two of one content or id.
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer* normalizer);

  /// Cuts a text at those that are looked for in it: token -1 is what is between.
  using Sink = FunctionRef<void(std::string_view piece, bool first, TokenId token)>;
  void cut(std::string_view text, bool is_normalized, bool parse_special, Sink sink) const;

  const std::vector<AddedToken>& all() const { return tokens_; }
  const AddedToken* find(TokenId id) const;
  const AddedToken* find(std::string_view content) const;

 private:
  struct Match {
    size_t begin, end;
    const AddedToken* token;
  };
  std::optional<Match> next_match(std::string_view text, size_t from, const Trie& trie,
                                  bool parse_special) const;

  std::vector<AddedToken> tokens_;
  std::map<std::string, size_t, std::less<>> by_content_;
  std::map<TokenId, size_t> by_id_;
  std::unique_ptr<const Trie> tries_[2];  // of raw and of normalised text; null: none
};

}  // namespace weft::text
