#include "weft/io/pictures.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/bmp.h"
#include "weft/io/jpeg.h"
#include "weft/io/jpeg2000.h"
#include "weft/io/png.h"
#include "weft/io/pnm.h"
#include "weft/io/tiff.h"
#include "weft/io/webp.h"

namespace weft {

namespace {

template <class T>
std::span<const T> elements(const HostArray& array) {
  return {reinterpret_cast<const T*>(array.bytes.data()), array.bytes.size() / sizeof(T)};
}

/// A picture of these sizes whose elements `fill` writes.
template <class T, class Fill>
HostArray made(DType dtype, int64_t height, int64_t width, int64_t channels, const Fill& fill) {
  const int64_t shape[] = {height, width, channels};
  const auto bytes = checked_bytes(dtype, shape);
  if (!bytes) fail("picture", "{} by {} pixels are more than memory can hold", height, width);
  std::vector<std::byte> data(static_cast<size_t>(*bytes));
  fill(std::span<T>(reinterpret_cast<T*>(data.data()), data.size() / sizeof(T)));
  return HostArray::owned(dtype, {height, width, channels}, std::move(data));
}

void require_picture(const HostArray& p) {
  const bool is_one = p.shape.size() == 3 && p.shape[2] >= 1 && p.shape[2] <= 4;
  if (!is_one || (p.dtype != DType::U8 && p.dtype != DType::U16))
    fail("picture", "a picture is u8 or u16 (height, width, 1 to 4): got {} of shape {}",
         name(p.dtype), shape_text(p.shape));
}

/// Calls f with an element of the picture's type.
template <class F>
HostArray by_type(const HostArray& p, const F& f) {
  require_picture(p);
  return p.dtype == DType::U8 ? f(uint8_t()) : f(uint16_t());
}

/// Colours of one pixel with `from` channels as red, green, blue and opacity.
template <class T>
void widen(const T* pixel, int64_t from, T* rgba) {
  const bool is_grey = from <= 2;
  for (int i = 0; i < 3; ++i) rgba[i] = is_grey ? pixel[0] : pixel[i];
  rgba[3] = from % 2 == 0 ? pixel[from - 1] : static_cast<T>(~T{0});
}

template <class T>
void write_pixel(const T* rgba, int64_t to, T* out) {
  if (to == 1) {
    const double grey = 0.299 * rgba[0] + 0.587 * rgba[1] + 0.114 * rgba[2];
    out[0] = static_cast<T>(std::lround(grey));
  } else {
    std::copy_n(rgba, to, out);
  }
}

/// Where output i of n lies among m inputs: the two neighbours, and the second's share.
struct Between {
  int64_t low, high;
  double share;
};
Between between(int64_t i, int64_t n, int64_t m) {
  const double at =
      (static_cast<double>(i) + 0.5) * static_cast<double>(m) / static_cast<double>(n);
  const double inside = std::clamp(at - 0.5, 0.0, static_cast<double>(m - 1));
  const auto low = static_cast<int64_t>(inside);
  return {low, std::min(low + 1, m - 1), inside - static_cast<double>(low)};
}

bool begins(std::span<const std::byte> data, std::string_view signature) {
  return data.size() >= signature.size() &&
         std::memcmp(data.data(), signature.data(), signature.size()) == 0;
}

using Bytes = std::span<const std::byte>;
struct PictureFormat {
  bool (*is_it)(Bytes);
  HostArray (*parse)(Bytes, std::string_view what);
};
constexpr PictureFormat kFormats[] = {
    {[](Bytes data) { return begins(data, "\x89PNG"); }, parse_png},
    {[](Bytes data) { return begins(data, "\xff\xd8\xff"); }, parse_jpeg},
    {[](Bytes data) { return begins(data, "BM"); }, parse_bmp},
    {is_pnm, parse_pnm},
    {is_webp, [](Bytes data, std::string_view what) { return parse_webp(data, what); }},
    {is_tiff, [](Bytes data, std::string_view what) { return parse_tiff(data, what); }},
    {is_jpeg2000, [](Bytes data, std::string_view what) { return parse_jpeg2000(data, what); }},
};

}  // namespace

HostArray parse_picture(Bytes data, std::string_view what, Channels channels) {
  for (const PictureFormat& format : kFormats)
    if (format.is_it(data)) return with_channels(format.parse(data, what), channels);
  fail_runtime("picture.format",
               "{}: begins as no picture does; PNG, JPEG, BMP, PNM (P1 to P6), WebP, TIFF and "
               "JPEG 2000 are read",
               what);
}

HostArray read_picture(const std::string& path, Channels channels) {
  return parse_picture(MappedFile(path).bytes(), path, channels);
}

HostArray with_channels(const HostArray& p, Channels channels) {
  return by_type(p, [&]<class T>(T) {
    const int64_t from = p.shape[2], to = static_cast<int64_t>(channels);
    if (to == 0 || to == from) return p;
    return made<T>(p.dtype, p.shape[0], p.shape[1], to, [&](std::span<T> out) {
      const std::span<const T> in = elements<T>(p);
      T rgba[4];
      for (size_t i = 0, o = 0; o < out.size();
           i += static_cast<size_t>(from), o += static_cast<size_t>(to)) {
        widen(&in[i], from, rgba);
        write_pixel(rgba, to, &out[o]);
      }
    });
  });
}

HostArray with_8_bits(const HostArray& p) {
  require_picture(p);
  if (p.dtype == DType::U8) return p;
  return made<uint8_t>(DType::U8, p.shape[0], p.shape[1], p.shape[2], [&](std::span<uint8_t> out) {
    const auto in = elements<uint16_t>(p);
    std::transform(in.begin(), in.end(), out.begin(),
                   [](uint16_t x) { return static_cast<uint8_t>(x >> 8); });
  });
}

HostArray resized(const HostArray& p, int64_t height, int64_t width) {
  if (height < 1 || width < 1) fail("picture", "cannot be {} by {} pixels", height, width);
  return by_type(p, [&]<class T>(T) {
    const int64_t from_height = p.shape[0], from_width = p.shape[1], channels = p.shape[2];
    if (height == from_height && width == from_width) return p;
    if (from_height == 0 || from_width == 0) fail("picture", "a picture without pixels");
    return made<T>(p.dtype, height, width, channels, [&](std::span<T> out) {
      const std::span<const T> in = elements<T>(p);
      const auto at = [&](int64_t y, int64_t x, int64_t c) {
        return static_cast<double>(in[static_cast<size_t>((y * from_width + x) * channels + c)]);
      };
      size_t o = 0;
      for (int64_t i = 0; i < height; ++i) {
        const Between y = between(i, height, from_height);
        for (int64_t j = 0; j < width; ++j) {
          const Between x = between(j, width, from_width);
          for (int64_t c = 0; c < channels; ++c) {
            const double above = std::lerp(at(y.low, x.low, c), at(y.low, x.high, c), x.share);
            const double below = std::lerp(at(y.high, x.low, c), at(y.high, x.high, c), x.share);
            out[o++] = static_cast<T>(std::lround(std::lerp(above, below, y.share)));
          }
        }
      }
    });
  });
}

}  // namespace weft
