// Pools over sliding windows, for any number of spatial axes.
#include <algorithm>
#include <cmath>

#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"
#include "weft/tensor/pooling.h"
#include "weft/tensor/tables.h"
#include "weft/tensor/windows.h"

namespace weft {

namespace {

/// Windows of the last axes, ready to reduce over as many last axes. Tiles that neither overlap nor
/// leave gaps are a reshape.
Tensor pool_windows(const char* tag, const Tensor& x, const Ints& kernel, const PoolOptions& o) {
  const size_t spatial = kernel.size(), first = x.ndim() - spatial;
  const Ints stride = o.stride.empty() ? kernel : windows::steps(tag, "stride", o.stride, spatial);
  const Ints dilation = windows::steps(tag, "dilation", o.dilation, spatial);
  bool tiles = stride == kernel;
  for (size_t i = 0; i < spatial; ++i) {
    const Dim n = x.dim(static_cast<int64_t>(first + i));
    tiles &= dilation[i] == 1 && n.is_static() && n.value() >= kernel[i];
  }
  if (!tiles) return windows::over(tag, x, kernel, stride, dilation);
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
  std::vector<DimPair> amounts = windows::pad_amounts(tag, x, o.padding, spatial);
  if (!o.ceil_mode) return amounts;
  const Ints stride = o.stride.empty() ? kernel : windows::steps(tag, "stride", o.stride, spatial);
  const Ints dilation = windows::steps(tag, "dilation", o.dilation, spatial);
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
    if (k < 1 || k > INT32_MAX)
      fail(tag, "kernel size {} must be at least 1 and fit in 32 bits", k);
  Ints both = kernel;
  if (kernel.size() == 1 && x.ndim() >= 4) both.push_back(kernel[0]);
  for (size_t i = 0; i < both.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) - static_cast<int64_t>(both.size());
    if (x.dim(axis).max() == 0) fail(tag, "shape {} has an empty spatial axis", x.dims().text());
  }
  return both;
}

}  // namespace

namespace {

Tensor padded_for_max(const char* tag, const Tensor& x, const Ints& kernel, const PoolOptions& o) {
  const bool floats = is_float(x.dtype());
  return x.pad(pool_padding(tag, x, kernel, o),
               floats ? Scalar(-float_top(x.dtype())) : Scalar(int_min(x.dtype())));
}

}  // namespace

Tensor Tensor::max_pool2d(const Ints& kernel, const PoolOptions& o, CallSite at) const {
  const CallSiteScope site(at);
  const Ints k = pool_kernel("max_pool2d", *this, kernel);
  const Tensor x = padded_for_max("max_pool2d", *this, k, o);
  return pool_windows("max_pool2d", x, k, o).max(windows::last_axes(k.size()));
}

Tensor Tensor::avg_pool2d(const Ints& kernel, const PoolOptions& o, CallSite at) const {
  const CallSiteScope site(at);
  const Ints k = pool_kernel("avg_pool2d", *this, kernel);
  const Axes axes = windows::last_axes(k.size());
  const std::vector<DimPair> amounts = pool_padding("avg_pool2d", *this, k, o);
  const Tensor w = pool_windows("avg_pool2d", pad(amounts), k, o);
  if (o.count_include_pad && !o.ceil_mode) return w.mean(axes);
  // Counts what is there: with count_include_pad the padding asked for, but not what ceil_mode
  // added.
  const std::vector<DimPair> asked = windows::pad_amounts("avg_pool2d", *this, o.padding, k.size());
  std::vector<DimPair> rest = amounts;
  for (size_t i = 0; i < rest.size(); ++i)
    rest[i] = {amounts[i].first - asked[i].first, amounts[i].second - asked[i].second};
  const Tensor there =
      o.count_include_pad ? ones_like().pad(asked, 1).pad(rest) : ones_like().pad(amounts);
  const DType out = float_or_default(dtype()), run = sum_dtype(out);
  const Tensor counts = pool_windows("avg_pool2d", there.cast(run), k, o).sum(axes);
  return (w.cast(run).sum(axes) / counts).cast(out);
}

// ---- maxima and where they were

namespace {

/// Each element's position along axis.
Tensor position_along(const Tensor& like, int64_t axis) {
  const OpScope scope(like, CallSite::here());
  return scope.result(build::positions(scope.g, nodes_of(like.dims()), axis));
}

}  // namespace

ValuesAndPositions max_pool2d_with_positions(const Tensor& given, const Ints& kernel,
                                             const PoolOptions& o, CallSite at) {
  const CallSiteScope site(at);
  const Ints k = pool_kernel("max_pool2d", given, kernel);
  const size_t spatial = k.size(), first = given.ndim() - spatial;
  const Tensor x = padded_for_max("max_pool2d", given, k, o);
  const Tensor w = pool_windows("max_pool2d", x, k, o).flatten(-static_cast<int64_t>(spatial), -1);
  const Tensor best = w.detach().argmax(-1);
  const auto amounts = windows::pad_amounts("max_pool2d", given, o.padding, spatial);
  const Ints stride =
      o.stride.empty() ? k : windows::steps("max_pool2d", "stride", o.stride, spatial);
  const Ints dilation = windows::steps("max_pool2d", "dilation", o.dilation, spatial);
  Tensor inside = best.cast(build::position_dtype(given.dims().product().max()));
  Tensor flat = inside.zeros_like();
  int64_t rows = 1;
  for (size_t i = spatial; i-- > 0;) {
    const auto axis = static_cast<int64_t>(first + i);
    const Tensor place = position_along(best, axis) * stride[i] + inside % k[i] * dilation[i] -
                         amounts[first + i].first.value();
    flat = flat + place * rows;
    rows *= given.size(axis);
    inside = inside.floor_div(k[i]);
  }
  return {w.gather(-1, best.unsqueeze(-1)).squeeze(-1), flat};
}

Tensor max_unpool2d(const Tensor& x, const Tensor& positions, const Ints& kernel,
                    const PoolOptions& o, const Ints& output_sizes, CallSite at) {
  const CallSiteScope site(at);
  if (!(x.dims() == positions.dims()))
    fail("max_unpool2d", "values {} and positions {} must have equal shapes", x.dims().text(),
         positions.dims().text());
  const Ints k = pool_kernel("max_unpool2d", x, kernel);
  const size_t spatial = k.size(), first = x.ndim() - spatial;
  if (!output_sizes.empty() && output_sizes.size() != spatial)
    fail("max_unpool2d", "{} output sizes for {} spatial axes", output_sizes.size(), spatial);
  const auto amounts = windows::pad_amounts("max_unpool2d", x, o.padding, spatial);
  const Ints stride =
      o.stride.empty() ? k : windows::steps("max_unpool2d", "stride", o.stride, spatial);
  Dims shape = x.dims();
  Dim places = 1;
  for (size_t i = 0; i < spatial; ++i) {
    const auto& [before, after] = amounts[first + i];
    const int64_t n = x.size(static_cast<int64_t>(first + i));
    shape[first + i] = output_sizes.empty() ? Dim((n - 1) * stride[i] + k[i]) - before - after
                                            : Dim(output_sizes[i]);
    places = places * shape[first + i];
  }
  const auto last = -static_cast<int64_t>(spatial);
  const Tensor flat = x.flatten(last, -1);
  Dims base = flat.dims();
  base.back() = places;
  return Tensor::zeros(base, x.dtype())
      .scatter(-1, positions.flatten(last, -1), flat)
      .reshape(shape);
}

Tensor lp_pool2d(const Tensor& x, double p, const Ints& kernel, const PoolOptions& o, CallSite at) {
  const CallSiteScope site(at);
  const Ints k = pool_kernel("lp_pool2d", x, kernel);
  const Tensor y = x.cast(float_or_default(x.dtype()));
  const Tensor powers = y.pad(pool_padding("lp_pool2d", x, k, o)).pow(p);
  const Tensor total = pool_windows("lp_pool2d", powers, k, o).sum(windows::last_axes(k.size()));
  return elementwise::zero_or(total, [p](const Tensor& sum) { return sum.pow(1 / p); });
}

// ---- pools to given sizes

namespace {

/// Along one axis: the elements of every output's window in a new axis behind it, `outside` where a
/// window is shorter than the longest, and how many there are.
struct AdaptiveWindows {
  Tensor elements, counts;
};

AdaptiveWindows adaptive_windows(const Tensor& x, int64_t axis, int64_t outputs, Scalar outside) {
  const int64_t n = x.size(axis);
  require_table("adaptive_pool", outputs);
  std::vector<int32_t> places;
  std::vector<int32_t> counts;
  int64_t longest = 1;
  auto begin = [&](int64_t i) { return i * n / outputs; };
  auto end = [&](int64_t i) { return ((i + 1) * n + outputs - 1) / outputs; };
  for (int64_t i = 0; i < outputs; ++i) longest = std::max(longest, end(i) - begin(i));
  require_table("adaptive_pool", longest);
  require_table("adaptive_pool", outputs * longest);
  for (int64_t i = 0; i < outputs; ++i) {
    counts.push_back(static_cast<int32_t>(end(i) - begin(i)));
    for (int64_t k = 0; k < longest; ++k)
      places.push_back(static_cast<int32_t>(std::min(begin(i) + k, n - 1)));
  }
  Dims behind(std::vector<Dim>(x.ndim() - static_cast<size_t>(axis), 1));
  behind[0] = outputs;
  const Tensor count = constant_table(counts, behind, x);
  Dims window = behind;
  window.insert(1, longest);
  Dims beside = window;
  beside[0] = 1;
  const Tensor there = Tensor::arange(Dim(longest)).reshape(beside) < count.unsqueeze(1);
  const Tensor taken = x.index_select(axis, constant_table(places, {places.size()}, x))
                           .unflatten(axis, {outputs, longest});
  return {there.where(taken, Tensor::full({}, outside, x.dtype())), count};
}

void require_sizes(const char* tag, const Tensor& x, const Ints& sizes) {
  if (sizes.empty() || sizes.size() >= x.ndim())
    fail(tag, "{} sizes for shape {}: leave at least one axis before them", sizes.size(),
         x.dims().text());
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] < 1 || x.size(static_cast<int64_t>(x.ndim() - sizes.size() + i)) == 0)
      fail(tag, "shape {} cannot be pooled to size {}: both must have elements", x.dims().text(),
           sizes[i]);
}

}  // namespace

Tensor adaptive_avg_pool(const Tensor& given, const Ints& sizes, CallSite at) {
  const CallSiteScope site(at);
  require_sizes("adaptive_avg_pool", given, sizes);
  const DType out = float_or_default(given.dtype());
  Tensor x = given.cast(sum_dtype(out));
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto axis = static_cast<int64_t>(x.ndim() - sizes.size() + i);
    const AdaptiveWindows w = adaptive_windows(x, axis, sizes[i], 0);
    x = w.elements.sum(axis + 1) / w.counts.cast(x.dtype());
  }
  return x.cast(out);
}

Tensor adaptive_max_pool(const Tensor& given, const Ints& sizes, CallSite at) {
  const CallSiteScope site(at);
  require_sizes("adaptive_max_pool", given, sizes);
  Tensor x = given;
  const Scalar lowest =
      is_float(x.dtype()) ? Scalar(-float_top(x.dtype())) : Scalar(int_min(x.dtype()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto axis = static_cast<int64_t>(x.ndim() - sizes.size() + i);
    x = adaptive_windows(x, axis, sizes[i], lowest).elements.max(axis + 1);
  }
  return x;
}

}  // namespace weft
