// Convolutions and pools over sliding windows, for any number of spatial axes.
#include <cmath>

#include "weft/tensor/access.h"

namespace weft {

namespace {

/// (before, after) for every axis of x from `padding`: one number, one per spatial axis, or pairs
/// from the last spatial axis to the first.
std::vector<DimPair> pad_amounts(const char* tag, const Tensor& x, const Ints& padding,
                                 size_t spatial) {
  std::vector<DimPair> amounts(x.ndim(), DimPair(0, 0));
  const size_t first = x.ndim() - spatial;
  const bool pairs = padding.size() == 2 * spatial && spatial > 0;
  const Ints each = pairs ? padding : per_axis(tag, "padding", padding, spatial);
  for (size_t i = 0; i < spatial; ++i) {
    const size_t at = pairs ? 2 * (spatial - 1 - i) : i;
    amounts[first + i] = {each[at], each[pairs ? at + 1 : at]};
  }
  return amounts;
}

/// (..., spatial) to (..., outputs, kernel): windows over the last axes.
Tensor windows(const char* tag, const Tensor& x, const Ints& kernel, const Ints& stride,
               const Ints& dilation) {
  const auto rank = static_cast<int64_t>(x.ndim());
  const auto spatial = static_cast<int64_t>(kernel.size());
  Tensor y = x;
  for (int64_t i = 0; i < spatial; ++i) {
    const auto k = static_cast<size_t>(i);
    const int64_t reach = dilation[k] * (kernel[k] - 1) + 1;
    if (x.dim(rank - spatial + i).max() < reach)
      fail(tag,
           "a kernel of {} (dilation {}) reaches over {} places, but axis {} of the padded input "
           "{} has "
           "{}: pad more or use a smaller kernel",
           kernel[k], dilation[k], reach, rank - spatial + i, x.dims().text(),
           x.dim(rank - spatial + i).text());
    y = y.window(rank - spatial + i, kernel[k], stride[k], dilation[k]);
  }
  return y;
}

Axes last_axes(size_t count) {
  Axes axes;
  for (size_t i = count; i > 0; --i) axes.push_back(-static_cast<int64_t>(i));
  return axes;
}

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
  c.stride = per_axis(tag, "stride", o.stride, c.spatial);
  c.dilation = per_axis(tag, "dilation", o.dilation, c.spatial);
  for (size_t i = 0; i < c.spatial; ++i)
    if (c.stride[i] < 1 || c.dilation[i] < 1)
      fail(tag, "stride {} and dilation {} must be at least 1", c.stride[i], c.dilation[i]);
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
  const Tensor x = cast(run).pad(pad_amounts("conv2d", *this, o.padding, c.spatial));
  const Tensor w = windows("conv2d", x, c.kernel, c.stride, c.dilation);
  // (n, g, 1, in, outputs..., kernel...) * (1, g, out/g, in, 1..., kernel...)
  Dims input{dim(0), o.groups, 1, in}, filter{1, o.groups, out / o.groups, in};
  Dims result{dim(0), out};
  for (size_t i = 2; i < w.ndim(); ++i) {
    const Dim d = w.dim(static_cast<int64_t>(i));
    input.push_back(d);
    filter.push_back(i < 2 + c.spatial ? Dim(1) : d);
    if (i < 2 + c.spatial) result.push_back(d);
  }
  Axes summed = last_axes(c.spatial);
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
  const std::vector<DimPair> cut = pad_amounts("conv_transpose2d", *this, o.padding, c.spatial);
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
  const Tensor grouped = weight.flip(last_axes(c.spatial)).unflatten(0, {o.groups, in});
  const Tensor w = grouped.transpose(1, 2).flatten(0, 1);
  return spaced.conv2d(w, bias, {.groups = o.groups, .dilation = o.dilation, .padding = padding});
}

// ---- pools

namespace {

/// Windows of the last axes, ready to reduce over as many last axes. Tiles that neither overlap nor
/// leave gaps are a reshape.
Tensor pool_windows(const char* tag, const Tensor& x, const Ints& kernel, const PoolOptions& o) {
  const size_t spatial = kernel.size(), first = x.ndim() - spatial;
  const Ints stride = o.stride.empty() ? kernel : per_axis(tag, "stride", o.stride, spatial);
  const Ints dilation = per_axis(tag, "dilation", o.dilation, spatial);
  bool tiles = stride == kernel;
  for (size_t i = 0; i < spatial; ++i) tiles &= dilation[i] == 1 && x.dim(first + i).is_static();
  if (!tiles) return windows(tag, x, kernel, stride, dilation);
  std::vector<DimPair> whole;
  Dims split;
  Ints order;
  for (size_t i = 0; i < x.ndim(); ++i) {
    const Dim n = x.dim(static_cast<int64_t>(i));
    const bool pooled = i >= first;
    const int64_t k = pooled ? kernel[i - first] : 1;
    whole.emplace_back(0, pooled ? n / k * k : n);
    order.push_back(static_cast<int64_t>(split.size()));
    split.push_back(pooled ? n / k : n);
    if (pooled) split.push_back(k);
  }
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(first + 2 * i) + 1);
  return x.shrink(whole).reshape(split).permute(order);
}

/// `padding` with what ceil_mode adds after each axis so that a last, partial window fits.
std::vector<DimPair> pool_padding(const char* tag, const Tensor& x, const Ints& kernel,
                                  const PoolOptions& o) {
  const size_t spatial = kernel.size(), first = x.ndim() - spatial;
  std::vector<DimPair> amounts = pad_amounts(tag, x, o.padding, spatial);
  if (!o.ceil_mode) return amounts;
  const Ints stride = o.stride.empty() ? kernel : per_axis(tag, "stride", o.stride, spatial);
  const Ints dilation = per_axis(tag, "dilation", o.dilation, spatial);
  for (size_t i = 0; i < spatial; ++i) {
    auto& [before, after] = amounts[first + i];
    const int64_t n = x.size(static_cast<int64_t>(first + i)),
                  reach = dilation[i] * (kernel[i] - 1) + 1;
    const int64_t padded = n + before.value() + after.value();
    int64_t outputs = (padded - reach + stride[i] - 1) / stride[i] + 1;
    // A window must start inside the input or its padding before.
    if ((outputs - 1) * stride[i] >= n + before.value()) --outputs;
    const int64_t needed = (outputs - 1) * stride[i] + reach;
    if (needed > padded) after = after + (needed - padded);
  }
  return amounts;
}

Ints pool_kernel(const char* tag, const Tensor& x, const Ints& kernel) {
  if (x.ndim() <= kernel.size() || kernel.empty())
    fail(tag, "a kernel of {} axes does not fit shape {}: leave at least one axis before them",
         kernel.size(), x.dims().text());
  for (const int64_t k : kernel)
    if (k < 1) fail(tag, "kernel size {} must be at least 1", k);
  Ints both = kernel;
  if (kernel.size() == 1 && x.ndim() >= 4) both.push_back(kernel[0]);
  for (size_t i = 0; i < both.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) - static_cast<int64_t>(both.size());
    if (x.dim(axis).max() == 0) fail(tag, "shape {} has an empty spatial axis", x.dims().text());
  }
  return both;
}

}  // namespace

Tensor Tensor::max_pool2d(const Ints& kernel, const PoolOptions& o, CallSite at) const {
  const CallSiteScope site(at);
  const Ints k = pool_kernel("max_pool2d", *this, kernel);
  const Scalar lowest = is_float(dtype()) ? Scalar(-float_top(dtype())) : Scalar(int_min(dtype()));
  const Tensor x = pad(pool_padding("max_pool2d", *this, k, o), lowest);
  return pool_windows("max_pool2d", x, k, o).max(last_axes(k.size()));
}

Tensor Tensor::avg_pool2d(const Ints& kernel, const PoolOptions& o, CallSite at) const {
  const CallSiteScope site(at);
  require_float("avg_pool2d", *this);
  const Ints k = pool_kernel("avg_pool2d", *this, kernel);
  const Axes axes = last_axes(k.size());
  const std::vector<DimPair> amounts = pool_padding("avg_pool2d", *this, k, o);
  const Tensor w = pool_windows("avg_pool2d", pad(amounts), k, o);
  if (o.count_include_pad && !o.ceil_mode) return w.mean(axes);
  // Counts what is there: with count_include_pad the padding asked for, but not what ceil_mode
  // added.
  const std::vector<DimPair> asked = pad_amounts("avg_pool2d", *this, o.padding, k.size());
  std::vector<DimPair> rest = amounts;
  for (size_t i = 0; i < rest.size(); ++i)
    rest[i] = {amounts[i].first - asked[i].first, amounts[i].second - asked[i].second};
  const Tensor there =
      o.count_include_pad ? ones_like().pad(asked, 1).pad(rest) : ones_like().pad(amounts);
  return w.sum(axes) / pool_windows("avg_pool2d", there, k, o).sum(axes);
}

}  // namespace weft
