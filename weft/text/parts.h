// The parts a tokenizer is made of: text is normalised, cut into words, words become tokens, and
// tokens become text again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"

namespace weft::text {

using TokenId = int32_t;

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Valid UTF-8 to valid UTF-8.
  virtual std::string apply(std::string_view text) const = 0;
};

/// A piece of a text, and whether it is where the whole text begins.
using PieceSink = FunctionRef<void(std::string_view piece, bool first)>;

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Gives the pieces one after another; none is empty. They live as long as the call.
  virtual void split(std::string_view text, bool first, PieceSink piece) const = 0;
  /// Asks the last step to leave bytes as they are instead of spelling each as a character, for a
  /// model that takes them so; false: it does not spell bytes.
  virtual bool leave_bytes() { return false; }
};

class Model {
 public:
  virtual ~Model() = default;
  /// Adds the tokens of a word.
  virtual void tokenize(std::string_view word, std::vector<TokenId>& out) const = 0;
  virtual std::optional<TokenId> id_of(std::string_view token) const = 0;
  virtual std::optional<std::string_view> token_of(TokenId id) const = 0;
  virtual size_t size() const = 0;  // tokens
  /// From take_bytes() on words are bytes, each of which stands for the character that
  /// byte_character() gives.
  virtual bool can_take_bytes() const { return false; }
  virtual void take_bytes() {}
};

class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Tokens to texts that, joined, are the text.
  virtual void decode(std::vector<std::string>& tokens) const = 0;
};

// ---- bytes as characters: GPT-2's byte_encoder

/// The printable character that stands for a byte.
char32_t byte_character(uint8_t byte);
/// The byte that a character stands for; none: for none.
std::optional<uint8_t> character_byte(char32_t c);
/// The bytes that a text of such characters stands for; none where it has others.
std::optional<std::string> spelt_bytes(std::string_view text);
/// The byte of a token "<0x0A>"; none: of others.
std::optional<std::string> coded_byte(std::string_view token);
void append_spelling(std::string& out, std::string_view bytes);

}  // namespace weft::text
