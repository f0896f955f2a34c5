// Texts to train on: found in folders, cut into tokens once, kept in a mapped file, and read in an
// order that depends on a seed alone.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/io/safetensors.h"
#include "weft/text/tokenizer.h"

namespace weft::llm {

struct TextFile {
  std::string path, name;  ///< name: within the folder that was given
  bool asked_for = false;  ///< named itself, not found in a folder
};

/// Of files, those; of folders, all texts in them (.txt, .md, .rst, .text, gzipped ones too), not
/// links. In an order that depends on their names alone and mixes folders. Errors: "train.data"
/// where there are none, file.*.
std::vector<TextFile> find_texts(const std::vector<std::string>& paths);

/// The text, inflated where it is gzipped; nothing of a file found in a folder that is empty or not
/// UTF-8. Errors: "train.data" for one that was asked for, file.*, gzip.*.
std::optional<std::string> read_text(const TextFile& file);

using FilesDone = FunctionRef<void(size_t done, size_t all)>;

/// A tokenizer.json of byte pairs, with <|endoftext|> as its first token.
std::string learn_tokenizer(std::span<const TextFile> files, size_t vocabulary, FilesDone progress);

struct TokenCounts {
  int64_t training = 0, validation = 0;
  int64_t files = 0, left_out = 0;
};
/// Writes the tokens of all texts, `end` behind each, to a safetensors file of u16 or u32:
/// "training", and "validation" with the last `share` of them. Files are read by all threads; the
/// result does not depend on how many. Errors: "train.data".
TokenCounts write_tokens(const std::string& path, std::span<const TextFile> files,
                         const text::Tokenizer& tokenizer, std::optional<text::TokenId> end,
                         double share, FilesDone progress);

/// What write_tokens() wrote, mapped.
class TokenFile {
 public:
  /// Errors: safetensors.*, "train.data" for a file of something else.
  TokenFile(const std::string& path, int64_t vocabulary);

  enum class Part : uint8_t { Training, Validation };
  int64_t size(Part part) const;
  uint64_t fingerprint() const { return fingerprint_; }  ///< of all tokens
  /// out.size() tokens from `at` on, within the part. Errors: "train.data" where one is none of the
  /// vocabulary's.
  void read(Part part, int64_t at, std::span<int32_t> out) const;

 private:
  const HostArray& array(Part part) const;

  std::string path_;
  SafetensorsContent content_;
  int64_t vocabulary_;
  uint64_t fingerprint_ = 0;
};

/// Where the texts of training steps begin: in every epoch all windows of `context` tokens once,
/// from another place on and in another order. Any sample can be asked for.
class WindowOrder {
 public:
  /// Errors: "train.data" where the tokens make up less than two windows.
  WindowOrder(int64_t tokens, int64_t context, uint64_t seed);
  int64_t per_epoch() const { return windows_; }
  int64_t start(int64_t sample);

 private:
  void shuffle(int64_t epoch);

  int64_t windows_, context_;
  uint64_t seed_;
  int64_t epoch_ = -1;
  std::vector<int64_t> order_;
};

}  // namespace weft::llm
