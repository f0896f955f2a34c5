#include "weft/io/jpeg2000.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/shared_library.h"

namespace weft {

namespace {

// What is used of openjpeg.h, the same since 2.1
// (https://github.com/uclouvain/openjpeg/blob/v2.5.0/src/lib/openjp2/openjpeg.h).
struct Component {
  uint32_t dx, dy, width, height, x0, y0, bits, bpp, is_signed, resolutions, factor;
  int32_t* data;
  uint16_t alpha;
};
struct Image {
  uint32_t x0, y0, x1, y1, count;
  int space;
  Component* components;
  uint8_t* profile;
  uint32_t profile_bytes;
};
struct Codec;
struct Stream;
struct Parameters {
  alignas(16) std::byte bytes[size_t{16} << 10];  // 8,252 in 2.5; only the library writes there
};
using ReadBytes = size_t(void* out, size_t bytes, void* user);
using SkipBytes = int64_t(int64_t bytes, void* user);
using SeekBytes = int(int64_t offset, void* user);
using NewCodec = Codec*(int format);
using FreeCodec = void(Codec*);
using Defaults = void(Parameters*);
using Setup = int(Codec*, Parameters*);
using NewStream = Stream*(size_t buffer, int is_input);
using FreeStream = void(Stream*);
using SetUser = void(Stream*, void* user, void (*free)(void*));
using SetLength = void(Stream*, uint64_t);
using SetRead = void(Stream*, ReadBytes*);
using SetSkip = void(Stream*, SkipBytes*);
using SetSeek = void(Stream*, SeekBytes*);
using ReadHeader = int(Stream*, Codec*, Image**);
using Decode = int(Codec*, Stream*, Image*);
using Finish = int(Codec*, Stream*);
using FreeImage = void(Image*);
constexpr int kCodestream = 0, kJp2 = 2;      // OPJ_CODEC_
constexpr int kSpaceYcc = 3, kSpaceCmyk = 5;  // OPJ_CLRSPC_; 4 is e-YCC

struct OpenJpeg {
  SharedLibrary library{"libopenjp2.so.7", "libopenjp2.so"};
  NewCodec* new_codec = library.function<NewCodec>("opj_create_decompress");
  FreeCodec* free_codec = library.function<FreeCodec>("opj_destroy_codec");
  Defaults* defaults = library.function<Defaults>("opj_set_default_decoder_parameters");
  Setup* setup = library.function<Setup>("opj_setup_decoder");
  NewStream* new_stream = library.function<NewStream>("opj_stream_create");
  FreeStream* free_stream = library.function<FreeStream>("opj_stream_destroy");
  SetUser* set_user = library.function<SetUser>("opj_stream_set_user_data");
  SetLength* set_length = library.function<SetLength>("opj_stream_set_user_data_length");
  SetRead* set_read = library.function<SetRead>("opj_stream_set_read_function");
  SetSkip* set_skip = library.function<SetSkip>("opj_stream_set_skip_function");
  SetSeek* set_seek = library.function<SetSeek>("opj_stream_set_seek_function");
  ReadHeader* header = library.function<ReadHeader>("opj_read_header");
  Decode* decode = library.function<Decode>("opj_decode");
  Finish* finish = library.function<Finish>("opj_end_decompress");
  FreeImage* free_image = library.function<FreeImage>("opj_image_destroy");

  bool is_whole() const {
    return new_codec && free_codec && defaults && setup && new_stream && free_stream && set_user &&
           set_length && set_read && set_skip && set_seek && header && decode && finish &&
           free_image;
  }
};

const OpenJpeg& open_jpeg() {
  static const OpenJpeg library;
  return library;
}

constexpr std::string_view kBox("\0\0\0\x0cjP  \r\n\x87\n", 12), kMarker("\xff\x4f\xff\x51", 4);

bool begins(std::span<const std::byte> data, std::string_view with) {
  return data.size() >= with.size() && std::memcmp(data.data(), with.data(), with.size()) == 0;
}

class Decoder {
 public:
  Decoder(std::span<const std::byte> data, std::string_view what)
      : library_(open_jpeg()), data_(data), what_(what) {
    if (!library_.is_whole())
      fail_runtime("jpeg2000.library",
                   "{}: reading JPEG 2000 needs OpenJPEG 2.1 or newer; install libopenjp2-7 ({})",
                   what, library_.library.loaded() ? "it is older" : library_.library.missing());
  }
  ~Decoder() {
    if (image_ != nullptr) library_.free_image(image_);
    if (codec_ != nullptr) library_.free_codec(codec_);
    if (stream_ != nullptr) library_.free_stream(stream_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  HostArray decode(const UnpackLimits& limits) {
    open();
    if (library_.header(stream_, codec_, &image_) == 0 || image_ == nullptr)
      damaged("its header is damaged");
    check(limits);
    if (library_.decode(codec_, stream_, image_) == 0 || library_.finish(codec_, stream_) == 0)
      damaged("its pixels are damaged or cut short");
    return pixels();
  }

 private:
  void open() {
    codec_ = library_.new_codec(begins(data_, kMarker) ? kCodestream : kJp2);
    stream_ = library_.new_stream(size_t{64} << 10, 1);
    if (codec_ == nullptr || stream_ == nullptr)
      fail_memory("memory", "{}: no memory for a JPEG 2000 decoder", what_);
    Parameters parameters;
    library_.defaults(&parameters);
    if (library_.setup(codec_, &parameters) == 0) damaged("cannot be decoded");
    library_.set_user(stream_, this, nullptr);
    library_.set_length(stream_, data_.size());
    library_.set_read(stream_, read);
    library_.set_skip(stream_, skip);
    library_.set_seek(stream_, seek);
  }

  // Before anything of that size is allocated: the library has 4 bytes per element.
  void check(const UnpackLimits& limits) const {
    if (image_->count < 1 || image_->count > 4) damaged("has not 1 to 4 channels");
    if (image_->space >= kSpaceYcc && image_->space <= kSpaceCmyk)
      damaged("is neither RGB nor grey; convert it");
    if (image_->x1 <= image_->x0 || image_->y1 <= image_->y0) damaged("has no pixels");
    const uint64_t pixels = uint64_t{image_->x1 - image_->x0} * (image_->y1 - image_->y0);
    check_unpacked(pixels > UINT64_MAX / 16 ? UINT64_MAX : pixels * 4 * image_->count, limits,
                   data_.size(), "jpeg2000.size", what_);
  }

  HostArray pixels() const {
    const Component& first = image_->components[0];
    const size_t count = image_->count, size = size_t{first.width} * first.height;
    std::vector<std::byte> out(size * count);
    for (size_t c = 0; c < count; ++c) {
      const Component& x = image_->components[c];
      const bool fits = x.data != nullptr && x.width == first.width && x.height == first.height &&
                        x.bits >= 1 && x.bits <= 31;
      if (!fits) damaged("has channels of several sizes");
      const int64_t most = (int64_t{1} << x.bits) - 1, low = x.is_signed ? (most + 1) / 2 : 0;
      for (size_t i = 0; i < size; ++i)
        out[i * count + c] =
            static_cast<std::byte>(std::clamp<int64_t>(x.data[i] + low, 0, most) * 255 / most);
    }
    return HostArray::owned(DType::U8, {first.height, first.width, image_->count}, std::move(out));
  }

  [[noreturn]] void damaged(std::string_view problem) const {
    fail_runtime("jpeg2000.format", "{}: {}", what_, problem);
  }

  static Decoder& self(void* user) { return *static_cast<Decoder*>(user); }
  static size_t read(void* out, size_t bytes, void* user) {
    Decoder& d = self(user);
    const size_t count = std::min(bytes, d.data_.size() - d.at_);
    if (count == 0) return SIZE_MAX;  // the end
    std::memcpy(out, d.data_.data() + d.at_, count);
    d.at_ += count;
    return count;
  }
  static int64_t skip(int64_t bytes, void* user) {
    Decoder& d = self(user);
    const auto left = static_cast<int64_t>(d.data_.size() - d.at_);
    if (bytes < 0 || left == 0) return -1;
    const int64_t count = std::min(bytes, left);
    d.at_ += static_cast<size_t>(count);
    return count;
  }
  static int seek(int64_t offset, void* user) {
    Decoder& d = self(user);
    if (offset < 0 || static_cast<uint64_t>(offset) > d.data_.size()) return 0;
    d.at_ = static_cast<size_t>(offset);
    return 1;
  }

  const OpenJpeg& library_;
  std::span<const std::byte> data_;
  std::string_view what_;
  size_t at_ = 0;
  Codec* codec_ = nullptr;
  Stream* stream_ = nullptr;
  Image* image_ = nullptr;
};

}  // namespace

bool is_jpeg2000(std::span<const std::byte> data) {
  return begins(data, kBox) || begins(data, kMarker);
}

bool has_jpeg2000_library() { return open_jpeg().is_whole(); }

HostArray parse_jpeg2000(std::span<const std::byte> data, std::string_view what,
                         const UnpackLimits& limits) {
  return Decoder(data, what).decode(limits);
}

}  // namespace weft
