// Portable bitmaps, greymaps and pixmaps (PBM, PGM, PPM: P1 to P6) as arrays.
#pragma once

#include <string_view>

#include "weft/io/host_array.h"

namespace weft {

bool is_pnm(std::span<const std::byte> data);

// (height, width, channels): grey, or red green blue; the first picture of a file. u8 scaled to 0
// to 255, or, where the largest number is above 255, u16 scaled to 0 to 65535. Format:
// netpbm.sourceforge.net/doc/pnm.html.
HostArray parse_pnm(std::span<const std::byte> data, std::string_view what);

}  // namespace weft
