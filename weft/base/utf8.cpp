#include "weft/base/utf8.h"

namespace weft {
namespace {

/// Of the sequence that this byte begins; 0: none begins so.
size_t length_of(unsigned first) {
  return first < 0x80   ? 1
         : first < 0xc2 ? 0
         : first < 0xe0 ? 2
         : first < 0xf0 ? 3
         : first < 0xf5 ? 4
                        : 0;
}

/// How many bytes at `at` begin some sequence: all of it where it is valid.
size_t valid_bytes(std::string_view text, size_t at, size_t length) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  size_t i = 1;
  for (; i < length && at + i < text.size(); ++i) {
    // What a second byte may be keeps out overlong forms, surrogates and what is past U+10FFFF.
    const unsigned low = i > 1 ? 0x80 : first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = i > 1 ? 0xbf : first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (byte(at + i) < low || byte(at + i) > high) break;
  }
  return i;
}

}  // namespace

size_t utf8_length(std::string_view text, size_t at) {
  const size_t length = length_of(static_cast<unsigned char>(text[at]));
  return length <= 1 || valid_bytes(text, at, length) == length ? length : 0;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const size_t length = length_of(static_cast<unsigned char>(text[at]));
    const size_t valid = length == 0 ? 1 : valid_bytes(text, at, length);
    if (valid == length) {
      out.append(text.substr(at, length));
    } else {
      append_utf8(out, 0xfffd);
    }
    at += valid;
  }
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  const auto tail = [&](char32_t bits) { out += static_cast<char>(0x80 | (bits & 0x3f)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  if (c < 0x800) {
    out += static_cast<char>(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    out += static_cast<char>(0xe0 | c >> 12);
    tail(c >> 6);
  } else {
    out += static_cast<char>(0xf0 | c >> 18);
    tail(c >> 12);
    tail(c >> 6);
  }
  tail(c);
}

}  // namespace weft
