// Windows bitmaps (BMP) as arrays.
#pragma once

#include <string_view>

#include "weft/io/host_array.h"

namespace weft {

// u8 (height, width, channels): red green blue, and opacity where the file says which bits it has.
// 1, 4 and 8 bits with a palette, 16, 24 and 32 bits, with masks too, from above or below. Not
// compressed ones. Format: learn.microsoft.com/windows/win32/gdi/bitmap-storage.
HostArray parse_bmp(std::span<const std::byte> data, std::string_view what);

}  // namespace weft
