#include "weft/io/jpeg.h"

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/shared_library.h"

namespace weft {

namespace {

// What is used of turbojpeg.h, the same since libjpeg-turbo 2.0
// (https://github.com/libjpeg-turbo/libjpeg-turbo/blob/2.1.5/turbojpeg.h).
using Handle = void*;
using Init = Handle();
using ReadHeader = int(Handle, const unsigned char* data, unsigned long bytes, int* width,
                       int* height, int* subsampling, int* colour_space);
using Decompress = int(Handle, const unsigned char* data, unsigned long bytes, unsigned char* out,
                       int width, int pitch, int height, int pixel_format, int flags);
using ErrorText = char*(Handle);
using Destroy = int(Handle);
constexpr int kSpaceGrey = 2, kSpaceCmyk = 3, kSpaceYcck = 4;  // TJCS_
constexpr int kPixelsRgb = 0, kPixelsGrey = 6;                 // TJPF_
// TJFLAG_ACCURATEDCT, so that every version gives the same pixels; _STOPONWARNING: a warning is a
// file that is cut short or damaged; _LIMITSCANS: at most 500, each of which costs a pass.
constexpr int kFlags = 4096 | 8192 | 32768;

struct TurboJpeg {
  SharedLibrary library{"libturbojpeg.so.0", "libturbojpeg.so"};
  Init* init = library.function<Init>("tjInitDecompress");
  ReadHeader* header = library.function<ReadHeader>("tjDecompressHeader3");
  Decompress* decompress = library.function<Decompress>("tjDecompress2");
  ErrorText* error = library.function<ErrorText>("tjGetErrorStr2");
  Destroy* destroy = library.function<Destroy>("tjDestroy");

  bool is_whole() const { return init && header && decompress && error && destroy; }
};

const TurboJpeg& turbo_jpeg() {
  static const TurboJpeg library;
  return library;
}

class Decoder {
 public:
  Decoder(std::span<const std::byte> data, std::string_view what)
      : library_(turbo_jpeg()), data_(data), what_(what) {
    if (!library_.is_whole()) {
      fail_runtime("jpeg.library",
                   "{}: reading JPEG needs libjpeg-turbo 2 or newer; install libturbojpeg0 ({})",
                   what, library_.library.loaded() ? "it is older" : library_.library.missing());
    }
    handle_ = library_.init();
    if (handle_ == nullptr) fail_memory("memory", "{}: no memory for a JPEG decoder", what);
  }
  ~Decoder() {
    if (handle_ != nullptr) library_.destroy(handle_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  HostArray decode() {
    int width = 0, height = 0, subsampling = 0, space = 0;
    check(library_.header(handle_, bytes(), data_.size(), &width, &height, &subsampling, &space));
    if (space == kSpaceCmyk || space == kSpaceYcck)
      fail_runtime("jpeg.format", "{}: is for printing (CMYK); convert it to RGB", what_);
    check_size(width, height);
    const int channels = space == kSpaceGrey ? 1 : 3;
    std::vector<std::byte> pixels(static_cast<size_t>(width) * static_cast<size_t>(height) *
                                  static_cast<size_t>(channels));
    check(library_.decompress(handle_, bytes(), data_.size(),
                              reinterpret_cast<unsigned char*>(pixels.data()), width, 0, height,
                              channels == 1 ? kPixelsGrey : kPixelsRgb, kFlags));
    return HostArray::owned(DType::U8, {height, width, channels}, std::move(pixels));
  }

 private:
  const unsigned char* bytes() const {
    return reinterpret_cast<const unsigned char*>(data_.data());
  }
  void check(int status) const {
    if (status != 0) fail_runtime("jpeg.format", "{}: {}", what_, library_.error(handle_));
  }
  // A block of 8 x 8 pixels takes a bit at least in one scan, so a byte holds 512 pixels at most;
  // to be said before anything of that size is allocated.
  void check_size(int width, int height) const {
    constexpr int64_t kPixelsInByte = 512;
    const int64_t pixels = int64_t{width} * height;
    if (width < 1 || height < 1 || pixels / kPixelsInByte > static_cast<int64_t>(data_.size()))
      fail_runtime("jpeg.format", "{}: {} bytes cannot hold {} by {} pixels", what_, data_.size(),
                   width, height);
  }

  const TurboJpeg& library_;
  std::span<const std::byte> data_;
  std::string_view what_;
  Handle handle_ = nullptr;
};

}  // namespace

HostArray parse_jpeg(std::span<const std::byte> data, std::string_view what) {
  return Decoder(data, what).decode();
}

HostArray read_jpeg(const std::string& path) { return parse_jpeg(MappedFile(path).bytes(), path); }

bool has_jpeg_library() { return turbo_jpeg().is_whole(); }

}  // namespace weft
