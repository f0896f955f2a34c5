// Unicode as far as operators on strings need it: UTF-8, simple case mappings of bicameral scripts.
#pragma once

#include <string>
#include <string_view>

namespace weft::onnx {

/// Code points; U+FFFD for each byte that is no UTF-8.
std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);
/// One to one mappings of Latin, Greek, Cyrillic and Armenian letters; others stay.
char32_t to_lower(char32_t c);
char32_t to_upper(char32_t c);

}  // namespace weft::onnx
