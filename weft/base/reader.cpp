#include "weft/base/reader.h"

#include <bit>

#include "weft/base/error.h"

namespace weft {

static_assert(std::endian::native == std::endian::little, "readers and writers copy host numbers");

void ByteReader::overrun(uint64_t count) const {
  fail_runtime(
      "read.truncated",
      "{}: {} bytes wanted at offset {}, but only {} of {} are left; the file is cut short "
      "or not of this format",
      what_, count, at_, remaining(), data_.size());
}

uint64_t ByteReader::long_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint8_t byte = u8();
    if (shift == 63 && byte > 1) break;
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  fail_runtime("read.truncated",
               "{}: a number at offset {} is longer than 64 bits; the file is "
               "damaged or not of this format",
               what_, at_);
}

size_t ByteReader::count(uint64_t claimed, size_t least_bytes) {
  if (claimed > remaining() / (least_bytes == 0 ? 1 : least_bytes)) {
    fail_runtime("read.truncated",
                 "{}: {} items of at least {} bytes promised at offset {}, but only {} bytes are "
                 "left; the file is cut short or damaged",
                 what_, claimed, least_bytes, at_, remaining());
  }
  return static_cast<size_t>(claimed);
}

void ByteReader::seek(uint64_t offset) {
  if (offset > data_.size()) {
    fail_runtime("read.truncated", "{}: offset {} is beyond its end at {}", what_, offset,
                 data_.size());
  }
  at_ = static_cast<size_t>(offset);
}

}  // namespace weft
