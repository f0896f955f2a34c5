// Convolutions of any number of spatial axes, and their adjoints. layers.h says what holds for all
// layers.
#pragma once

#include "weft/nn/initialise.h"

namespace weft::nn {

// The padding with which a convolution of stride 1 keeps sizes: "same". Where it is odd, one more
// place at the end.
Ints same_padding(const Ints& kernel, const Ints& dilation = 1);

// x (n, in, spatial...) to (n, out, places...), as Tensor::conv2d. The kernel's length says how
// many spatial axes there are. in and out are multiples of options.groups.
struct Conv {
  Conv(int64_t in, int64_t out, const Ints& kernel, ConvOptions options = {}, bool with_bias = true,
       CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight;  // (out, in / groups, kernel...), uniform in +-1/sqrt(in / groups * kernel)
  Tensor bias;    // (out,), likewise
  ConvOptions options;
};

// Its adjoint in x, as Tensor::conv_transpose2d.
struct ConvTranspose {
  ConvTranspose(int64_t in, int64_t out, const Ints& kernel, ConvOptions options = {},
                bool with_bias = true, CallSite at = CallSite::here());
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor& v);

  Tensor weight;  // (in, out / groups, kernel...), uniform in +-1/sqrt(out / groups * kernel)
  Tensor bias;    // (out,), likewise
  ConvOptions options;
};

// Of so many spatial axes; one kernel size stands for all of them:
// Conv2d(32, 64, 3, {.stride = 2, .padding = 1}).
template <class Layer, size_t kAxes>
struct WithAxes : Layer {
  WithAxes(int64_t in, int64_t out, const Ints& kernel, ConvOptions conv = {},
           bool with_bias = true, CallSite at = CallSite::here())
      : Layer(in, out, for_axes("convolution", "the kernel", kernel, kAxes), std::move(conv),
              with_bias, at) {}
};
using Conv1d = WithAxes<Conv, 1>;
using Conv2d = WithAxes<Conv, 2>;
using Conv3d = WithAxes<Conv, 3>;
using ConvTranspose1d = WithAxes<ConvTranspose, 1>;
using ConvTranspose2d = WithAxes<ConvTranspose, 2>;
using ConvTranspose3d = WithAxes<ConvTranspose, 3>;

}  // namespace weft::nn
