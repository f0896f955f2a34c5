// Elements on the host: for operators whose results are not numbers, whose sizes depend on data, or
// that are walks rather than kernels.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/dtype/value.h"
#include "weft/onnx/value.h"

namespace weft::onnx {

/// Elements as a constant, of this dtype, which has T's size.
template <class T>
Value host_value(const std::vector<T>& elements, std::vector<int64_t> shape,
                 DType dtype = weft::dtype_of<T>()) {
  const auto bytes = std::as_bytes(std::span(elements));
  return Value(HostArray::owned(dtype, std::move(shape), {bytes.begin(), bytes.end()}));
}

/// Numbers rounded to this dtype, as a constant.
Value host_numbers(const std::vector<double>& elements, std::vector<int64_t> shape, DType dtype);

/// Element i of an array.
inline weft::Value element(const HostArray& a, int64_t i) {
  return weft::Value::load(a.dtype, a.bytes.data() + bytes_for(a.dtype, i));
}
std::vector<double> as_doubles(const HostArray& a);
std::vector<int64_t> as_ints(const HostArray& a);
std::vector<float> as_floats(const HostArray& a);

/// The one number of a tensor, now.
int64_t number_now(const Value& x);

/// The numbers of a shape that has no symbols.
std::vector<int64_t> static_sizes(const Dims& dims);

/// What a movement makes of a tensor, strings too: these follow their positions.
Value moved(const Value& x, FunctionRef<Tensor(const Tensor& x)> movement);

/// Cast of strings to numbers and of numbers to strings, as C++ and Python write them. An Error for
/// text that is no number.
Value cast_from_strings(const Value& x, ElementType to);
Value cast_to_strings(const Value& x);
/// Whether strings are equal, and a where the condition is true, else b. Shapes broadcast.
Value equal_strings(const Value& a, const Value& b);
Value where_strings(const Value& condition, const Value& a, const Value& b);
/// f of the strings at each place of the shape that both broadcast to.
struct StringPair {
  std::vector<int64_t> shape;
  std::vector<const std::string*> a, b;
};
StringPair broadcast_strings(const Value& a, const Value& b);

}  // namespace weft::onnx
