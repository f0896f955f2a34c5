// Varints where there is room for them: what writes millions of small numbers asks for room once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

constexpr size_t kLongestVarint = 10;

/// LEB128, as ByteWriter::varint() has it; returns where the next byte goes.
template <class Byte>
Byte* put_varint(Byte* at, uint64_t v) {
  for (; v >= 0x80; v >>= 7) *at++ = static_cast<Byte>(v | 0x80);
  *at++ = static_cast<Byte>(v);
  return at;
}

}  // namespace weft
