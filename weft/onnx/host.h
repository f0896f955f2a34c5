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

/// All elements of a tensor, now.
HostArray read_now(const Value& x);
/// The one number of a tensor, now.
int64_t number_now(const Value& x);

/// The numbers of a shape that has no symbols.
std::vector<int64_t> static_sizes(const Dims& dims);

/// What a movement makes of a tensor, strings too: these follow their positions.
Value moved(const Value& x, FunctionRef<Tensor(const Tensor& x)> movement);

}  // namespace weft::onnx
