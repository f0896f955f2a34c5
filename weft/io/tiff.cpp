#include "weft/io/tiff.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/base/shared_library.h"

namespace weft {

namespace {

// What is used of tiffio.h. Before 4.5 a handler of errors was the whole process's, and the
// library's own one prints (https://gitlab.com/libtiff/libtiff/-/blob/v4.5.0/libtiff/tiffio.h).
struct Tiff;
struct Options;
using Handler = int(Tiff*, void* user, const char* module, const char* format, va_list);
using Transfer = int64_t(void*, void*, int64_t);
using Seek = uint64_t(void*, uint64_t, int);
using CloseFile = int(void*);
using Size = uint64_t(void*);
using Map = int(void*, void** base, uint64_t* size);
using Unmap = void(void*, void*, uint64_t);
using Open = Tiff*(const char* name, const char* mode, void* user, Transfer* read, Transfer* write,
                   Seek*, CloseFile*, Size*, Map*, Unmap*, Options*);
using NewOptions = Options*();
using FreeOptions = void(Options*);
using SetMost = void(Options*, int64_t);
using SetHandler = void(Options*, Handler*, void* user);
using GetField = int(Tiff*, uint32_t tag, ...);
using ReadRgba = int(Tiff*, uint32_t width, uint32_t height, uint32_t* out, int orientation,
                     int stop_on_error);
using Close = void(Tiff*);
constexpr uint32_t kWidth = 256, kHeight = 257, kPhotometric = 262;  // TIFFTAG_
constexpr uint16_t kMinIsBlack = 1;                                  // PHOTOMETRIC_; 0 is white
constexpr int kTopLeft = 1;                                          // ORIENTATION_

struct LibTiff {
  SharedLibrary library{"libtiff.so.6", "libtiff.so"};
  Open* open = library.function<Open>("TIFFClientOpenExt");
  NewOptions* new_options = library.function<NewOptions>("TIFFOpenOptionsAlloc");
  FreeOptions* free_options = library.function<FreeOptions>("TIFFOpenOptionsFree");
  SetMost* set_most = library.function<SetMost>("TIFFOpenOptionsSetMaxSingleMemAlloc");
  SetHandler* on_error = library.function<SetHandler>("TIFFOpenOptionsSetErrorHandlerExtR");
  SetHandler* on_warning = library.function<SetHandler>("TIFFOpenOptionsSetWarningHandlerExtR");
  GetField* field = library.function<GetField>("TIFFGetFieldDefaulted");
  ReadRgba* read = library.function<ReadRgba>("TIFFReadRGBAImageOriented");
  Close* close = library.function<Close>("TIFFClose");

  bool is_whole() const {
    return open && new_options && free_options && set_most && on_error && on_warning && field &&
           read && close;
  }
};

const LibTiff& libtiff() {
  static const LibTiff library;
  return library;
}

class Decoder {
 public:
  Decoder(std::span<const std::byte> data, std::string_view what) : data_(data), what_(what) {
    if (!libtiff().is_whole())
      fail_runtime("tiff.library",
                   "{}: reading TIFF needs libtiff 4.5 or newer; install libtiff6 ({})", what,
                   libtiff().library.loaded() ? "it is older" : libtiff().library.missing());
  }
  ~Decoder() {
    if (file_ != nullptr) libtiff().close(file_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  HostArray decode(const UnpackLimits& limits) {
    open(limits);
    uint32_t width = 0, height = 0;
    uint16_t photometric = 2;
    libtiff().field(file_, kWidth, &width);
    libtiff().field(file_, kHeight, &height);
    libtiff().field(file_, kPhotometric, &photometric);
    const uint64_t pixels = uint64_t{width} * height;
    check_unpacked(checked_mul(pixels, 4).value_or(UINT64_MAX), limits, data_.size(), "tiff.size",
                   what_);
    if (pixels == 0) fail_runtime("tiff.format", "{}: has no pixels", what_);
    std::vector<uint32_t> raster(pixels);
    if (libtiff().read(file_, width, height, raster.data(), kTopLeft, 1) == 0) damaged();
    return taken(raster, width, height, photometric <= kMinIsBlack ? 1 : 3);
  }

 private:
  void open(const UnpackLimits& limits) {
    Options* options = libtiff().new_options();
    if (options == nullptr) fail_memory("memory", "{}: no memory for a TIFF decoder", what_);
    libtiff().set_most(options, static_cast<int64_t>(most_unpacked(limits, data_.size())));
    libtiff().on_error(options, keep, this);
    libtiff().on_warning(
        options, [](Tiff*, void*, const char*, const char*, va_list) { return 1; }, nullptr);
    file_ = libtiff().open(
        "", "rm", this, read, write, seek, [](void*) { return 0; }, size, map,
        [](void*, void*, uint64_t) {}, options);
    libtiff().free_options(options);
    if (file_ == nullptr) damaged();
  }

  [[noreturn]] void damaged() const {
    fail_runtime("tiff.format", "{}: {}", what_, problem_.empty() ? "is damaged" : problem_);
  }

  /// The pixels' bytes are red, green, blue, opacity.
  static HostArray taken(const std::vector<uint32_t>& raster, int64_t width, int64_t height,
                         int64_t channels) {
    std::vector<std::byte> pixels;
    pixels.reserve(raster.size() * static_cast<size_t>(channels));
    for (const uint32_t pixel : raster)
      for (int64_t c = 0; c < channels; ++c)
        pixels.push_back(static_cast<std::byte>(pixel >> 8 * c));
    return HostArray::owned(DType::U8, {height, width, channels}, std::move(pixels));
  }

  static Decoder& self(void* user) { return *static_cast<Decoder*>(user); }
  static int keep(Tiff*, void* user, const char*, const char* format, va_list values) {
    char text[200];
    std::vsnprintf(text, sizeof(text), format, values);
    self(user).problem_ = text;
    return 1;
  }
  static int64_t read(void* user, void* out, int64_t bytes) {
    Decoder& d = self(user);
    const uint64_t left = d.data_.size() - std::min<uint64_t>(d.at_, d.data_.size());
    const uint64_t count = std::min(left, static_cast<uint64_t>(std::max<int64_t>(bytes, 0)));
    if (count > 0) std::memcpy(out, d.data_.data() + d.at_, count);
    d.at_ += count;
    return static_cast<int64_t>(count);
  }
  static int64_t write(void*, void*, int64_t) { return 0; }
  static uint64_t seek(void* user, uint64_t offset, int from) {
    Decoder& d = self(user);
    d.at_ = offset + (from == SEEK_CUR ? d.at_ : from == SEEK_END ? d.data_.size() : 0);
    return d.at_;
  }
  static uint64_t size(void* user) { return self(user).data_.size(); }
  static int map(void*, void**, uint64_t*) { return 0; }

  std::span<const std::byte> data_;
  std::string_view what_;
  std::string problem_;
  uint64_t at_ = 0;
  Tiff* file_ = nullptr;
};

}  // namespace

bool is_tiff(std::span<const std::byte> data) {
  return data.size() >= 4 &&
         (std::memcmp(data.data(), "II*\0", 4) == 0 || std::memcmp(data.data(), "MM\0*", 4) == 0);
}

bool has_tiff_library() { return libtiff().is_whole(); }

HostArray parse_tiff(std::span<const std::byte> data, std::string_view what,
                     const UnpackLimits& limits) {
  return Decoder(data, what).decode(limits);
}

}  // namespace weft
