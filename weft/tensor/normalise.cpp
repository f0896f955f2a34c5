// Normalisation layers' arithmetic and dropout.
#include "weft/tensor/access.h"
#include "weft/tensor/training.h"

namespace weft {

Tensor Tensor::layernorm(const Axes& axes, double eps, CallSite at) const {
  const CallSiteScope site(at);
  const DType out = float_or_default(dtype());
  const Tensor x = cast(sum_dtype(out));
  const Tensor centred = x - x.mean(axes, true);
  return (centred * (centred.square().mean(axes, true) + eps).rsqrt()).cast(out);
}

namespace {

/// A per-channel vector as (1, c, 1, ...).
Tensor per_channel(const Tensor& v, const Tensor& x) {
  Dims shape;
  for (size_t i = 0; i < x.ndim(); ++i) shape.push_back(i == 1 ? x.dim(1) : Dim(1));
  if (!(v.dims().product() == x.dim(1)))
    fail("batchnorm", "a vector of shape {} for {} channels of shape {}: the sizes must be equal",
         v.dims().text(), x.dim(1).text(), x.dims().text());
  return v.reshape(shape);
}

}  // namespace

Tensor Tensor::batchnorm(const Tensor& weight, const Tensor& bias, const Tensor& mean,
                         const Tensor& invstd, CallSite at) const {
  const CallSiteScope site(at);
  if (ndim() < 2) fail("batchnorm", "shape {} has no channel axis 1", dims().text());
  Tensor y = (*this - per_channel(mean, *this)) * per_channel(invstd, *this);
  if (weight.defined()) y = y * per_channel(weight, *this);
  return bias.defined() ? y + per_channel(bias, *this) : y;
}

Tensor Tensor::dropout(double p, CallSite at) const {
  const CallSiteScope site(at);
  if (!(p >= 0 && p <= 1)) fail("dropout", "the probability is {}: it must be from 0 to 1", p);
  if (!is_training() || p == 0) return *this;
  if (p == 1) return zeros_like();
  const Tensor draw = rand(dims());
  const Tensor here = node()->device == 0 ? draw : draw.to(device());
  return (here >= p).where(*this * (1 / (1 - p)), 0);
}

}  // namespace weft
