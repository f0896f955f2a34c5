// Protocol buffers written: the other side of wire.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"

namespace weft::onnx {

/// The fields of one message, in the order of the calls. Large bytes are lent, not copied: they
/// must live until write() has run.
class WireWriter {
 public:
  void integer(uint32_t field, int64_t value);
  void number(uint32_t field, float value);
  void text(uint32_t field, std::string_view value);
  void bytes(uint32_t field, std::span<const std::byte> lent);
  void message(uint32_t field, WireWriter part);
  void integers(uint32_t field, const std::vector<int64_t>& values);  ///< packed
  void numbers(uint32_t field, const std::vector<double>& values);    ///< packed, as 32-bit

  uint64_t size() const { return size_; }
  void write(FunctionRef<void(std::span<const std::byte>)> sink) const;

 private:
  struct Part {
    std::string own;                  // then
    std::span<const std::byte> lent;  // behind it
  };
  void varint(uint64_t value);
  void key(uint32_t field, uint32_t type) { varint(uint64_t{field} << 3 | type); }
  void append(std::string_view own);

  std::vector<Part> parts_;
  uint64_t size_ = 0;
};

}  // namespace weft::onnx
