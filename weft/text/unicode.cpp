#include "weft/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "weft/base/error.h"
#include "weft/base/utf8.h"

namespace weft::text {
namespace {

static_assert(UTF8PROC_CATEGORY_LL == 2 && UTF8PROC_CATEGORY_LO == 5 && UTF8PROC_CATEGORY_MN == 6 &&
              UTF8PROC_CATEGORY_ND == 9 && UTF8PROC_CATEGORY_PC == 12 &&
              UTF8PROC_CATEGORY_SM == 19 && UTF8PROC_CATEGORY_ZS == 23 &&
              UTF8PROC_CATEGORY_CC == 26);

utf8proc_int32_t point(char32_t c) { return static_cast<utf8proc_int32_t>(c); }

utf8proc_option_t options_of(NormalForm form) {
  int options = UTF8PROC_STABLE;
  options |=
      form == NormalForm::C || form == NormalForm::KC ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::KC || form == NormalForm::KD) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<signed char>(c) >= 0; });
}

}  // namespace

bool is_in(char32_t c, Categories set) {
  const int category = c > 0x10ffff ? UTF8PROC_CATEGORY_CN : utf8proc_category(point(c));
  return (set >> category & 1) != 0;
}

bool is_space(char32_t c) { return (c >= 9 && c <= 13) || c == 0x85 || is_in(c, kSeparators); }

bool is_word(char32_t c) {
  if (is_in(c, kLetters | kMarks | kDecimalNumbers | kLetterNumbers | kConnectors)) return true;
  // Other_Alphabetic of PropList.txt, as far as it is no mark: letters in circles and squares.
  return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
         (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189) || c == 0x200c ||
         c == 0x200d;
}

void append_lower(std::string& out, char32_t c) {
  // The one unconditional mapping of SpecialCasing.txt to several small letters.
  if (c == 0x130)
    out += "i\u0307";
  else
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(point(c))));
}

void append_upper(std::string& out, char32_t c) {
  if (c == 0xdf)
    out += "SS";
  else
    append_utf8(out, static_cast<char32_t>(utf8proc_toupper(point(c))));
}

void append_title(std::string& out, char32_t c) {
  if (c == 0xdf)
    out += "Ss";
  else
    append_utf8(out, static_cast<char32_t>(utf8proc_totitle(point(c))));
}

int column_width(char32_t c) { return c > 0x10ffff ? 1 : utf8proc_charwidth(point(c)); }

std::string normalized(std::string_view text, NormalForm form) {
  if (is_ascii(text)) return std::string(text);
  utf8proc_uint8_t* made = nullptr;
  const utf8proc_ssize_t size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &made, options_of(form));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(made, &std::free);
  if (size == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  WEFT_CHECK(size >= 0, "normal form of {} bytes: {}", text.size(), utf8proc_errmsg(size));
  return {reinterpret_cast<const char*>(made), static_cast<size_t>(size)};
}

void for_each_grapheme(std::string_view text, FunctionRef<void(std::string_view)> cluster) {
  utf8proc_int32_t state = 0;
  char32_t before = 0;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    const char32_t c = next_code_point(text, at);
    if (here > 0 && utf8proc_grapheme_break_stateful(point(before), point(c), &state)) {
      cluster(text.substr(begin, here - begin));
      begin = here;
    }
    before = c;
  }
  if (begin < text.size()) cluster(text.substr(begin));
}

}  // namespace weft::text
