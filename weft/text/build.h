// What a Tokenizer is made of.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/text/added_tokens.h"
#include "weft/text/parts.h"
#include "weft/text/tokenizer.h"

namespace weft::text {

/// What is put around one text (items A) or two (A and B).
struct Template {
  struct Item {
    enum Kind : uint8_t { First, Second, Tokens } kind = First;
    std::vector<TokenId> ids;  // of Tokens
    int32_t type_id = 0;
  };
  std::vector<Item> single{{Item::First, {}, 0}};
  std::vector<Item> pair{{Item::First, {}, 0}, {Item::Second, {}, 1}};
};

struct TokenizerParts {
  std::unique_ptr<const Normalizer> normalizer;  // null: none
  std::unique_ptr<PreTokenizer> pre_tokenizer;   // null: a text is one word
  std::unique_ptr<Model> model;
  std::unique_ptr<const Decoder> decoder;  // null: tokens with spaces between
  std::vector<AddedToken> added;
  Template around;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
  std::map<std::string, TokenId, std::less<>> roles;
  std::string chat_template;
};

}  // namespace weft::text
