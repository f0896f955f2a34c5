#include "weft/onnx/characters.h"

#include <cstdint>

#include "weft/base/utf8.h"

namespace weft::onnx {
namespace {

// Letters [first, last]: the small one is `distance` after the capital, or (1) capitals have even
// or odd numbers as `first` has, each followed by its small letter. Unicode 15, UnicodeData.txt.
struct CaseRange {
  char32_t first, last;  // capitals
  int distance;
};
constexpr CaseRange kCases[] = {
    {'A', 'Z', 32},      {0xc0, 0xd6, 32},   {0xd8, 0xde, 32},   {0x100, 0x12e, 1},
    {0x132, 0x136, 1},   {0x139, 0x147, 1},  {0x14a, 0x176, 1},  {0x178, 0x178, -121},
    {0x179, 0x17d, 1},   {0x386, 0x386, 38}, {0x388, 0x38a, 37}, {0x38c, 0x38c, 64},
    {0x38e, 0x38f, 63},  {0x391, 0x3a1, 32}, {0x3a3, 0x3ab, 32}, {0x400, 0x40f, 80},
    {0x410, 0x42f, 32},  {0x460, 0x480, 1},  {0x48a, 0x4be, 1},  {0x4c0, 0x4c0, 15},
    {0x4c1, 0x4cd, 1},   {0x4d0, 0x52e, 1},  {0x531, 0x556, 48}, {0x1e00, 0x1e94, 1},
    {0x1ea0, 0x1efe, 1},
};

}  // namespace

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  for (size_t i = 0; i < text.size();) {
    const bool valid = utf8_length(text, i) != 0;
    out += valid ? next_code_point(text, i) : 0xfffd;
    if (!valid) ++i;
  }
  return out;
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  for (const char32_t c : text) append_utf8(out, c);
  return out;
}

char32_t to_lower(char32_t c) {
  for (const CaseRange& r : kCases)
    if (c >= r.first && c <= r.last && (r.distance != 1 || (c - r.first) % 2 == 0))
      return static_cast<char32_t>(static_cast<int>(c) + r.distance);
  return c;
}

char32_t to_upper(char32_t c) {
  if (c == 0x3c2) return 0x3a3;  // a sigma at the end of a word
  for (const CaseRange& r : kCases) {
    const auto capital = static_cast<char32_t>(static_cast<int>(c) - r.distance);
    if (capital >= r.first && capital <= r.last &&
        (r.distance != 1 || (capital - r.first) % 2 == 0))
      return capital;
  }
  return c;
}

}  // namespace weft::onnx
