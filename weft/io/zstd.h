// Zstandard (RFC 8878) by libzstd, which is loaded when it is first needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace weft {

bool is_zstd(std::span<const std::byte> data);
bool has_zstd_library();

/// The content of all frames; an Error beyond `most` bytes, or where the library is missing.
std::vector<std::byte> unzstd(std::span<const std::byte> data, uint64_t most,
                              std::string_view what);

}  // namespace weft
