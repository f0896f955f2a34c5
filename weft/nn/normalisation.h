// Normalising layers. layers.h says what holds for all layers.
#pragma once

#include "weft/nn/initialise.h"

namespace weft::nn {

// Normalises channels (axis 1) of x (n, features, ...) to the same shape. Inside a TrainingScope by
// the batch's own mean and variance, which also move the running ones by `momentum`; else by the
// running ones, if it tracks them. Ioffe and Szegedy 2015.
struct BatchNorm {
  explicit BatchNorm(int64_t features, double eps = 1e-5, double momentum = 0.1, bool affine = true,
                     bool track_running_stats = true, CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here());
  void visit(StateVisitor& v);

  Tensor weight, bias;               // (features,), ones and zeros; empty when not affine
  Tensor running_mean, running_var;  // (features,); the variance is unbiased
  Tensor num_batches_tracked;        // i64 ()
  double eps, momentum;

 private:
  void update_running(const Tensor& mean, const Tensor& var, const Dim& count);
};
using BatchNorm1d = BatchNorm;
using BatchNorm2d = BatchNorm;
using BatchNorm3d = BatchNorm;

// Normalises every channel (axis 1) of every sample of x (n, features, spatial...) by itself, to
// the same shape. Ulyanov, Vedaldi and Lempitsky 2016.
struct InstanceNorm {
  explicit InstanceNorm(int64_t features, double eps = 1e-5, bool affine = false,
                        CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight, bias;  // (features,), ones and zeros; empty when not affine
  int64_t features;
  double eps;
};
using InstanceNorm1d = InstanceNorm;
using InstanceNorm2d = InstanceNorm;
using InstanceNorm3d = InstanceNorm;

// Normalises the last `shape.size()` axes of x (..., shape...), to the same shape. Ba, Kiros and
// Hinton 2016.
struct LayerNorm {
  explicit LayerNorm(const Ints& shape, double eps = 1e-5, bool affine = true,
                     CallSite at = CallSite::here());
  LayerNorm(std::initializer_list<int64_t> sizes, double epsilon = 1e-5, bool affine = true,
            CallSite at = CallSite::here())
      : LayerNorm(Ints(sizes), epsilon, affine, at) {}
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  // shape, ones and zeros; either may be taken away: norm.bias = Tensor()
  Tensor weight, bias;
  Ints shape;
  double eps;
};

// Normalises the channels (axis 1) of each place of x (n, channels, ...), to the same shape.
struct LayerNorm2d {
  explicit LayerNorm2d(int64_t channels, double eps = 1e-5, bool affine = true,
                       CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight, bias;  // (channels,), ones and zeros
  int64_t channels;
  double eps;
};

// Normalises `groups` groups of channels (axis 1) of x (n, channels, ...), to the same shape;
// channels is a multiple of groups. Wu and He 2018.
struct GroupNorm {
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true,
            CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight, bias;  // (channels,), ones and zeros
  int64_t groups;
  double eps;
};

// x / sqrt(mean(x^2) + eps) * weight over the last axis of x (..., dim). Zhang and Sennrich 2019.
struct RMSNorm {
  explicit RMSNorm(int64_t dim, double eps = 1e-6, bool affine = true,
                   CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight;  // (dim,), ones; empty when not affine
  double eps;
};

}  // namespace weft::nn
