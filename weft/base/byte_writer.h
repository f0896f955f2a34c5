// ByteWriter: bytes built by appending, in the form that ByteReader reads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

// Small numbers of either sign as small unsigned ones, for varints.
constexpr uint64_t zigzag(int64_t v) {
  return static_cast<uint64_t>(v) << 1 ^ static_cast<uint64_t>(v >> 63);
}
constexpr int64_t unzigzag(uint64_t v) { return static_cast<int64_t>(v >> 1 ^ (0 - (v & 1))); }

class ByteWriter {
 public:
  void u8(uint8_t v) { *room(1) = static_cast<std::byte>(v), ++size_; }
  void u32(uint32_t v) { number(v); }
  void u64(uint64_t v) { number(v); }
  void f64(double v) { number(v); }
  // LEB128.
  void varint(uint64_t v) {
    if (v < 0x80 && size_ < out_.size()) {  // nearly all of them
      out_[size_++] = static_cast<std::byte>(v);
      return;
    }
    std::byte* at = room(kLongestVarint);
    size_t count = 0;
    for (; v >= 0x80; v >>= 7) at[count++] = static_cast<std::byte>(v | 0x80);
    at[count++] = static_cast<std::byte>(v);
    size_ += count;
  }
  void signed_varint(int64_t v) { varint(zigzag(v)); }
  void bytes(std::span<const std::byte> data) {
    if (data.empty()) return;
    std::memcpy(room(data.size()), data.data(), data.size());
    size_ += data.size();
  }
  // Its size, and the text.
  void text(std::string_view t) {
    varint(t.size());
    bytes(std::as_bytes(std::span(t)));
  }

  // Room for so many more, for who knows how many at most; filled_to() says how many they became.
  std::byte* room(size_t count) {
    if (out_.size() - size_ < count) out_.resize(std::max(2 * out_.size(), size_ + count));
    return out_.data() + size_;
  }
  void filled_to(const std::byte* end) { size_ = static_cast<size_t>(end - out_.data()); }

  size_t size() const { return size_; }
  std::span<const std::byte> data() const { return {out_.data(), size_}; }
  std::span<std::byte> written() { return {out_.data(), size_}; }  // to fill in what comes late
  void clear() { size_ = 0; }                                      // keeps its memory
  std::vector<std::byte> take() {
    out_.resize(std::exchange(size_, 0));
    return std::exchange(out_, {});
  }

 private:
  static constexpr size_t kLongestVarint = 10;

  template <class T>
  void number(T v) {  // the host is little-endian
    bytes(std::as_bytes(std::span(&v, 1)));
  }

  std::vector<std::byte> out_;  // its first `size_` bytes count
  size_t size_ = 0;
};

}  // namespace weft
