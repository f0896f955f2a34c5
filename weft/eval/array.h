// Array: bytes with a dtype and a concrete shape; what the oracle computes with.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "weft/dtype/value.h"

namespace weft::eval {

using Extents = std::vector<int64_t>;

constexpr int64_t kMaxElements = int64_t{1} << 28;
/// Product of the extents; throws Error past kMaxElements or for a negative extent.
int64_t count_of(std::span<const int64_t> extents);

class Array {
 public:
  Array() = default;
  /// All zero.
  Array(DType dtype, Extents extents);
  /// Row-major elements, each converted as a cast would.
  static Array of(DType dtype, Extents extents, std::span<const double> elements);
  static Array of_ints(DType dtype, Extents extents, std::span<const int64_t> elements);
  static Array scalar(Value v);
  /// From memory that holds the elements densely.
  static Array copy_of(DType dtype, Extents extents, const void* data);

  DType dtype() const { return dtype_; }
  const Extents& extents() const { return extents_; }
  size_t rank() const { return extents_.size(); }
  int64_t count() const { return count_; }

  Value at(int64_t flat) const { return Value::load(dtype_, bytes_.data() + offset(flat)); }
  void set(int64_t flat, Value v) { v.store(bytes_.data() + offset(flat)); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<std::byte> bytes() { return bytes_; }

  std::vector<double> doubles() const;
  std::vector<int64_t> ints() const;
  /// `f32 (2, 2)`.
  std::string type_text() const;
  /// `f32 (2, 2) [1, 2.5, nan, -0]`, at most `limit` elements.
  std::string text(int64_t limit = 64) const;

  /// Same dtype, extents and bits, except that every NaN equals every NaN.
  friend bool operator==(const Array& a, const Array& b);

 private:
  size_t offset(int64_t flat) const {
    return static_cast<size_t>(flat) * static_cast<size_t>(bits(dtype_) / 8);
  }

  DType dtype_ = DType::Void;
  Extents extents_;
  int64_t count_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace weft::eval
