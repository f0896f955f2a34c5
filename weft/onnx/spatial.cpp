#include "weft/onnx/spatial.h"

#include <algorithm>

namespace weft::onnx {

namespace {

/// `count` numbers of an attribute, each at least `least`; `otherwise` where it is not given.
Ints numbers_of(const NodeCall& call, std::string_view attribute, size_t count, int64_t least,
                int64_t otherwise) {
  const std::vector<int64_t> given = call.ints(attribute);
  if (given.empty()) return Ints::filled(count, otherwise);
  if (given.size() != count)
    call.refuse("{} has {} numbers for {} spatial axes: give one for each", attribute, given.size(),
                count);
  for (const int64_t n : given)
    if (n < least || n > INT32_MAX)
      call.refuse("{} {} must be at least {} and fit in 32 bits", attribute, n, least);
  return given;
}

/// What SAME adds to an axis of x: outputs are ceil(size / stride).
int64_t added_to(const Tensor& x, const Spatial& s, size_t i) {
  const auto axis = static_cast<int64_t>(x.ndim() - s.axes() + i);
  if (s.stride[i] == 1) return s.reach(i) - 1;  // whatever the size is, so it may be symbolic
  const int64_t n = x.size(axis), outputs = (n + s.stride[i] - 1) / s.stride[i];
  return std::max<int64_t>(0, (outputs - 1) * s.stride[i] + s.reach(i) - n);
}

void pad(const NodeCall& call, const Tensor& x, Spatial& s) {
  const std::string mode = auto_pad(call);
  s.before = s.after = Ints::filled(s.axes(), 0);
  if (mode == "NOTSET") {
    const Ints pads = numbers_of(call, "pads", 2 * s.axes(), INT32_MIN, 0);
    for (size_t i = 0; i < s.axes(); ++i) {
      s.before[i] = pads[i];
      s.after[i] = pads[s.axes() + i];
    }
  } else if (mode != "VALID") {
    for (size_t i = 0; i < s.axes(); ++i) {
      const int64_t all = added_to(x, s, i);
      s.before[i] = mode == "SAME_UPPER" ? all / 2 : all - all / 2;
      s.after[i] = all - s.before[i];
    }
  }
}

}  // namespace

Spatial Spatial::of(const NodeCall& call, const Tensor& x, const Ints& kernel) {
  if (x.ndim() < 3)
    call.refuse("input of shape {}: give (batch, channels, spatial...)", x.dims().text());
  const size_t axes = x.ndim() - 2;
  Spatial s;
  s.kernel = numbers_of(call, "kernel_shape", axes, 1, 1);
  if (!kernel.empty()) {
    if (call.has("kernel_shape") && !std::ranges::equal(s.kernel, kernel))
      call.refuse("kernel_shape {} is not the weight's {}", Dims(s.kernel).text(),
                  Dims(kernel).text());
    s.kernel = kernel;
  } else if (!call.has("kernel_shape")) {
    call.refuse("kernel_shape is missing: give {} numbers", axes);
  }
  s.stride = numbers_of(call, "strides", axes, 1, 1);
  s.dilation = numbers_of(call, "dilations", axes, 1, 1);
  pad(call, x, s);
  return s;
}

Ints Spatial::padding() const {
  Ints pairs;
  for (size_t i = axes(); i-- > 0;) {
    pairs.push_back(before[i]);
    pairs.push_back(after[i]);
  }
  return pairs;
}

bool Spatial::is_padded() const {
  const auto some = [](int64_t n) { return n != 0; };
  return std::ranges::any_of(before, some) || std::ranges::any_of(after, some);
}

Ints kernel_of(const NodeCall& call, const Tensor& weight) {
  if (weight.ndim() < 3)
    call.refuse("weight of shape {}: give (out, in, kernel...)", weight.dims().text());
  Ints kernel;
  for (size_t i = 2; i < weight.ndim(); ++i) kernel.push_back(weight.size(static_cast<int64_t>(i)));
  return kernel;
}

bool rounds_up(const NodeCall& call) {
  return call.integer("ceil_mode", 0) != 0 && auto_pad(call) == "NOTSET";
}

std::string auto_pad(const NodeCall& call) {
  const std::string mode = call.text("auto_pad", "NOTSET");
  if (mode != "NOTSET" && mode != "VALID" && mode != "SAME_UPPER" && mode != "SAME_LOWER")
    call.refuse("auto_pad is '{}': give NOTSET, VALID, SAME_UPPER or SAME_LOWER", mode);
  return mode;
}

}  // namespace weft::onnx
