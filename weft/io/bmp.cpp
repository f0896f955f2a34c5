#include "weft/io/bmp.h"

#include <algorithm>
#include <array>
#include <bit>

#include "weft/base/error.h"
#include "weft/base/reader.h"

namespace weft {

namespace {

// Of BITMAPINFOHEADER::biCompression; ALPHABITFIELDS is Windows CE's.
constexpr uint32_t kPlain = 0, kBitFields = 3, kAlphaBitFields = 6;
constexpr uint32_t kCoreHeader = 12, kInfoHeader = 40, kAlphaInHeader = 56;

/// Where the bits of one colour are, and what they give as 8.
struct Field {
  uint32_t mask = 0;
  uint8_t of(uint32_t pixel) const {
    const int shift = std::countr_zero(mask);
    return static_cast<uint8_t>(uint64_t{(pixel & mask) >> shift} * 255 / (mask >> shift));
  }
};

class BmpReader {
 public:
  BmpReader(std::span<const std::byte> data, std::string_view what)
      : data_(data), reader_(data, what), what_(what) {}

  HostArray read() {
    read_header();
    const int64_t channels = fields_[3].mask != 0 ? 4 : 3;
    const uint64_t row = (uint64_t{width_} * bits_ + 31) / 32 * 4;
    if (begin_ > data_.size() || row > (data_.size() - begin_) / height_)
      fail_runtime("bmp.format",
                   "{}: {} bytes from offset {} cannot hold {} by {} pixels of {}"
                   " bits; the file is damaged or cut short",
                   what_, data_.size() - std::min<uint64_t>(begin_, data_.size()), begin_, width_,
                   height_, bits_);
    std::vector<std::byte> pixels;
    pixels.reserve(size_t{width_} * height_ * static_cast<size_t>(channels));
    for (uint32_t y = 0; y < height_; ++y) {
      const uint32_t line = from_above_ ? y : height_ - 1 - y;
      read_row(data_.subspan(begin_ + line * row, row), channels, pixels);
    }
    return HostArray::owned(DType::U8, {height_, width_, channels}, std::move(pixels));
  }

 private:
  void read_header() {
    reader_.skip(10);  // "BM", the file's size, 4 bytes that nobody uses
    begin_ = reader_.u32();
    const size_t header = reader_.offset();
    const uint32_t size = reader_.u32();
    uint32_t compression = kPlain, colours = 0;
    if (size == kCoreHeader) {
      width_ = reader_.u16(), height_ = reader_.u16();
      reader_.skip(2);
      bits_ = reader_.u16();
    } else if (size >= kInfoHeader) {
      read_size();
      reader_.skip(2);
      bits_ = reader_.u16();
      compression = reader_.u32();
      reader_.skip(12);  // bytes of pixels, pixels per metre
      colours = reader_.u32();
    } else {
      wrong("has a header of {} bytes", size);
    }
    check(compression);
    if (compression != kPlain) {
      reader_.seek(header + kInfoHeader);
      read_masks(size, compression);
    }
    reader_.seek(header + std::max(size, static_cast<uint32_t>(reader_.offset() - header)));
    if (bits_ <= 8) read_palette(size == kCoreHeader ? 3 : 4, colours);
  }

  void read_size() {
    const int32_t width = reader_.i32(), height = reader_.i32();
    from_above_ = height < 0;
    width_ = width < 0 ? 0 : static_cast<uint32_t>(width);
    height_ = from_above_ ? 0 - static_cast<uint32_t>(height) : static_cast<uint32_t>(height);
  }

  void check(uint32_t compression) const {
    if (width_ == 0 || height_ == 0) wrong("has no pixels ({} by {})", width_, height_);
    const bool known =
        bits_ == 1 || bits_ == 4 || bits_ == 8 || bits_ == 16 || bits_ == 24 || bits_ == 32;
    if (!known) wrong("has {} bits per pixel, which the format does not know", bits_);
    const bool masks = compression == kBitFields || compression == kAlphaBitFields;
    if (compression != kPlain && !(masks && (bits_ == 16 || bits_ == 32)))
      wrong("is compressed in way {} with {} bits; save it without compression", compression,
            bits_);
  }

  void read_masks(uint32_t header, uint32_t compression) {
    const bool alpha = header >= kAlphaInHeader || compression == kAlphaBitFields;
    for (size_t i = 0; i < (alpha ? 4U : 3U); ++i) {
      const uint32_t mask = reader_.u32(), low = mask >> std::countr_zero(mask | 1U << 31);
      if ((mask == 0 && i < 3) || (low & (low + 1)) != 0)
        wrong("says that a colour has the bits {:#x}", mask);
      fields_[i].mask = mask;
    }
  }

  // Entries that are not there are black: pixels may name any.
  void read_palette(uint32_t entry, uint32_t colours) {
    const uint32_t most = 1U << bits_;
    const uint32_t count = colours == 0 ? most : std::min(colours, most);
    for (uint32_t i = 0; i < count && reader_.offset() + entry <= begin_; ++i) {
      const uint32_t blue = reader_.u8(), green = reader_.u8(), red = reader_.u8();
      reader_.skip(entry - 3);
      palette_[i] = red | green << 8 | blue << 16;
    }
  }

  uint32_t pixel_at(std::span<const std::byte> row, uint32_t x) const {
    const auto byte = [&](uint64_t i) { return std::to_integer<uint32_t>(row[i]); };
    if (bits_ <= 8) {
      const uint64_t bit = uint64_t{x} * bits_;
      const auto shift = static_cast<uint32_t>(8 - bits_ - bit % 8);
      return palette_[byte(bit / 8) >> shift & ((1U << bits_) - 1)];
    }
    uint32_t pixel = 0;
    const uint32_t bytes = bits_ / 8;
    for (uint32_t i = 0; i < bytes; ++i) pixel |= byte(uint64_t{x} * bytes + i) << 8 * i;
    return pixel;
  }

  void read_row(std::span<const std::byte> row, int64_t channels,
                std::vector<std::byte>& pixels) const {
    static constexpr std::array<Field, 4> kPalette = {{{0xff}, {0xff00}, {0xff0000}, {}}};
    static constexpr std::array<Field, 4> kFive = {{{0x7c00}, {0x3e0}, {0x1f}, {}}};
    static constexpr std::array<Field, 4> kEight = {{{0xff0000}, {0xff00}, {0xff}, {}}};
    const auto& fields = bits_ <= 8             ? kPalette
                         : fields_[0].mask != 0 ? fields_
                         : bits_ == 16          ? kFive
                                                : kEight;
    for (uint32_t x = 0; x < width_; ++x) {
      const uint32_t pixel = pixel_at(row, x);
      for (size_t c = 0; c < static_cast<size_t>(channels); ++c)
        pixels.push_back(std::byte{fields[c].of(pixel)});
    }
  }

  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> pattern, Args&&... args) const {
    std::string problem;
    append_vformat(problem, pattern, fmt::make_format_args(args...));
    fail_runtime("bmp.format", "{}: {}", what_, problem);
  }

  std::span<const std::byte> data_;
  ByteReader reader_;
  std::string_view what_;
  uint64_t begin_ = 0;
  uint32_t width_ = 0, height_ = 0, bits_ = 0;
  bool from_above_ = false;
  std::array<Field, 4> fields_ = {};  // of BitFields
  std::array<uint32_t, 256> palette_ = {};
};

}  // namespace

HostArray parse_bmp(std::span<const std::byte> data, std::string_view what) {
  return BmpReader(data, what).read();
}

}  // namespace weft
