// Pre-tokenizers: how a text is cut into words.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "weft/text/parts.h"
#include "weft/text/pattern.h"

namespace weft::text {

using PreTokenizerPtr = std::unique_ptr<PreTokenizer>;

/// What becomes of the matches that a text is cut at.
enum class SplitBehavior : uint8_t {
  Removed,
  Isolated,
  MergedWithPrevious,
  MergedWithNext,
  Contiguous
};

/// `invert`: what is between the matches is what it cuts at.
PreTokenizerPtr split_pre_tokenizer(Pattern pattern, SplitBehavior behavior, bool invert = false);
/// GPT-2's pattern where `use_regex` says so; bytes become the characters that stand for them.
PreTokenizerPtr byte_level_pre_tokenizer(bool add_prefix_space, bool use_regex);
PreTokenizerPtr whitespace_pre_tokenizer();        // words and rows of other characters
PreTokenizerPtr whitespace_split_pre_tokenizer();  // at white space
PreTokenizerPtr bert_pre_tokenizer();              // at white space and punctuation
PreTokenizerPtr punctuation_pre_tokenizer(SplitBehavior behavior);
PreTokenizerPtr digits_pre_tokenizer(bool individual);
PreTokenizerPtr delimiter_pre_tokenizer(char32_t delimiter);
PreTokenizerPtr fixed_length_pre_tokenizer(size_t characters);

enum class PrependScheme : uint8_t { Never, First, Always };
/// Spaces become `replacement`; each begins a word where `split` says so.
PreTokenizerPtr metaspace_pre_tokenizer(char32_t replacement, PrependScheme prepend, bool split);

PreTokenizerPtr sequence(std::vector<PreTokenizerPtr> steps);

/// GPT-2's, github.com/openai/gpt-2/blob/master/src/encoder.py.
extern const char* const kGpt2Pattern;

}  // namespace weft::text
