// Pictures of any format that is read: by their first bytes, with the channels and the size that a
// model takes.
#pragma once

#include <string>
#include <string_view>

#include "weft/io/host_array.h"

namespace weft {

// AsItIs keeps what the file has. Grey is 0.299 red + 0.587 green + 0.114 blue (ITU-R BT.601);
// opacity is dropped, or full where there was none.
enum class Channels : uint8_t { AsItIs = 0, Grey = 1, Rgb = 3, Rgba = 4 };

// (height, width, channels), u8, or u16 of a PNG or PNM with 16 bits. PNG, BMP and PNM; JPEG, WebP,
// TIFF and JPEG 2000 where their libraries are installed.
HostArray read_picture(const std::string& path, Channels channels = Channels::AsItIs);
HostArray parse_picture(std::span<const std::byte> data, std::string_view what,
                        Channels channels = Channels::AsItIs);

// What those do to a picture that was read, and more: the upper 8 bits of 16; another size, each
// pixel from the four that are nearest (interpolate() with Resize::Linear, rounded).
HostArray with_channels(const HostArray& picture, Channels channels);
HostArray with_8_bits(const HostArray& picture);
HostArray resized(const HostArray& picture, int64_t height, int64_t width);

}  // namespace weft
