// Makes the checksums of mutated files right again, so that fuzzing gets to what lies behind them.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>

#include "weft/base/hash.h"
#include "weft/io/gzip.h"
#include "weft/io/zip_format.h"
#include "weft/run/recording.h"

namespace weft {

template <class T>
T number_at(std::span<const std::byte> data, size_t at) {
  T value = 0;
  if (at <= data.size() && sizeof(T) <= data.size() - at)
    std::memcpy(&value, data.data() + at, sizeof(T));
  return value;
}

inline void put_u32(std::span<std::byte> data, size_t at, uint32_t value) {
  if (at <= data.size() && sizeof(value) <= data.size() - at)
    std::memcpy(data.data() + at, &value, sizeof(value));
}

/// Each block: its content's size behind the magic number and the version (recording.h), and its
/// checksum.
inline void mend_recording(std::span<std::byte> data) {
  for (size_t at = 0; data.size() - at >= recording::kHeaderBytes;) {
    const size_t size = number_at<uint32_t>(data, at + 12) + recording::kHeaderBytes;
    if (size > data.size() - at) return;
    std::memset(data.data() + at + recording::kChecksumAt, 0, sizeof(uint64_t));
    const uint64_t checksum = hash_bytes(data.data() + at, size);
    std::memcpy(data.data() + at + recording::kChecksumAt, &checksum, sizeof(checksum));
    at += size;
  }
}

/// Each chunk: its length, its type, its body, and the checksum of the last two.
inline void mend_png(std::span<std::byte> data) {
  constexpr size_t kSignature = 8, kAround = 12;
  for (size_t at = kSignature; at + kAround <= data.size();) {
    const size_t length = __builtin_bswap32(number_at<uint32_t>(data, at));
    if (length > data.size() - at - kAround) return;
    const uint32_t sum = crc32_of(data.subspan(at + 4, length + 4));
    put_u32(data, at + 8 + length, __builtin_bswap32(sum));
    at += kAround + length;
  }
}

/// Of stored members, in the directory and before their content.
inline void mend_zip(std::span<std::byte> data) {
  for (size_t at = 0; at + zip::kCentralBytes <= data.size(); ++at) {
    if (number_at<uint32_t>(data, at) != zip::kCentral) continue;
    const size_t local = number_at<uint32_t>(data, at + 42);
    const size_t names =
        size_t{number_at<uint16_t>(data, local + 26)} + number_at<uint16_t>(data, local + 28);
    const size_t begin = local + zip::kLocalBytes + names;
    const size_t bytes = number_at<uint32_t>(data, at + 20);
    if (number_at<uint16_t>(data, at + 10) != zip::kStored || begin > data.size() ||
        bytes > data.size() - begin)
      continue;
    const uint32_t sum = crc32_of(data.subspan(begin, bytes));
    put_u32(data, at + 16, sum);
    put_u32(data, local + 14, sum);
  }
}

}  // namespace weft
