// JPEG 2000 images (ISO/IEC 15444) as arrays, by OpenJPEG, which is loaded when the first image is
// read (Debian: libopenjp2-7) and is not needed otherwise.
#pragma once

#include <string_view>

#include "weft/io/archive.h"

namespace weft {

bool is_jpeg2000(std::span<const std::byte> data);

// u8 (height, width, channels): 1 to 4 as the file has them, JP2 files or codestreams alone; other
// bits than 8 are scaled to 0 to 255. Channels of one size, in RGB or grey.
HostArray parse_jpeg2000(std::span<const std::byte> data, std::string_view what,
                         const UnpackLimits& limits = {});

bool has_jpeg2000_library();

}  // namespace weft
