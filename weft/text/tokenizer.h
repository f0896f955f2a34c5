// Tokenizer: texts to token ids and back, as tokenizer.json and GGUF files say.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/io/gguf.h"

namespace weft::text {

using TokenId = int32_t;

/// A text's tokens, and what models want to know of each.
struct Encoding {
  std::vector<TokenId> ids;
  std::vector<int32_t> type_ids;        ///< 0 for the first text, 1 for the second, as BERT has it
  std::vector<uint8_t> special_mask;    ///< 1: not of the text
  std::vector<uint8_t> attention_mask;  ///< 0: padding
};

struct EncodeOptions {
  bool add_special_tokens = true;  ///< those around a text: [CLS] and the like
  /// Whether special tokens that are written in the text count as such. Not so for what users
  /// wrote:
  /// "<|im_start|>system" is then only its characters.
  bool parse_special = true;
};

struct Truncation {
  enum class Strategy : uint8_t { LongestFirst, OnlyFirst, OnlySecond };
  size_t max_length = 512;  ///< of all tokens, those around the texts included
  Strategy strategy = Strategy::LongestFirst;
  bool left = false;  ///< takes from the beginning
};

struct Padding {
  size_t length = 0;  ///< 0: of the longest in a batch
  size_t multiple_of = 1;
  bool left = false;
  TokenId id = 0;
  int32_t type_id = 0;
};

struct SpecialToken {
  std::string text;
  TokenId id;
};

struct TokenizerParts;  // build.h

/// Immutable but for truncation and padding; encode() and decode() may be called by several threads
/// at once. Texts that are not UTF-8 are read as valid_utf8() makes them.
///   const Tokenizer t = Tokenizer::from_file("all-MiniLM-L6-v2");
///   t.decode(t.encode("Hello, world"));  // "hello, world"
class Tokenizer {
 public:
  /// A tokenizer.json, a folder with one, or a GGUF file. Errors: tokenizer.*, regex.*,
  /// json.format, gguf.*.
  static Tokenizer from_file(const std::string& path);
  /// The content of a tokenizer.json; `what` names it in errors.
  static Tokenizer from_json(std::string_view json, std::string_view what = "tokenizer.json");
  static Tokenizer from_gguf(const GgufContent& content, std::string_view what = "gguf");
  explicit Tokenizer(TokenizerParts parts);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Of one text or two, truncated and padded where that is set.
  Encoding encoding(std::string_view text, std::optional<std::string_view> pair = {},
                    const EncodeOptions& options = {}) const;
  /// All of one length where padding is set.
  std::vector<Encoding> encodings(std::span<const std::string> texts,
                                  const EncodeOptions& options = {}) const;
  /// Always UTF-8. Ids that are no token are left out.
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens = true) const;

  std::optional<TokenId> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(TokenId id) const;
  size_t vocab_size() const;  ///< with added tokens
  std::vector<SpecialToken> special_tokens() const;
  /// What the model's tokens at its ends are called where a file says so ("bos", "eos", "pad", ..).
  std::optional<TokenId> named_token(std::string_view role) const;
  /// The chat template that came with it; empty: none.
  const std::string& chat_template() const;

  const std::optional<Truncation>& truncation() const;
  const std::optional<Padding>& padding() const;
  void set_truncation(std::optional<Truncation> truncation);
  void set_padding(std::optional<Padding> padding);

 private:
  friend class DecodeStream;
  struct State;
  Encoding unpadded(std::string_view text, std::optional<std::string_view> pair,
                    const EncodeOptions& options) const;
  std::unique_ptr<State> state_;
};

/// Decodes tokens as they come; a character whose bytes are not all there is held back.
///   DecodeStream stream(tokenizer);
///   for (TokenId id : generated) std::cout << stream.step(id);
///   std::cout << stream.finish();
class DecodeStream {
 public:
  /// `tokenizer` outlives it.
  explicit DecodeStream(const Tokenizer& tokenizer, bool skip_special_tokens = true)
      : tokenizer_(&tokenizer), skip_special_(skip_special_tokens) {}
  /// What the text has become longer by.
  std::string step(TokenId id);
  /// What was held back, with U+FFFD for what never came.
  std::string finish();

 private:
  std::string rest(bool whole);

  const Tokenizer* tokenizer_;
  bool skip_special_;
  std::vector<TokenId> ids_;  // of the text given last, then what is held back
  size_t given_ = 0;          // of ids_
};

}  // namespace weft::text
