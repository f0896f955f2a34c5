#include "weft/io/webp.h"

#include <cstring>

#include "weft/base/error.h"
#include "weft/base/shared_library.h"

namespace weft {

namespace {

// What is used of webp/decode.h, the same since libwebp 0.2
// (https://github.com/webmproject/libwebp/blob/v1.2.4/src/webp/decode.h).
struct Features {  // WebPBitstreamFeatures
  int width, height, has_alpha, has_animation, format;
  uint32_t pad[5];
};
using GetFeatures = int(const uint8_t*, size_t, Features*, int version);  // 0: they are there
using DecodeInto = uint8_t*(const uint8_t*, size_t, uint8_t* out, size_t bytes, int stride);
constexpr int kVersion = 0x0209;  // WEBP_DECODER_ABI_VERSION; its upper byte must be the library's

struct WebP {
  SharedLibrary library{"libwebp.so.7", "libwebp.so.6", "libwebp.so"};
  GetFeatures* features = library.function<GetFeatures>("WebPGetFeaturesInternal");
  DecodeInto* rgb = library.function<DecodeInto>("WebPDecodeRGBInto");
  DecodeInto* rgba = library.function<DecodeInto>("WebPDecodeRGBAInto");

  bool is_whole() const { return features && rgb && rgba; }
};

const WebP& webp() {
  static const WebP library;
  return library;
}

}  // namespace

bool is_webp(std::span<const std::byte> data) {
  return data.size() >= 12 && std::memcmp(data.data(), "RIFF", 4) == 0 &&
         std::memcmp(data.data() + 8, "WEBP", 4) == 0;
}

bool has_webp_library() { return webp().is_whole(); }

HostArray parse_webp(std::span<const std::byte> data, std::string_view what,
                     const UnpackLimits& limits) {
  if (!webp().is_whole())
    fail_runtime("webp.library", "{}: reading WebP needs libwebp; install libwebp7 ({})", what,
                 webp().library.loaded() ? "it is older" : webp().library.missing());
  const auto* bytes = reinterpret_cast<const uint8_t*>(data.data());
  Features f{};
  if (webp().features(bytes, data.size(), &f, kVersion) != 0 || f.width < 1 || f.height < 1)
    fail_runtime("webp.format", "{}: its header is damaged", what);
  if (f.has_animation != 0)
    fail_runtime("webp.format", "{}: is an animation; save one of its pictures", what);
  const int channels = f.has_alpha != 0 ? 4 : 3;
  const size_t row = static_cast<size_t>(f.width) * static_cast<size_t>(channels);
  const size_t size = row * static_cast<size_t>(f.height);
  check_unpacked(size, limits, data.size(), "webp.size", what);
  std::vector<std::byte> pixels(size);
  const auto decode = channels == 4 ? webp().rgba : webp().rgb;
  if (decode(bytes, data.size(), reinterpret_cast<uint8_t*>(pixels.data()), size,
             static_cast<int>(row)) == nullptr)
    fail_runtime("webp.format", "{}: its pixels are damaged or cut short", what);
  return HostArray::owned(DType::U8, {f.height, f.width, channels}, std::move(pixels));
}

}  // namespace weft
