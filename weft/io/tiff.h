// TIFF images (Adobe, TIFF 6.0) as arrays, by libtiff, which is loaded when the first image is read
// (Debian: libtiff6) and is not needed otherwise.
#pragma once

#include <string_view>

#include "weft/io/archive.h"

namespace weft {

bool is_tiff(std::span<const std::byte> data);

// u8 (height, width, channels): grey, or red green blue; the file's first picture. More than 8 bits
// are rounded down to them; opacity is not read.
HostArray parse_tiff(std::span<const std::byte> data, std::string_view what,
                     const UnpackLimits& limits = {});

bool has_tiff_library();

}  // namespace weft
