// What stands for one character in a pattern: classes in brackets and escapes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "weft/text/character_set.h"

namespace weft::text {

/// A pattern while it is read.
class PatternText {
 public:
  explicit PatternText(std::string_view pattern);

  bool done() const { return at_ >= text_.size(); }
  size_t at() const { return at_; }
  char32_t peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : 0;
  }
  char32_t before() const { return text_[at_ - 1]; }
  char32_t next();
  bool take(char32_t c);
  bool take(std::u32string_view text);
  /// {n}, {n,}, {,m}, {n,m}; taken where it is one of them, at most UINT32_MAX.
  std::optional<std::pair<uint32_t, uint32_t>> counts();
  /// With the other letters of each where case is no matter.
  CodeRanges cased(CodeRanges ranges) const;
  [[noreturn]] void refuse(std::string_view problem, std::optional<size_t> where = {}) const;

  bool fold_case = false;

 private:
  uint32_t number();

  std::string written_;
  std::u32string text_;
  size_t at_ = 0;
};

/// Behind "[".
CodeRanges read_class(PatternText& source);
/// Behind "\": a character, or a set of them.
CodeRanges read_escape(PatternText& source);

}  // namespace weft::text
