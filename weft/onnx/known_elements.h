// Elements that the host knows: whole numbers, which may be symbolic, or real ones.
#pragma once

#include <optional>
#include <vector>

#include "weft/onnx/value.h"

namespace weft::onnx {

struct KnownElements {
  DType dtype = DType::I64;
  std::vector<int64_t> shape;
  std::vector<Dim> whole;    ///< of integers and bools
  std::vector<double> real;  ///< of floats

  bool is_real() const { return is_float(dtype); }
  size_t count() const { return is_real() ? real.size() : whole.size(); }
  bool is_static() const;

  /// Nothing where they are not known, too many, or of a type that weft has no dtype for.
  static std::optional<KnownElements> of(const Value& x);
  /// Nothing for symbolic ones of rank 2 and more.
  std::optional<Value> value() const;

  /// One element of each of these places, in this shape.
  KnownElements at(const std::vector<size_t>& places, std::vector<int64_t> in_shape) const;
  void append(const KnownElements& other, size_t place);
};

}  // namespace weft::onnx
