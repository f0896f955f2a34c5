// What the Unicode Character Database says of a code point, and the texts made by it: normal forms,
// small letters, grapheme clusters. The database is utf8proc's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/base/function_ref.h"

namespace weft::text {

/// A set of general categories: bit i is utf8proc's category i.
using Categories = uint32_t;
constexpr Categories kLetters = 0x3e, kMarks = 0x1c0, kNumbers = 0xe00, kPunctuation = 0x7f000,
                     kSeparators = 0x3800000, kOthers = 0x3c000001;
constexpr Categories kUnassigned = 1, kNonspacingMarks = 1 << 6, kDecimalNumbers = 1 << 9,
                     kLetterNumbers = 1 << 10, kConnectors = 1 << 12;

/// Of any number; what is above U+10FFFF is unassigned.
bool is_in(char32_t c, Categories set);
/// White_Space of PropList.txt.
bool is_space(char32_t c);
/// What words are made of (`\w`, Annex C of Unicode's TR 18): what is Alphabetic, marks, decimal
/// numbers, connectors, joiners.
bool is_word(char32_t c);

/// One small letter or several; itself where there is none. Without regard to what is around it.
void append_lower(std::string& out, char32_t c);
/// One capital letter, or two for the sharp s; at the beginning of a title.
void append_upper(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);

enum class NormalForm : uint8_t { C, D, KC, KD };
/// Unicode Standard Annex 15; of valid UTF-8.
std::string normalized(std::string_view text, NormalForm form);

/// Columns that a character takes on a terminal: 0, 1 or 2.
int column_width(char32_t c);

/// Calls `cluster` with each extended grapheme cluster of valid UTF-8.
void for_each_grapheme(std::string_view text, FunctionRef<void(std::string_view)> cluster);

}  // namespace weft::text
