// Convolutions over sliding windows, for any number of spatial axes.
#include <cmath>

#include "weft/tensor/access.h"
#include "weft/tensor/windows.h"

namespace weft {

namespace {

Tensor with_bias(const Tensor& y, const Tensor& bias, size_t spatial) {
  if (!bias.defined()) return y;
  Dims shape{1, bias.dim(0)};
  for (size_t i = 0; i < spatial; ++i) shape.push_back(1);
  return y + bias.reshape(shape);
}

struct ConvShape {
  size_t spatial;
  Ints kernel, stride, dilation;
};

ConvShape conv_shape(const char* tag, const Tensor& x, const Tensor& weight, const ConvOptions& o) {
  if (x.ndim() < 3 || weight.ndim() != x.ndim())
    fail(
        tag,
        "input {} and weight {} must both have a batch or output axis, a channel axis and the same "
        "spatial axes",
        x.dims().text(), weight.dims().text());
  ConvShape c;
  c.spatial = x.ndim() - 2;
  for (size_t i = 0; i < c.spatial; ++i)
    c.kernel.push_back(weight.size(static_cast<int64_t>(i) + 2));
  c.stride = windows::steps(tag, "stride", o.stride, c.spatial);
  c.dilation = windows::steps(tag, "dilation", o.dilation, c.spatial);
  if (o.groups < 1) fail(tag, "{} groups: give at least 1", o.groups);
  return c;
}

}  // namespace

Tensor Tensor::conv2d(const Tensor& weight, const Tensor& bias, const ConvOptions& o,
                      CallSite at) const {
  const CallSiteScope site(at);
  const ConvShape c = conv_shape("conv2d", *this, weight, o);
  const Dim channels = dim(1), in = weight.dim(1);
  const int64_t out = weight.size(0);
  if (!(channels == in * o.groups) || out % o.groups != 0)
    fail("conv2d",
         "input {} has {} channels and weight {} takes {} in each of {} groups: the channels must "
         "be "
         "groups * weight.size(1), and weight.size(0) a multiple of groups",
         dims().text(), channels.text(), weight.dims().text(), in.text(), o.groups);
  const DType met = promote(dtype(), weight.dtype()), run = sum_dtype(met);
  const Tensor x = cast(run).pad(windows::pad_amounts("conv2d", *this, o.padding, c.spatial));
  const Tensor w = windows::over("conv2d", x, c.kernel, c.stride, c.dilation);
  // (n, g, 1, in, outputs..., kernel...) * (1, g, out/g, in, 1..., kernel...)
  Dims input{dim(0), o.groups, 1, in}, filter{1, o.groups, out / o.groups, in};
  Dims result{dim(0), out};
  for (size_t i = 2; i < w.ndim(); ++i) {
    const Dim d = w.dim(static_cast<int64_t>(i));
    input.push_back(d);
    filter.push_back(i < 2 + c.spatial ? Dim(1) : d);
    if (i < 2 + c.spatial) result.push_back(d);
  }
  Axes summed = windows::last_axes(c.spatial);
  summed.push_back(3);
  const Tensor y = (w.reshape(input) * weight.cast(run).reshape(filter)).sum(summed);
  return with_bias(y.reshape(result).cast(met), bias, c.spatial);
}

Tensor Tensor::conv_transpose2d(const Tensor& weight, const Tensor& bias, const ConvOptions& o,
                                CallSite at) const {
  const OpScope scope(*this, at);
  const ConvShape c = conv_shape("conv_transpose2d", *this, weight, o);
  if (!(dim(1) == weight.dim(0)) || weight.size(0) % o.groups != 0)
    fail("conv_transpose2d",
         "input {} has {} channels but weight {} takes {}: they must be equal, and a multiple of "
         "the {} "
         "groups",
         dims().text(), dim(1).text(), weight.dims().text(), weight.dim(0).text(), o.groups);
  // Zeros between the inputs, then a convolution with the reversed kernels of exchanged channels.
  const Ints extra = per_axis("conv_transpose2d", "output_padding", o.output_padding, c.spatial);
  for (const int64_t more : extra)
    if (more < 0 || more > INT32_MAX)
      fail("conv_transpose2d", "output_padding {} must be at least 0 and fit in 32 bits", more);
  const std::vector<DimPair> cut =
      windows::pad_amounts("conv_transpose2d", *this, o.padding, c.spatial);
  build::Extents zeros(ndim(), scope.g.index(0));
  build::AxisList between(ndim(), 0);
  Ints padding;
  for (size_t i = c.spatial; i-- > 0;) {
    const int64_t reach = c.dilation[i] * (c.kernel[i] - 1);
    between[2 + i] = c.stride[i] - 1;
    padding.push_back(reach - cut[2 + i].first.value());
    padding.push_back(reach - cut[2 + i].second.value() + extra[i]);
  }
  const Tensor spaced = scope.result(build::pad(scope.g, node(), zeros, zeros, between));
  const int64_t in = weight.size(0) / o.groups;
  const Tensor grouped = weight.flip(windows::last_axes(c.spatial)).unflatten(0, {o.groups, in});
  const Tensor w = grouped.transpose(1, 2).flatten(0, 1);
  return spaced.conv2d(w, bias, {.groups = o.groups, .dilation = o.dilation, .padding = padding});
}

}  // namespace weft
