// BpeTrainer: a byte-level tokenizer learnt from texts. Method: Sennrich et al. 2016 (arXiv
// 1508.07909) over bytes as Radford et al. 2019 have them (GPT-2).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"

namespace weft::text {

struct BpeTraining {
  size_t vocab_size = 32000;                     ///< tokens in all: special ones, 256 bytes, merges
  uint64_t min_frequency = 2;                    ///< pairs that are seen less often are not merged
  std::vector<std::string> special_tokens = {};  ///< get the lowest ids, in this order
  std::string pattern = {};  ///< a regular expression whose matches are words; empty: GPT-2's
};

/// Words are counted as texts come, so that a corpus needs no memory but for its distinct words.
/// The same texts give the same tokenizer, in whatever order they come: of pairs that are seen
/// equally often the one with the lower ids merges first.
///   BpeTrainer trainer({.vocab_size = 8192, .special_tokens = {"<|endoftext|>"}});
///   trainer.add(book);
///   write_file("tokenizer.json", trainer.train());
class BpeTrainer {
 public:
  /// Errors: tokenizer.training (a vocabulary without room for the bytes and special tokens, a
  /// special token that is empty or there twice), regex.*.
  explicit BpeTrainer(BpeTraining options);
  ~BpeTrainer();

  /// Texts that are not UTF-8 are read as valid_utf8() makes them.
  void add(std::string_view text);
  /// The content of a tokenizer.json. `progress` hears of every token that is added, and of how
  /// many there will be at most. Smaller than asked for where no more pairs are seen often enough.
  std::string train(FunctionRef<void(size_t done, size_t all)> progress) const;
  std::string train() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::text
