// Gzip, zlib and deflate: decompression of untrusted bytes, bounded by a size that the caller knows
// beforehand or allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weft {

bool is_gzip(std::span<const std::byte> data);

// At most `most` bytes from the start of the content: enough to learn how long the rest must be.
std::vector<std::byte> gunzip_prefix(std::span<const std::byte> data, size_t most,
                                     std::string_view what);

// The whole content, which must be exactly `size` bytes in one gzip member whose checksum agrees.
// A size that deflate cannot reach from so few bytes is refused before anything is allocated.
std::vector<std::byte> gunzip(std::span<const std::byte> data, uint64_t size,
                              std::string_view what);
// The same of a zlib stream (RFC 1950), as formats hold within.
std::vector<std::byte> inflate_zlib(std::span<const std::byte> data, uint64_t size,
                                    std::string_view what);

// And of a deflate stream alone (RFC 1951).
std::vector<std::byte> inflate_raw(std::span<const std::byte> data, uint64_t size,
                                   std::string_view what);
// The content of a gzip file of one or more members whose size nothing says in advance: an Error
// of gzip.size beyond `most` bytes. Zeros may follow.
std::vector<std::byte> gunzip_members(std::span<const std::byte> data, uint64_t most,
                                      std::string_view what);

// The checksum of zip and gzip; `before`: of what came before.
uint32_t crc32_of(std::span<const std::byte> data, uint32_t before = 0);

// The checksum and length of the content that the last eight bytes of the file promise.
struct GzipTrailer {
  uint32_t crc32 = 0;
  uint32_t size_mod_2_32 = 0;
};
GzipTrailer gzip_trailer(std::span<const std::byte> data, std::string_view what);

// As gzip -9 would: for tests and tools.
std::vector<std::byte> gzip(std::span<const std::byte> data);

}  // namespace weft
