// UTF-8: what is valid, code points out of it and into it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

// Length of the sequence at `at`, 0 when it is not valid: cut, overlong, a surrogate, past
// U+10FFFF.
size_t utf8_length(std::string_view text, size_t at);
bool is_utf8(std::string_view text);
// U+FFFD for each longest part of a sequence that is not whole, as the Unicode Standard's chapter
// 3.9 ("substitution of maximal subparts") has it; valid text stays.
std::string valid_utf8(std::string_view text);

// The code point at `at`, which moves behind it, of text that is valid. Of other text it is any,
// and never from behind the end.
inline char32_t next_code_point(std::string_view text, size_t& at) {
  const char32_t first = static_cast<unsigned char>(text[at++]);
  if (first < 0x80) return first;
  const auto tail = [&]() -> char32_t {
    return at < text.size() ? static_cast<unsigned char>(text[at++]) & 0x3f : 0;
  };
  if (first < 0xe0) return (first & 0x1f) << 6 | tail();
  char32_t c = first < 0xf0 ? first & 0xf : (first & 7) << 6 | tail();
  c = c << 6 | tail();
  return c << 6 | tail();
}
// Where the code point before `at` begins; at > 0.
inline size_t code_point_before(std::string_view text, size_t at) {
  do --at;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  return at;
}
void append_utf8(std::string& out, char32_t c);

}  // namespace weft
