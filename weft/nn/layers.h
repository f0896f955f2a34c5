// Layers: plain structs with public tensors, a call operator and visit(). Names and shapes are
// PyTorch's, so that its state dicts load. Weights start as in torch.nn unless said otherwise: f32,
// on the default device, with requires_grad(). Sizes below 1 and inputs that do not fit are Errors
// that name the layer's line or the call's.
//
//   nn::Linear head(784, 10);
//   const Tensor logits = head(images.flatten(1));
#pragma once

#include <cstdint>

#include "weft/nn/state.h"

namespace weft::nn {

// x (..., in) to (..., out): x @ weight^T + bias. Without bias that tensor is empty.
struct Linear {
  Linear(int64_t in, int64_t out, bool with_bias = true, CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight;  // (out, in), uniform in +-1/sqrt(in)
  Tensor bias;    // (out,)
};

// x (n, in, spatial...) to (n, out, places...), as Tensor::conv2d. The kernel's length says how
// many spatial axes there are: {3} is 1-D, {3, 3} 2-D, {3, 3, 3} 3-D. in and out are multiples of
// options.groups: Conv2d(32, 64, {3, 3}, {.stride = 2, .padding = 1}).
struct Conv2d {
  Conv2d(int64_t in, int64_t out, const Ints& kernel, ConvOptions options = {},
         bool with_bias = true, CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight;  // (out, in / groups, kernel...), uniform in +-1/sqrt(in / groups * kernel)
  Tensor bias;    // (out,)
  ConvOptions options;
};

// Normalises channels (axis 1) of x (n, features, ...) to the same shape. Inside a TrainingScope by
// the batch's own mean and variance, which also move the running ones by `momentum`; else by the
// running ones. Ioffe and Szegedy 2015.
struct BatchNorm {
  explicit BatchNorm(int64_t features, double eps = 1e-5, double momentum = 0.1, bool affine = true,
                     CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here());
  void visit(StateVisitor& v);

  Tensor weight, bias;               // (features,); empty when not affine
  Tensor running_mean, running_var;  // (features,); the variance is unbiased
  Tensor num_batches_tracked;        // i64 ()
  double eps, momentum;

 private:
  void update_running(const Tensor& mean, const Tensor& var, const Dim& count);
};

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

  Tensor weight, bias;  // shape
  Ints shape;
  double eps;
};

// Normalises `groups` groups of channels (axis 1) of x (n, channels, ...), to the same shape;
// channels is a multiple of groups. Wu and He 2018.
struct GroupNorm {
  GroupNorm(int64_t groups, int64_t channels, double eps = 1e-5, bool affine = true,
            CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight, bias;  // (channels,)
  int64_t groups;
  double eps;
};

// x / sqrt(mean(x^2) + eps) * weight over the last axis of x (..., dim). Zhang and Sennrich 2019.
struct RMSNorm {
  explicit RMSNorm(int64_t dim, double eps = 1e-6, CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight;  // (dim,)
  double eps;
};

// Integers (...) of any integer dtype to rows of a table (..., dim). Negative numbers count from
// the end; those outside [-vocabulary, vocabulary) give zeros.
struct Embedding {
  Embedding(int64_t vocabulary, int64_t dim, CallSite at = CallSite::here());
  Tensor operator()(const Tensor& ids, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight;  // (vocabulary, dim), Glorot uniform as in tinygrad
};

// Inside a TrainingScope zeroes elements with probability p in [0, 1], and scales the rest by
// 1 / (1 - p); else does nothing. Srivastava et al. 2014.
struct Dropout {
  explicit Dropout(double probability = 0.5) : p(probability) {}
  Tensor operator()(const Tensor& x, CallSite at = CallSite::here()) const {
    return x.dropout(p, at);
  }
  void visit(StateVisitor&) {}

  double p;
};

}  // namespace weft::nn
