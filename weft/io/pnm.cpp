#include "weft/io/pnm.h"

#include <algorithm>

#include "weft/base/checked.h"
#include "weft/base/error.h"

namespace weft {

namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class PnmReader {
 public:
  PnmReader(std::span<const std::byte> data, std::string_view what)
      : data_(data), what_(what), kind_(std::to_integer<int>(data[1]) - '0') {}

  HostArray read() {
    at_ = 2;
    width_ = number(), height_ = number();
    most_ = is_bits() ? 1 : number();
    if (width_ == 0 || height_ == 0) wrong("has no pixels");
    if (most_ == 0 || most_ > UINT16_MAX) wrong("has a largest number that is not 1 to 65535");
    channels_ = kind_ % 3 == 0 ? 3 : 1;
    if (!is_text()) ++at_;  // one white space
    check_size();
    const bool wide = most_ > UINT8_MAX;
    std::vector<std::byte> pixels;
    pixels.reserve(width_ * height_ * channels_ * (wide ? 2 : 1));
    for (uint64_t y = 0; y < height_; ++y)
      for (uint64_t x = 0; x < width_ * channels_; ++x) put(sample(y, x), wide, pixels);
    return HostArray::owned(wide ? DType::U16 : DType::U8,
                            {static_cast<int64_t>(height_), static_cast<int64_t>(width_),
                             static_cast<int64_t>(channels_)},
                            std::move(pixels));
  }

 private:
  bool is_text() const { return kind_ <= 3; }
  bool is_bits() const { return kind_ % 3 == 1; }
  char current() const { return at_ < data_.size() ? static_cast<char>(data_[at_]) : '\0'; }

  void skip_space() {
    for (; at_ < data_.size(); ++at_) {
      if (current() == '#')
        while (at_ < data_.size() && current() != '\n' && current() != '\r') ++at_;
      else if (!is_space(current()))
        return;
    }
  }

  uint64_t number() {
    constexpr uint64_t kMost = UINT32_MAX;
    skip_space();
    const size_t begin = at_;
    uint64_t value = 0;
    for (; current() >= '0' && current() <= '9' && value <= kMost; ++at_)
      value = value * 10 + static_cast<uint64_t>(current() - '0');
    if (at_ == begin || value > kMost) wrong("has no number");
    return value;
  }

  // Before anything of that size is allocated. A number in text takes a digit at least, and all
  // but bits a space too.
  void check_size() const {
    const uint64_t row = width_ * channels_, left = data_.size() - std::min(at_, data_.size());
    uint64_t bytes = row;
    if (kind_ == 4) bytes = (width_ + 7) / 8;
    if (kind_ > 4 && most_ > UINT8_MAX) bytes = row * 2;
    if (checked_mul(bytes, height_).value_or(UINT64_MAX) > left)
      fail_runtime("pnm.format",
                   "{}: {} bytes from offset {} cannot hold {} by {} pixels; the file is damaged "
                   "or cut short",
                   what_, left, at_, width_, height_);
  }

  uint64_t byte(uint64_t offset) const {
    return std::to_integer<uint64_t>(data_[at_ + static_cast<size_t>(offset)]);
  }

  uint64_t sample(uint64_t y, uint64_t x) {
    const uint64_t i = y * width_ * channels_ + x;
    switch (kind_) {
      case 1: return 1 - bit();
      case 4: return 1 - (byte(y * ((width_ + 7) / 8) + x / 8) >> (7 - x % 8) & 1);
      case 5:
      case 6: return checked(most_ > UINT8_MAX ? byte(2 * i) << 8 | byte(2 * i + 1) : byte(i));
      default: return checked(number());
    }
  }

  uint64_t bit() {
    skip_space();
    if (current() != '0' && current() != '1') wrong("has a bit that is neither 0 nor 1");
    return static_cast<uint64_t>(data_[at_++]) - '0';
  }

  uint64_t checked(uint64_t value) const {
    if (value > most_) wrong("has a number above its largest");
    return value;
  }

  void put(uint64_t value, bool wide, std::vector<std::byte>& pixels) const {
    const uint64_t scaled = (value * (wide ? UINT16_MAX : UINT8_MAX) + most_ / 2) / most_;
    pixels.push_back(static_cast<std::byte>(scaled));
    if (wide) pixels.push_back(static_cast<std::byte>(scaled >> 8));
  }

  [[noreturn]] void wrong(std::string_view problem) const {
    fail_runtime("pnm.format", "{}: {} at offset {}", what_, problem, at_);
  }

  std::span<const std::byte> data_;
  std::string_view what_;
  int kind_;
  size_t at_ = 0;
  uint64_t width_ = 0, height_ = 0, most_ = 0, channels_ = 0;
};

}  // namespace

bool is_pnm(std::span<const std::byte> data) {
  if (data.size() < 3) return false;
  const char kind = static_cast<char>(data[1]), next = static_cast<char>(data[2]);
  return data[0] == std::byte{'P'} && kind >= '1' && kind <= '6' && (is_space(next) || next == '#');
}

HostArray parse_pnm(std::span<const std::byte> data, std::string_view what) {
  if (!is_pnm(data))
    fail_runtime("pnm.format", "{}: does not begin with P1 to P6 as PBM, PGM and PPM files do",
                 what);
  return PnmReader(data, what).read();
}

}  // namespace weft
