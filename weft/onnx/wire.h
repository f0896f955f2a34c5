// Protocol buffers as untrusted bytes: the fields of a message, one after the other. Nothing is
// copied. The encoding: https://protobuf.dev/programming-guides/encoding
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "weft/base/format.h"

namespace weft::onnx {

/// A message. `what` names the source in errors and must outlive the reader. Every Error (code
/// "onnx.wire") has the byte at which it was found.
class WireReader {
 public:
  static constexpr int kDeepest = 100;  ///< messages inside messages, as protobuf's own libraries

  WireReader(std::span<const std::byte> data, std::string_view what)
      : WireReader(data, what, 0, 0) {}

  /// To the next field; false behind the last one. What is not asked for is skipped.
  bool next();
  uint32_t field() const { return field_; }

  // ---- the value of the field; an Error where it is of another wire type
  int64_t integer() const;
  float number() const;
  std::span<const std::byte> bytes() const;
  std::string_view text() const;  ///< UTF-8, or an Error
  WireReader message() const;

  /// Calls f for each element of a repeated field, whether it is packed or not: integers,
  /// 32-bit and 64-bit numbers (their bits).
  template <class F>
  void each_integer(const F& f) const {
    if (type_ != Type::Bytes) return f(integer());
    for (WireReader all = packed(); !all.data_.empty();) f(static_cast<int64_t>(all.take_varint()));
  }
  template <class F>
  void each_fixed32(const F& f) const {
    if (type_ != Type::Bytes) return f(std::bit_cast<uint32_t>(number()));
    for (WireReader all = packed(4); !all.data_.empty();)
      f(static_cast<uint32_t>(all.take_fixed(4)));
  }
  template <class F>
  void each_fixed64(const F& f) const {
    if (type_ != Type::Bytes) return f(fixed64());
    for (WireReader all = packed(8); !all.data_.empty();) f(all.take_fixed(8));
  }

  size_t offset() const { return at_; }   ///< where the field's value begins
  size_t size() const { return whole_; }  ///< bytes of the whole message
  std::string_view what() const { return what_; }
  /// An Error that says the file and the byte.
  template <class... A>
  [[noreturn]] void refuse(fmt::format_string<A...> format, A&&... args) const {
    refuse_text(strformat(format, std::forward<A>(args)...));
  }
  [[noreturn]] void refuse_text(const std::string& problem) const;

 private:
  enum class Type : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

  WireReader(std::span<const std::byte> data, std::string_view what, size_t at, int depth)
      : data_(data), what_(what), place_(at), at_(at), whole_(data.size()), depth_(depth) {}
  uint64_t take_varint();
  uint64_t take_fixed(size_t size);
  std::span<const std::byte> take(uint64_t size);
  uint64_t fixed64() const;
  WireReader packed(size_t size = 1) const;
  void require(Type type, const char* wanted) const;

  std::span<const std::byte> data_;  // what is left
  std::string_view what_;
  size_t place_, at_;  // of data_ in the file, of the field's value
  size_t whole_;
  int depth_;
  uint32_t field_ = 0;
  Type type_ = Type::Varint;
  uint64_t value_ = 0;
  std::span<const std::byte> bytes_;
};

}  // namespace weft::onnx
