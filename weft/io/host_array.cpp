#include "weft/io/host_array.h"

#include <algorithm>

#include "weft/base/checked.h"
#include "weft/base/constant_bytes.h"
#include "weft/base/error.h"

namespace weft {

int64_t HostArray::numel() const {
  int64_t n = 1;
  for (const int64_t dim : shape) n *= dim;
  return n;
}

HostArray HostArray::owned(DType dtype, std::vector<int64_t> shape, std::vector<std::byte> bytes) {
  WEFT_CHECK(checked_bytes(dtype, shape) == static_cast<int64_t>(bytes.size()),
             "{} bytes for {} of {}", bytes.size(), shape_text(shape), name(dtype));
  auto owner = constant_bytes(std::move(bytes));
  const std::span<const std::byte> view(owner->data(), owner->size());
  return {dtype, std::move(shape), view, std::move(owner)};
}

std::optional<int64_t> checked_numel(std::span<const int64_t> shape) {
  int64_t n = 1;
  bool empty = false;
  for (const int64_t dim : shape) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      empty = true;
      continue;
    }
    const std::optional<int64_t> product = checked_mul(n, dim);
    if (!product) return std::nullopt;  // even beside a zero: strides would still overflow
    n = *product;
  }
  return empty ? 0 : n;
}

std::optional<int64_t> checked_bytes(DType dtype, std::span<const int64_t> shape) {
  const std::optional<int64_t> n = checked_numel(shape);
  if (!n || !checked_mul(*n, static_cast<int64_t>(bits(dtype)))) return std::nullopt;
  return bytes_for(dtype, *n);
}

std::string shape_text(std::span<const int64_t> shape) {
  constexpr size_t kMostShown = 16;  // a file may claim to have hundreds
  std::string text = "(";
  for (size_t i = 0; i < std::min(shape.size(), kMostShown); ++i) {
    append_format(text, "{}{}", i == 0 ? "" : ", ", shape[i]);
  }
  if (shape.size() > kMostShown) append_format(text, ", ... of {} axes", shape.size());
  return text + (shape.size() == 1 ? ",)" : ")");
}

std::string quoted_name(std::string_view name) {
  constexpr size_t kLongest = 200;
  std::string out = "'";
  for (const char c : name.substr(0, kLongest)) {
    const auto code = static_cast<unsigned char>(c);
    out += code < 32 || code == 127 ? '?' : c;
  }
  return out + (name.size() > kLongest ? "...'" : "'");
}

}  // namespace weft
