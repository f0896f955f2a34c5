// Regex: the patterns that cut texts into words, in Oniguruma's syntax as far as tokenizers use it,
// found by PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "weft/base/function_ref.h"

namespace weft::text {

/// A pattern of tokenizer.json (github.com/kkos/oniguruma/blob/master/doc/RE): classes may be in
/// each other and have &&, \h is a hexadecimal digit, \w has marks, ^ and $ are those of lines.
/// Everything else is as in pcre2pattern(3). No verbs, (*...), and no options but i and s.
/// Throws an Error ("regex.pattern") with the place for what is no pattern.
///   Regex(R"(\p{L}+|\p{N}{1,3}|\s+(?!\S))").for_each_match(text, [&](size_t begin, size_t end)
///   {..});
class Regex {
 public:
  explicit Regex(std::string_view pattern);

  /// The matches of valid UTF-8 from left to right, none in another; empty ones too, but not where
  /// the one before ended. Throws an Error ("regex.steps") where finding one takes more than
  /// 10 million steps from one place, or 10 s from all.
  void for_each_match(std::string_view text, FunctionRef<void(size_t, size_t)> match) const;

 private:
  struct Code;
  std::string pattern_;
  std::shared_ptr<const Code> code_;
};

}  // namespace weft::text
