// ByteReader: little-endian reads from untrusted bytes; every overrun is an Error with its offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace weft {

class ByteReader {
 public:
  // `what` names the source in errors (a path, "graph file"); it must outlive the reader.
  ByteReader(std::span<const std::byte> data, std::string_view what) : data_(data), what_(what) {}

  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  int8_t i8() { return number<int8_t>(); }
  int16_t i16() { return number<int16_t>(); }
  int32_t i32() { return number<int32_t>(); }
  int64_t i64() { return number<int64_t>(); }
  float f32() { return number<float>(); }
  double f64() { return number<double>(); }

  std::span<const std::byte> bytes(uint64_t count) {
    if (count > remaining()) overrun(count);
    const std::span<const std::byte> taken = data_.subspan(at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return taken;
  }
  std::string_view text(uint64_t count) {
    const std::span<const std::byte> taken = bytes(count);
    return {reinterpret_cast<const char*>(taken.data()), taken.size()};
  }

  // LEB128, at most ten bytes.
  uint64_t varint() {
    if (at_ < data_.size() && static_cast<uint8_t>(data_[at_]) < 0x80)
      return static_cast<uint8_t>(data_[at_++]);
    return long_varint();
  }
  // A count that was read from the data: each element takes at least `least_bytes` of what is left,
  // so a hostile count is refused before anything is allocated.
  size_t count(uint64_t claimed, size_t least_bytes);

  void skip(uint64_t count) { bytes(count); }
  void seek(uint64_t offset);
  size_t offset() const { return at_; }
  size_t remaining() const { return data_.size() - at_; }
  bool done() const { return at_ == data_.size(); }
  std::string_view what() const { return what_; }

 private:
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, bytes(sizeof(T)).data(), sizeof(T));  // the host is little-endian
    return value;
  }
  uint64_t long_varint();
  [[noreturn]] void overrun(uint64_t count) const;

  std::span<const std::byte> data_;
  std::string_view what_;
  size_t at_ = 0;
};

}  // namespace weft
