#include "weft/nn/layers.h"

#include <cmath>

#include "weft/base/error.h"

namespace weft::nn {

namespace {

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

// (1, c, 1, ...): a per-channel tensor beside one of this rank.
Tensor channelwise(const Tensor& t, size_t rank) {
  Dims shape(std::vector<Dim>(rank, Dim(1)));
  shape[1] = -1;
  return t.reshape(shape);
}

}  // namespace

Linear::Linear(int64_t in, int64_t out, bool with_bias, CallSite at) {
  const CallSiteScope site(at);
  check_positive("Linear", "in", in);
  check_positive("Linear", "out", out);
  weight = uniform_for({out, in}, in);
  if (with_bias) bias = uniform_for({out}, in);
}
Tensor Linear::operator()(const Tensor& x, CallSite at) const {
  return x.linear(weight.T(at), bias, at);
}
void Linear::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
}

Conv2d::Conv2d(int64_t in, int64_t out, const Ints& kernel, ConvOptions conv, bool with_bias,
               CallSite at)
    : options(std::move(conv)) {
  const CallSiteScope site(at);
  check_positive("Conv2d", "in", in);
  check_positive("Conv2d", "out", out);
  check_positive("Conv2d", "groups", options.groups);
  if (in % options.groups != 0 || out % options.groups != 0) {
    fail("Conv2d", "in and out must be multiples of groups: got {}, {} and {}", in, out,
         options.groups);
  }
  Dims shape = {out, in / options.groups};
  int64_t fan_in = in / options.groups;
  for (const int64_t size : kernel) {
    check_positive("Conv2d", "every kernel size", size);
    shape.push_back(size);
    fan_in *= size;
  }
  weight = uniform_for(shape, fan_in);
  if (with_bias) bias = uniform_for({out}, fan_in);
}
Tensor Conv2d::operator()(const Tensor& x, CallSite at) const {
  return x.conv2d(weight, bias, options, at);
}
void Conv2d::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
}

BatchNorm::BatchNorm(int64_t features, double epsilon, double moving, bool affine, CallSite at)
    : eps(epsilon), momentum(moving) {
  const CallSiteScope site(at);
  check_positive("BatchNorm", "features", features);
  weight = ones_if(affine, {features});
  bias = zeros_if(affine, {features});
  running_mean = own_constant({features}, 0);
  running_var = own_constant({features}, 1);
  num_batches_tracked = own_constant({}, 0, DType::I64);
}

Tensor BatchNorm::operator()(const Tensor& x, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() < 2) {
    fail("BatchNorm", "needs an input (n, features, ...), got shape {}", x.dims().text());
  }
  if (!is_training()) {
    return x.batchnorm(weight, bias, running_mean, (running_var + eps).rsqrt());
  }
  Axes axes = {0};
  for (size_t i = 2; i < x.ndim(); ++i) axes.push_back(static_cast<int64_t>(i));
  const Tensor mean = x.mean(axes);
  // The variance's derivative by the mean is zero, so its path is left out of the gradient's graph.
  const Tensor centred = x - channelwise(mean.detach(), x.ndim());
  const Tensor var = centred.square().mean(axes);
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
  const Tensor y = x.layernorm(axes, eps);
  if (!weight.defined()) return y;
  return y * weight + bias;
}
void LayerNorm::visit(StateVisitor& v) {
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
  if (!weight.defined()) return y;
  return y * channelwise(weight, x.ndim()) + channelwise(bias, x.ndim());
}
void GroupNorm::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
}

RMSNorm::RMSNorm(int64_t dim, double epsilon, CallSite at) : eps(epsilon) {
  const CallSiteScope site(at);
  weight = ones_if(true, {dim});
}
Tensor RMSNorm::operator()(const Tensor& x, CallSite at) const {
  const CallSiteScope site(at);
  return x * (x.square().mean(-1, true) + eps).rsqrt() * weight;
}
void RMSNorm::visit(StateVisitor& v) { v("weight", weight); }

Embedding::Embedding(int64_t vocabulary, int64_t dim, CallSite at) {
  const CallSiteScope site(at);
  check_positive("Embedding", "vocabulary", vocabulary);
  check_positive("Embedding", "dim", dim);
  weight = trained(Tensor::glorot_uniform({vocabulary, dim}));
}
Tensor Embedding::operator()(const Tensor& ids, CallSite at) const {
  return weight[Index(ids, at)];
}
void Embedding::visit(StateVisitor& v) { v("weight", weight); }

}  // namespace weft::nn
