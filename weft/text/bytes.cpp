#include <array>
#include <charconv>

#include "weft/base/utf8.h"
#include "weft/text/parts.h"

namespace weft::text {
namespace {

/// Bytes that print in Latin-1 stand for themselves; the others follow from U+0100 on.
struct ByteCharacters {
  ByteCharacters() {
    char32_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
      const bool prints = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
      of_byte[static_cast<size_t>(byte)] = prints ? static_cast<char32_t>(byte) : next++;
      to_byte[of_byte[static_cast<size_t>(byte)]] = static_cast<int16_t>(byte);
    }
  }
  std::array<char32_t, 256> of_byte{};
  std::array<int16_t, 0x144> to_byte = [] {
    std::array<int16_t, 0x144> none{};
    none.fill(-1);
    return none;
  }();
};

const ByteCharacters& characters() {
  static const ByteCharacters table;
  return table;
}

}  // namespace

char32_t byte_character(uint8_t byte) { return characters().of_byte[byte]; }

std::optional<uint8_t> character_byte(char32_t c) {
  const auto& to_byte = characters().to_byte;
  if (c >= to_byte.size() || to_byte[c] < 0) return {};
  return static_cast<uint8_t>(to_byte[c]);
}

std::optional<std::string> coded_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return {};
  unsigned byte = 0;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
  if (error != std::errc() || end != token.data() + 5) return {};
  return std::string(1, static_cast<char>(byte));
}

std::optional<std::string> spelt_bytes(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const std::optional<uint8_t> byte = character_byte(next_code_point(text, at));
    if (!byte) return {};
    bytes += static_cast<char>(*byte);
  }
  return bytes;
}

void append_spelling(std::string& out, std::string_view bytes) {
  for (const char byte : bytes) append_utf8(out, byte_character(static_cast<uint8_t>(byte)));
}

}  // namespace weft::text
