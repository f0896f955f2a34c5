// JPEG images (ISO/IEC 10918) as arrays, by libjpeg-turbo's TurboJPEG library, which is loaded when
// the first image is read (Debian: libturbojpeg0) and is not needed otherwise.
#pragma once

#include <string>
#include <string_view>

#include "weft/io/host_array.h"

namespace weft {

// u8 (height, width, channels): grey, or red green blue. Progressive ones too; not CMYK, not 12
// bits. Damaged and truncated files are Errors, as are those that claim more pixels than so few
// bytes can hold. Orientation and colour profiles are not looked at.
HostArray read_jpeg(const std::string& path);
HostArray parse_jpeg(std::span<const std::byte> data, std::string_view what);

bool has_jpeg_library();

}  // namespace weft
