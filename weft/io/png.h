// PNG images (ISO/IEC 15948) as arrays.
#pragma once

#include <string>
#include <string_view>

#include "weft/io/host_array.h"

namespace weft {

// (height, width, channels): grey, grey and alpha, red green blue, or these and alpha. u8, with
// fewer bits scaled to 0 to 255 and palettes looked up; u16 where the file has 16 bits. Interlaced
// images too. Colours that count as transparent without an alpha channel, gamma and colour spaces
// are not looked at.
HostArray read_png(const std::string& path);
HostArray parse_png(std::span<const std::byte> data, std::string_view what);

}  // namespace weft
