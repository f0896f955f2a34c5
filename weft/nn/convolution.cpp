#include "weft/nn/convolution.h"

#include "weft/base/error.h"

namespace weft::nn {

namespace {

struct Kernels {
  Dims shape;  // (outer, inner / groups, kernel...)
  int64_t fan_in;
};

Kernels kernels(const char* layer, int64_t outer, int64_t inner, const Ints& kernel,
                int64_t groups) {
  check_positive(layer, "groups", groups);
  check_positive(layer, "in and out", std::min(outer, inner));
  if (outer % groups != 0 || inner % groups != 0) {
    fail(layer, "in and out must be multiples of groups: got {} and {}, and {} groups", outer,
         inner, groups);
  }
  Kernels made{{outer, inner / groups}, inner / groups};
  for (const int64_t size : kernel) {
    check_positive(layer, "every kernel size", size);
    made.shape.push_back(size);
    made.fan_in *= size;
  }
  return made;
}

}  // namespace

Ints same_padding(const Ints& kernel, const Ints& dilation) {
  const Ints step = for_axes("same_padding", "dilation", dilation, kernel.size());
  Ints padding;
  for (size_t axis = kernel.size(); axis-- > 0;) {
    const int64_t reach = step[axis] * (kernel[axis] - 1);
    padding.push_back(reach / 2);
    padding.push_back(reach - reach / 2);
  }
  return padding;
}

Conv::Conv(int64_t in, int64_t out, const Ints& kernel, ConvOptions conv, bool with_bias,
           CallSite at)
    : options(std::move(conv)) {
  const CallSiteScope site(at);
  const Kernels made = kernels("Conv", out, in, kernel, options.groups);
  weight = uniform_for(made.shape, made.fan_in);
  if (with_bias) bias = uniform_for({out}, made.fan_in);
}
Tensor Conv::operator()(const Tensor& x, CallSite at) const {
  return x.conv2d(weight, bias, options, at);
}
void Conv::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
}

ConvTranspose::ConvTranspose(int64_t in, int64_t out, const Ints& kernel, ConvOptions conv,
                             bool with_bias, CallSite at)
    : options(std::move(conv)) {
  const CallSiteScope site(at);
  const Kernels made = kernels("ConvTranspose", in, out, kernel, options.groups);
  weight = uniform_for(made.shape, made.fan_in);
  if (with_bias) bias = uniform_for({out}, made.fan_in);
}
Tensor ConvTranspose::operator()(const Tensor& x, CallSite at) const {
  return x.conv_transpose2d(weight, bias, options, at);
}
void ConvTranspose::visit(StateVisitor& v) {
  v("weight", weight);
  v("bias", bias);
}

}  // namespace weft::nn
