#include "weft/io/idx.h"

#include <algorithm>
#include <memory>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/reader.h"
#include "weft/io/gzip.h"
#include "weft/io/inflated_cache.h"

namespace weft {

namespace {

// Two zero bytes, an element code, the rank, then rank big-endian u32 sizes.
constexpr size_t kLongestHeader = 4 + 4 * 255;

struct ElementCode {
  uint8_t code;
  DType dtype;
};
constexpr ElementCode kElementCodes[] = {
    {0x08, DType::U8},  {0x09, DType::I8},  {0x0b, DType::I16},
    {0x0c, DType::I32}, {0x0d, DType::F32}, {0x0e, DType::F64},
};

struct IdxHeader {
  DType dtype;
  std::vector<int64_t> shape;
  size_t header_bytes;
  uint64_t data_bytes;
};

DType element_type(uint8_t code, std::string_view what) {
  for (const ElementCode& known : kElementCodes) {
    if (known.code == code) return known.dtype;
  }
  fail_runtime("idx.format",
               "{}: element code {:#04x} at offset 2 is unknown; IDX has 0x08 (u8), 0x09 (i8), "
               "0x0b (i16), 0x0c (i32), 0x0d (f32), 0x0e (f64)",
               what, code);
}

uint32_t big_endian_u32(ByteReader& reader) { return __builtin_bswap32(reader.u32()); }

IdxHeader read_header(std::span<const std::byte> data, std::string_view what) {
  ByteReader reader(data, what);
  const uint16_t zeros = reader.u16();
  if (zeros != 0) {
    fail_runtime("idx.format",
                 "{}: starts with bytes {:#04x} {:#04x}, an IDX file with two zeros; is it another "
                 "format?",
                 what, zeros & 0xff, zeros >> 8);
  }
  IdxHeader header;
  header.dtype = element_type(reader.u8(), what);
  const uint8_t rank = reader.u8();
  for (int i = 0; i < rank; ++i) header.shape.push_back(big_endian_u32(reader));
  header.header_bytes = reader.offset();
  const std::optional<int64_t> bytes = checked_bytes(header.dtype, header.shape);
  if (!bytes) {
    fail_runtime("idx.format", "{}: its shape {} of {} is more than 64 bits can count", what,
                 shape_text(header.shape), name(header.dtype));
  }
  header.data_bytes = static_cast<uint64_t>(*bytes);
  return header;
}

void check_length(const IdxHeader& header, size_t length, std::string_view what) {
  if (length - header.header_bytes == header.data_bytes) return;
  fail_runtime("idx.length",
               "{}: a shape of {} {} takes {} bytes after the {}-byte header, but {} are there; "
               "the file is cut short or damaged",
               what, shape_text(header.shape), name(header.dtype), header.data_bytes,
               header.header_bytes, length - header.header_bytes);
}

void swap_elements(std::vector<std::byte>& bytes, size_t width) {
  for (size_t at = 0; at + width <= bytes.size(); at += width) {
    std::reverse(bytes.begin() + static_cast<ptrdiff_t>(at),
                 bytes.begin() + static_cast<ptrdiff_t>(at + width));
  }
}

// A view of `data` when its bytes can be used as they lie, else a swapped copy.
HostArray array_of(std::span<const std::byte> data, std::shared_ptr<const void> owner,
                   std::string_view what) {
  IdxHeader header = read_header(data, what);
  check_length(header, data.size(), what);
  const std::span<const std::byte> content = data.subspan(header.header_bytes);
  if (bits(header.dtype) == 8 && owner != nullptr) {
    return {header.dtype, std::move(header.shape), content, std::move(owner)};
  }
  std::vector<std::byte> copy(content.begin(), content.end());
  swap_elements(copy, static_cast<size_t>(bits(header.dtype)) / 8);
  return HostArray::owned(header.dtype, std::move(header.shape), std::move(copy));
}

std::vector<std::byte> inflate_idx(std::span<const std::byte> data, std::string_view what) {
  const IdxHeader header = read_header(gunzip_prefix(data, kLongestHeader, what), what);
  return gunzip(data, header.header_bytes + header.data_bytes, what);
}

}  // namespace

HostArray parse_idx(std::span<const std::byte> data, std::string_view what) {
  if (!is_gzip(data)) return array_of(data, nullptr, what);
  return array_of(inflate_idx(data, what), nullptr, what);
}

HostArray read_idx(const std::string& path, Context& context) {
  auto source = MappedFile::open(path);
  if (!is_gzip(source->bytes())) return array_of(source->bytes(), source, path);
  const InflatedCopy copy =
      inflated_copy(*source, context, [](auto data, auto what) { return inflate_idx(data, what); });
  return array_of(copy.bytes, copy.owner, path);
}

HostArray read_idx(const std::string& path) { return read_idx(path, Context::current()); }

}  // namespace weft
