// WebP images (RFC 9649) as arrays, by libwebp, which is loaded when the first image is read
// (Debian: libwebp7) and is not needed otherwise.
#pragma once

#include <string_view>

#include "weft/io/archive.h"

namespace weft {

bool is_webp(std::span<const std::byte> data);

// u8 (height, width, channels): red green blue, and opacity where the file has it. Not animations.
HostArray parse_webp(std::span<const std::byte> data, std::string_view what,
                     const UnpackLimits& limits = {});

bool has_webp_library();

}  // namespace weft
