#include "weft/nn/initialise.h"

#include <cmath>

#include "weft/base/error.h"

namespace weft::nn {

Tensor trained(Tensor t) {
  t.requires_grad_();
  return t;
}

Tensor uniform_for(const Dims& shape, int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return trained(Tensor::uniform(shape, -bound, bound));
}

Tensor ones_if(bool wanted, const Dims& shape) {
  return wanted ? trained(own_constant(shape, 1)) : Tensor();
}
Tensor zeros_if(bool wanted, const Dims& shape) {
  return wanted ? trained(own_constant(shape, 0)) : Tensor();
}

Dims dims_of(const Ints& sizes) {
  Dims dims;
  for (const int64_t size : sizes) dims.push_back(size);
  return dims;
}

void check_positive(const char* layer, const char* what, int64_t value) {
  if (value < 1) fail(layer, "{} must be at least 1, not {}", what, value);
}

Ints for_axes(const char* layer, const char* what, const Ints& sizes, size_t axes) {
  if (sizes.size() == axes) return sizes;
  if (sizes.size() == 1) return Ints::filled(axes, sizes[0]);
  fail(layer, "{} has {} numbers; give one, or {}", what, sizes.size(), axes);
}

Tensor channelwise(const Tensor& t, size_t rank) {
  Dims shape(std::vector<Dim>(rank, Dim(1)));
  shape[1] = -1;
  return t.reshape(shape);
}

Tensor scaled_channels(const Tensor& y, const Tensor& weight, const Tensor& bias) {
  if (!weight.defined()) return y;
  return y * channelwise(weight, y.ndim()) + channelwise(bias, y.ndim());
}

}  // namespace weft::nn
