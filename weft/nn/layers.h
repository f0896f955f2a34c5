// Layers: plain structs with public tensors, a call operator and visit(). Names and shapes are
// PyTorch's, so that its state dicts load. Weights start as in torch.nn unless said otherwise: f32,
// on the default device, with requires_grad(). Sizes below 1 and inputs that do not fit are Errors
// that name the layer's line or the call's.
//
//   nn::Linear head(784, 10);
//   const Tensor logits = head(images.flatten(1));
#pragma once

#include <cstdint>

#include "weft/nn/convolution.h"    // IWYU pragma: export
#include "weft/nn/normalisation.h"  // IWYU pragma: export
#include "weft/nn/pooling.h"        // IWYU pragma: export
#include "weft/nn/state.h"
#include "weft/tensor/training.h"  // IWYU pragma: export

namespace weft::nn {

// x (..., in) to (..., out): x @ weight^T + bias. Without bias that tensor is empty.
struct Linear {
  Linear(int64_t in, int64_t out, bool with_bias = true, CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight;  // (out, in), uniform in +-1/sqrt(in)
  Tensor bias;    // (out,)
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

// What it is given: where a layer is left out.
struct Identity {
  Tensor operator()(const Tensor& x) const { return x; }
  void visit(StateVisitor&) {}
};

// Axes first to last as one; first is 1 where batches stay apart.
struct Flatten {
  explicit Flatten(int64_t first_axis = 1, int64_t last_axis = -1)
      : first(first_axis), last(last_axis) {}
  Tensor operator()(const Tensor& x, CallSite at = CallSite::here()) const {
    return x.flatten(first, last, at);
  }
  void visit(StateVisitor&) {}

  int64_t first, last;
};

}  // namespace weft::nn
