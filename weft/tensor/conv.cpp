// Convolutions over sliding windows, for any number of spatial axes.
#include <algorithm>

#include "weft/tensor/access.h"
#include "weft/tensor/movement.h"
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

namespace {

/// How many taps of a kernel meet inputs in one phase of the stride, at most.
int64_t taps_of(const ConvShape& c, size_t axis) {
  return (c.kernel[axis] + c.stride[axis] - 1) / c.stride[axis];
}

/// (n, g, 1, in, size + taps - 1..., kernel...): for output q * stride + r and tap t * stride + r
/// the input q - t, 0 outside of the image.
Tensor inputs_of_taps(const Tensor& x, const ConvShape& c, const Ints& taps, int64_t groups,
                      int64_t in) {
  std::vector<DimPair> border(x.ndim(), DimPair(0, 0));
  for (size_t i = 0; i < c.spatial; ++i) border[2 + i] = {taps[i] - 1, taps[i] - 1};
  const Ints ones = Ints::filled(c.spatial, 1);
  const Tensor w = windows::over("conv_transpose2d", x.pad(border), taps, ones, ones)
                       .flip(windows::last_axes(c.spatial));
  Dims shape{x.dim(0), groups, 1, in};
  for (size_t i = 0; i < c.spatial; ++i) shape.push_back(w.dim(static_cast<int64_t>(2 + i)));
  Dims single = shape, phases = shape, merged = shape;
  for (size_t i = 0; i < c.spatial; ++i) {
    single.push_back(taps[i]), single.push_back(1);
    phases.push_back(taps[i]), phases.push_back(c.stride[i]);
    merged.push_back(taps[i] * c.stride[i]);
    shape.push_back(c.kernel[i]);
  }
  return shrink_to(w.reshape(single).expand(phases).reshape(merged), {shape.begin(), shape.end()});
}

/// (n, g, out, in, size + taps - 1..., kernel...)
Tensor products_of_taps(const Tensor& x, const Tensor& weight, const ConvShape& c, const Ints& taps,
                        int64_t groups) {
  const int64_t in = weight.size(0) / groups;
  Dims filter{1, groups, weight.size(1), in};
  for (size_t i = 0; i < c.spatial; ++i) filter.push_back(1);
  for (const int64_t k : c.kernel) filter.push_back(k);
  return inputs_of_taps(x, c, taps, groups, in) *
         weight.unflatten(0, {groups, in}).transpose(1, 2).reshape(filter);
}

/// The whole of a transposed convolution, as a convolution with step 1 for each of the `stride`
/// phases of the output: no product is with a zero between inputs.
Tensor transposed_by_phases(const Tensor& x, const Tensor& weight, const ConvShape& c,
                            int64_t groups) {
  const DType met = promote(x.dtype(), weight.dtype()), run = sum_dtype(met);
  Ints taps;
  for (size_t i = 0; i < c.spatial; ++i) taps.push_back(taps_of(c, i));
  Tensor y = products_of_taps(x.cast(run), weight.cast(run), c, taps, groups);
  Dims padded = y.dims(), result{x.dim(0), groups * weight.size(1)};
  Axes summed{3};
  Ints order{0, 1, 2};
  for (size_t i = 0, at = 4 + c.spatial; i < c.spatial; ++i, at += 2) {
    const auto axis = static_cast<int64_t>(at);
    padded[4 + c.spatial + i] = taps[i] * c.stride[i];
    result.push_back(y.dim(static_cast<int64_t>(4 + i)) * c.stride[i]);
    summed.push_back(axis);
    order.push_back(static_cast<int64_t>(3 + i));
    order.push_back(static_cast<int64_t>(3 + c.spatial + i));
  }
  // Padding the products, not the kernel, keeps infinities out of outputs that do not have them.
  y = pad_to(y, {padded.begin(), padded.end()});
  for (size_t i = c.spatial; i-- > 0;)
    y = y.unflatten(static_cast<int64_t>(4 + c.spatial + i), {taps[i], c.stride[i]});
  return y.sum(summed).permute(order).cast(met).contiguous().reshape(result);
}

/// What is cut off at both ends of each spatial axis; less than 0 where there is more.
struct Ends {
  Ints before, after;
};

Ends ends_of(const Tensor& x, const ConvShape& c, const ConvOptions& o) {
  const Ints extra = per_axis("conv_transpose2d", "output_padding", o.output_padding, c.spatial);
  for (const int64_t more : extra)
    if (more < 0 || more > INT32_MAX)
      fail("conv_transpose2d", "output_padding {} must be at least 0 and fit in 32 bits", more);
  const auto cut = windows::pad_amounts("conv_transpose2d", x, o.padding, c.spatial);
  Ends ends;
  for (size_t i = 0; i < c.spatial; ++i) {
    ends.before.push_back(cut[2 + i].first.value());
    ends.after.push_back(cut[2 + i].second.value() - extra[i]);
  }
  return ends;
}

/// With a dilation: zeros between the inputs, then a convolution with the reversed kernels of
/// exchanged channels.
Tensor transposed_over_zeros(const Tensor& x, const Tensor& weight, const ConvShape& c,
                             const ConvOptions& o, const Ends& ends) {
  const OpScope scope(x, CallSite::here());
  build::Extents zeros(x.ndim(), scope.g.index(0));
  build::AxisList between(x.ndim(), 0);
  Ints padding;
  for (size_t i = c.spatial; i-- > 0;) {
    const int64_t reach = c.dilation[i] * (c.kernel[i] - 1);
    between[2 + i] = c.stride[i] - 1;
    padding.push_back(reach - ends.before[i]);
    padding.push_back(reach - ends.after[i]);
  }
  const Tensor spaced = scope.result(build::pad(scope.g, x.node(), zeros, zeros, between));
  const int64_t in = weight.size(0) / o.groups;
  const Tensor grouped = weight.flip(windows::last_axes(c.spatial)).unflatten(0, {o.groups, in});
  const Tensor w = grouped.transpose(1, 2).flatten(0, 1);
  return spaced.conv2d(w, {}, {.groups = o.groups, .dilation = o.dilation, .padding = padding});
}

}  // namespace

Tensor Tensor::conv_transpose2d(const Tensor& weight, const Tensor& bias, const ConvOptions& o,
                                CallSite at) const {
  const CallSiteScope site(at);
  const ConvShape c = conv_shape("conv_transpose2d", *this, weight, o);
  if (!(dim(1) == weight.dim(0)) || weight.size(0) % o.groups != 0)
    fail("conv_transpose2d",
         "input {} has {} channels but weight {} takes {}: they must be equal, and a multiple of "
         "the {} "
         "groups",
         dims().text(), dim(1).text(), weight.dims().text(), weight.dim(0).text(), o.groups);
  const Ends ends = ends_of(*this, c, o);
  const bool steps = std::ranges::any_of(c.stride, [](int64_t s) { return s > 1; });
  if (!steps || std::ranges::any_of(c.dilation, [](int64_t d) { return d > 1; }))
    return with_bias(transposed_over_zeros(*this, weight, c, o, ends), bias, c.spatial);
  std::vector<DimPair> change(ndim(), DimPair(0, 0));
  for (size_t i = 0; i < c.spatial; ++i) {
    const int64_t rest = c.kernel[i] - taps_of(c, i) * c.stride[i];
    change[2 + i] = {-ends.before[i], rest - ends.after[i]};
  }
  const Tensor y = transposed_by_phases(*this, weight, c, o.groups).pad(change);
  return with_bias(y, bias, c.spatial);
}

}  // namespace weft
