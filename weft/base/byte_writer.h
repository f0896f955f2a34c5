// ByteWriter: bytes built by appending, in the form that ByteReader reads.
#pragma once

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
  void u8(uint8_t v) { out_.push_back(static_cast<std::byte>(v)); }
  void u32(uint32_t v) { number(v); }
  void u64(uint64_t v) { number(v); }
  void f64(double v) { number(v); }
  // LEB128.
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) u8(static_cast<uint8_t>(v | 0x80));
    u8(static_cast<uint8_t>(v));
  }
  void signed_varint(int64_t v) { varint(zigzag(v)); }
  void bytes(std::span<const std::byte> data) { out_.insert(out_.end(), data.begin(), data.end()); }
  // Its size, and the text.
  void text(std::string_view t) {
    varint(t.size());
    bytes(std::as_bytes(std::span(t)));
  }

  size_t size() const { return out_.size(); }
  std::span<const std::byte> data() const { return out_; }
  void clear() { out_.clear(); }
  std::vector<std::byte> take() { return std::exchange(out_, {}); }

 private:
  template <class T>
  void number(T v) {  // the host is little-endian
    bytes(std::as_bytes(std::span(&v, 1)));
  }

  std::vector<std::byte> out_;
};

}  // namespace weft
