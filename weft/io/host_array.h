// HostArray: a dense row-major array in host memory, owned or lent by a mapped file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/dtype/dtype.h"

namespace weft {

struct HostArray {
  DType dtype = DType::Void;
  std::vector<int64_t> shape;         // empty: one element
  std::span<const std::byte> bytes;   // little-endian, exactly numel elements
  std::shared_ptr<const void> owner;  // keeps `bytes` alive

  int64_t numel() const;

  // The array's elements in memory of its own.
  static HostArray owned(DType dtype, std::vector<int64_t> shape, std::vector<std::byte> bytes);
};

struct NamedArray {
  std::string name;
  HostArray array;
};

// Elements and bytes of an array of untrusted shape; nothing when negative or beyond 64 bits.
std::optional<int64_t> checked_numel(std::span<const int64_t> shape);
std::optional<int64_t> checked_bytes(DType dtype, std::span<const int64_t> shape);

// "(3, 4)", "(3,)", "()": for messages, as NumPy writes shapes.
std::string shape_text(std::span<const int64_t> shape);
// A name out of a file for a message: quoted, cut at 200 bytes, control characters replaced, so
// that it cannot drive a terminal.
std::string quoted_name(std::string_view name);

}  // namespace weft
