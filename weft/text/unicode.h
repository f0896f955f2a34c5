// What the Unicode Character Database says of a code point, and the texts made by it: normal forms,
// small letters, grapheme clusters.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/function_ref.h"

namespace weft::text {

enum class Category : uint8_t {
  Cn,
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,  // clang-format off
  Pe, Pi, Pf, Po, Sm, Sc, Sk, So, Zs, Zl, Zp, Cc, Cf, Cs, Co  // clang-format on
};
constexpr int kCategories = 30;
/// A set of categories: bit i is category i.
using Categories = uint32_t;
constexpr Categories of(Category c) { return Categories{1} << static_cast<int>(c); }
constexpr Categories kLetters = 0x3e, kMarks = 0x1c0, kNumbers = 0xe00, kPunctuation = 0x7f000,
                     kSymbols = 0x780000, kSeparators = 0x3800000, kOthers = 0x3c000001;

/// Where a grapheme cluster may end: Unicode Standard Annex 29, table 2.
enum class GraphemeBreak : uint8_t {
  Other,
  CR,
  LF,
  Control,
  Extend,
  ZWJ,
  RegionalIndicator,  // clang-format off
  Prepend, SpacingMark, L, V, T, LV, LVT  // clang-format on
};

struct CharacterRecord {
  uint8_t category, combining_class, grapheme_break, flags;

  bool in(Categories set) const { return (set >> category & 1) != 0; }
  bool is_alphabetic() const { return (flags & 1) != 0; }
  bool is_pictographic() const { return (flags & 2) != 0; }
};

/// Of any number up to U+10FFFF; what is above is as unassigned.
const CharacterRecord& character(char32_t c);

inline bool is_in(char32_t c, Categories set) { return character(c).in(set); }
/// White_Space of PropList.txt.
bool is_space(char32_t c);
/// What words are made of: Annex C of Unicode Technical Standard 18.
bool is_word(char32_t c);

/// One small letter or several; itself where there is none. Without regard to what is around it.
void append_lower(std::string& out, char32_t c);
/// CaseFolding.txt where it is one code point, else itself.
char32_t folded(char32_t c);

enum class NormalForm : uint8_t { C, D, KC, KD };
/// Unicode Standard Annex 15; of valid UTF-8.
std::string normalized(std::string_view text, NormalForm form);

/// Calls `cluster` with each extended grapheme cluster of valid UTF-8.
void for_each_grapheme(std::string_view text, FunctionRef<void(std::string_view)> cluster);

/// Code points as ranges [first, last]: sorted, apart from each other.
using CodeRanges = std::vector<std::pair<char32_t, char32_t>>;
constexpr char32_t kLastCodePoint = 0x10ffff;
CodeRanges ranges_where(FunctionRef<bool(const CharacterRecord&)> has);
/// By its long name in small letters, as "han"; none where there is no such script.
CodeRanges ranges_of_script(std::string_view name);

}  // namespace weft::text
