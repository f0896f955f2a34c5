// Regex: RE2's syntax, whole texts only, in time proportional to pattern times text (Thompson
// 1968).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::onnx {

/// Code points that match, as ranges.
struct CharacterSet {
  std::vector<std::pair<char32_t, char32_t>> ranges;
  bool negated = false;
  bool fold_case = false;

  bool contains(char32_t c) const;
};

/// Syntax: github.com/google/re2/wiki/Syntax, without Unicode classes (\p) and \C. Throws an Error
/// ("onnx.regex") with the place and what to do for a pattern that is none.
/// Example: Regex("(\\w+)@gmail\\.com").matches("a_b@gmail.com").
class Regex {
 public:
  explicit Regex(std::string_view pattern);
  /// Whether all of the text matches.
  bool matches(std::string_view text) const;

 private:
  friend class RegexCompiler;
  enum class Op : uint8_t {
    Set,
    Jump,
    Split,
    TextBegin,
    TextEnd,
    LineBegin,
    LineEnd,
    Word,
    NotWord,
    Match
  };
  struct Step {
    Op op;
    uint32_t to = 0, or_to = 0;  // of Jump and Split; of Set which one
  };
  bool holds(Op assertion, const std::u32string& text, size_t at) const;
  void reach(uint32_t step, const std::u32string& text, size_t at, std::vector<uint32_t>& reached,
             std::vector<uint8_t>& seen) const;

  std::vector<Step> steps_;
  std::vector<CharacterSet> sets_;
};

}  // namespace weft::onnx
