#include "weft/onnx/constant_sums.h"

#include <algorithm>

#include "weft/onnx/host.h"

namespace weft::onnx {

namespace {

constexpr size_t kMostSummed = size_t{1} << 17;  // bytes

/// (before, kept, after), summed over before and after.
template <class T>
std::vector<int32_t> sums_of(const T* x, int64_t before, int64_t kept, int64_t after) {
  std::vector<int32_t> sums(static_cast<size_t>(kept));
  for (int64_t i = 0; i < before; ++i)
    for (int32_t& sum : sums) {
      int32_t s = 0;
      for (int64_t j = 0; j < after; ++j) s += x[j];
      sum += s;
      x += after;
    }
  return sums;
}

/// Elements of a vector that one of several places looks at: one for all, or its own.
template <class T>
T at(const std::vector<T>& v, size_t i) {
  return v[v.size() == 1 ? 0 : i];
}

bool fits(size_t elements, size_t places) { return elements == 1 || elements == places; }

}  // namespace

std::optional<std::vector<int32_t>> constant_sums(const Value& x, const Value& zero, int64_t kept) {
  const auto array = x.constant();
  const auto point = zero ? zero.constant() : std::nullopt;
  if (!array || (zero && !point) || array->bytes.size() > kMostSummed || array->bytes.empty())
    return std::nullopt;
  if (!is_int(array->dtype) || bits(array->dtype) != 8) return std::nullopt;
  int64_t before = 1, after = 1;
  for (size_t i = 0; i < array->shape.size(); ++i)
    if (static_cast<int64_t>(i) != kept)
      (static_cast<int64_t>(i) < kept ? before : after) *= array->shape[i];
  const int64_t places = array->shape[static_cast<size_t>(kept)];
  const void* bytes = array->bytes.data();
  std::vector<int32_t> sums =
      array->dtype == DType::U8 ? sums_of(static_cast<const uint8_t*>(bytes), before, places, after)
                                : sums_of(static_cast<const int8_t*>(bytes), before, places, after);
  if (!point) return sums;
  const std::vector<int64_t> points = as_ints(*point);
  if (!fits(points.size(), sums.size())) return std::nullopt;
  for (size_t i = 0; i < sums.size(); ++i)
    sums[i] -= static_cast<int32_t>(before * after * at(points, i));
  return sums;
}

std::optional<Value> constant_dequantised(const Value& x, const Value& scale, const Value& zero) {
  const auto array = x.constant(), scales = scale.constant();
  const auto points = zero ? zero.constant() : std::nullopt;
  if (!array || !scales || (zero && !points) || array->shape.size() != 1 ||
      array->bytes.size() > kMostSummed || !is_int(array->dtype) || scales->dtype != DType::F32)
    return std::nullopt;
  const std::vector<int64_t> whole = as_ints(*array),
                             zeros = points ? as_ints(*points) : std::vector<int64_t>{0};
  const std::vector<float> steps = as_floats(*scales);
  if (!fits(steps.size(), whole.size()) || !fits(zeros.size(), whole.size())) return std::nullopt;
  std::vector<float> y(whole.size());
  for (size_t i = 0; i < y.size(); ++i)
    y[i] = static_cast<float>(static_cast<int32_t>(whole[i] - at(zeros, i))) * at(steps, i);
  return host_value(y, array->shape);
}

std::optional<Tensor> constant_scale(const Value& a, const Value& b, const Value& c) {
  const auto left = a.constant(), right = b.constant(), under = c ? c.constant() : std::nullopt;
  if (!left || !right || (c && !under) || left->numel() != 1 || (under && under->numel() != 1) ||
      right->shape.size() > 1 || right->bytes.size() > kMostSummed)
    return std::nullopt;
  const float first = as_floats(*left)[0], last = under ? as_floats(*under)[0] : 1;
  std::vector<float> each = as_floats(*right);
  for (float& x : each) x = first * x / last;
  if (each.size() == 1) return Tensor::full({}, each[0], DType::F32);
  return Tensor::from(each, {static_cast<int64_t>(each.size())});
}

}  // namespace weft::onnx
