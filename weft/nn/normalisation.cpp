#include "weft/nn/normalisation.h"

#include "weft/base/error.h"
#include "weft/tensor/training.h"

namespace weft::nn {

BatchNorm::BatchNorm(int64_t features, double epsilon, double moving, bool affine,
                     bool track_running_stats, CallSite at)
    : eps(epsilon), momentum(moving) {
  const CallSiteScope site(at);
  check_positive("BatchNorm", "features", features);
  weight = ones_if(affine, {features});
  bias = zeros_if(affine, {features});
  if (!track_running_stats) return;
  running_mean = own_constant({features}, 0);
  running_var = own_constant({features}, 1);
  num_batches_tracked = own_constant({}, 0, DType::I64);
}

Tensor BatchNorm::operator()(const Tensor& x, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() < 2) {
    fail("BatchNorm", "needs an input (n, features, ...), got shape {}", x.dims().text());
  }
  if (!is_training() && running_mean.defined()) {
    return x.batchnorm(weight, bias, running_mean, (running_var + eps).rsqrt());
  }
  Axes axes = {0};
  for (size_t i = 2; i < x.ndim(); ++i) axes.push_back(static_cast<int64_t>(i));
  const Tensor mean = x.mean(axes);
  // The variance's derivative by the mean is zero, so its path is left out of the gradient's graph.
  const Tensor centred = x - channelwise(mean.detach(), x.ndim());
  const Tensor var = centred.square().mean(axes);
  if (running_mean.defined())
    update_running(mean.detach(), var.detach(), x.dims().product() / x.dim(1));
  return x.batchnorm(weight, bias, mean, (var + eps).rsqrt());
}

void BatchNorm::update_running(const Tensor& mean, const Tensor& var, const Dim& count) {
  const int64_t n = count.max();
  const double unbiased = n > 1 ? static_cast<double>(n) / static_cast<double>(n - 1) : 1;
  running_mean.assign(running_mean * (1 - momentum) + mean * momentum);
  running_var.assign(running_var * (1 - momentum) + var * (momentum * unbiased));
  num_batches_tracked += 1;
}

void BatchNorm::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
  v("running_mean", running_mean);
  v("running_var", running_var);
  v("num_batches_tracked", num_batches_tracked);
}

namespace {

void check_channels(const char* layer, const Tensor& x, int64_t channels, size_t least_rank) {
  if (x.ndim() >= least_rank && x.dim(1) == Dim(channels)) return;
  fail(layer, "needs an input (n, {}, ...) of {} axes or more, got shape {}", channels, least_rank,
       x.dims().text());
}

}  // namespace

InstanceNorm::InstanceNorm(int64_t count, double epsilon, bool affine, CallSite at)
    : features(count), eps(epsilon) {
  const CallSiteScope site(at);
  check_positive("InstanceNorm", "features", features);
  weight = ones_if(affine, {features});
  bias = zeros_if(affine, {features});
}
Tensor InstanceNorm::operator()(const Tensor& x, CallSite at) const {
  const CallSiteScope site(at);
  check_channels("InstanceNorm", x, features, 3);
  Axes spatial;
  for (size_t i = 2; i < x.ndim(); ++i) spatial.push_back(static_cast<int64_t>(i));
  return scaled_channels(x.layernorm(spatial, eps), weight, bias);
}
void InstanceNorm::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
}

LayerNorm::LayerNorm(const Ints& normalized, double epsilon, bool affine, CallSite at)
    : shape(normalized), eps(epsilon) {
  const CallSiteScope site(at);
  weight = ones_if(affine, dims_of(shape));
  bias = zeros_if(affine, dims_of(shape));
}
Tensor LayerNorm::operator()(const Tensor& x, CallSite at) const {
  const CallSiteScope site(at);
  Axes axes;
  const auto rank = static_cast<int64_t>(shape.size());
  for (int64_t i = 0; i < rank; ++i) {
    axes.push_back(i - rank);
    if (static_cast<int64_t>(x.ndim()) < rank ||
        x.dim(i - rank) != Dim(shape[static_cast<size_t>(i)])) {
      fail("LayerNorm", "the last axes of an input of shape {} must be {}", x.dims().text(),
           dims_of(shape).text());
    }
  }
  const Tensor y = x.layernorm(axes, eps), scaled = weight.defined() ? y * weight : y;
  return bias.defined() ? scaled + bias : scaled;
}
void LayerNorm::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
}

LayerNorm2d::LayerNorm2d(int64_t count, double epsilon, bool affine, CallSite at)
    : channels(count), eps(epsilon) {
  const CallSiteScope site(at);
  check_positive("LayerNorm2d", "channels", channels);
  weight = ones_if(affine, {channels});
  bias = zeros_if(affine, {channels});
}
Tensor LayerNorm2d::operator()(const Tensor& x, CallSite at) const {
  const CallSiteScope site(at);
  check_channels("LayerNorm2d", x, channels, 2);
  return scaled_channels(x.layernorm(1, eps), weight, bias);
}
void LayerNorm2d::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
}

GroupNorm::GroupNorm(int64_t group_count, int64_t channels, double epsilon, bool affine,
                     CallSite at)
    : groups(group_count), eps(epsilon) {
  const CallSiteScope site(at);
  check_positive("GroupNorm", "groups", groups);
  if (channels < groups || channels % groups != 0) {
    fail("GroupNorm", "channels must be a multiple of groups: got {} and {}", channels, groups);
  }
  weight = ones_if(affine, {channels});
  bias = zeros_if(affine, {channels});
}
Tensor GroupNorm::operator()(const Tensor& x, CallSite at) const {
  const CallSiteScope site(at);
  const Tensor y = x.reshape({x.dim(0), groups, -1}).layernorm(-1, eps).reshape(x.dims());
  return scaled_channels(y, weight, bias);
}
void GroupNorm::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
}

RMSNorm::RMSNorm(int64_t dim, double epsilon, bool affine, CallSite at) : eps(epsilon) {
  const CallSiteScope site(at);
  check_positive("RMSNorm", "dim", dim);
  weight = ones_if(affine, {dim});
}
Tensor RMSNorm::operator()(const Tensor& x, CallSite at) const {
  const CallSiteScope site(at);
  const Tensor y = x * (x.square().mean(-1, true) + eps).rsqrt();
  return weight.defined() ? y * weight : y;
}
void RMSNorm::visit(StateVisitor& v) { v("weight", weight); }

}  // namespace weft::nn
