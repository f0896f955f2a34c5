#include "weft/tensor/statistics.h"

#include <algorithm>
#include <cmath>

#include "weft/tensor/access.h"
#include "weft/tensor/known.h"
#include "weft/tensor/movement.h"

namespace weft {

// ---- without NaN

namespace {

Tensor numbers_or(const Tensor& x, double other) {
  return is_float(x.dtype()) ? x.isnan().where(other, x) : x;
}

}  // namespace

Tensor nansum(const Tensor& x, const Axes& axes, bool keepdim, CallSite at) {
  const CallSiteScope site(at);
  return numbers_or(x, 0).sum(axes, keepdim);
}

Tensor nanmean(const Tensor& x, const Axes& axes, bool keepdim, CallSite at) {
  const CallSiteScope site(at);
  if (!is_float(x.dtype())) return x.mean(axes, keepdim);
  const DType run = sum_dtype(x.dtype());
  const Tensor count = (~x.isnan()).sum(axes, keepdim).cast(run);
  return (numbers_or(x.cast(run), 0).sum(axes, keepdim) / count).cast(x.dtype());
}

Tensor count_nonzero(const Tensor& x, const Axes& axes, CallSite at) {
  const CallSiteScope site(at);
  return (x != 0).sum(axes);
}

// ---- order statistics

namespace {

ValuesAndPositions without_axis(const Tensor& values, const Tensor& positions, int64_t axis,
                                bool keepdim) {
  if (keepdim) return {values, positions};
  return {values.squeeze(axis), positions.squeeze(axis)};
}

void require_elements(const char* tag, const Tensor& x, int64_t axis) {
  if (x.dim(axis).max() == 0)
    fail(tag, "axis {} of shape {} has no elements: there is none to choose", axis,
         x.dims().text());
}

/// i32, with axis of size 1: how many are NaN.
Tensor nan_count(const Tensor& x, int64_t axis) { return x.isnan().sum(axis, true); }

/// The element at `rank`, which has axis of size 1, of the sorted axis, and where x has it.
ValuesAndPositions chosen(const Tensor& x, const Tensor& rank, int64_t axis, bool keepdim) {
  const Tensor at = place_of_rank(x.transpose(axis, -1), rank.transpose(axis, -1));
  const Tensor place = at.transpose(axis, -1);
  return without_axis(gather_inside(x, axis, place), place, axis, keepdim);
}

/// A number has an axis of size 1.
Tensor with_axis(const Tensor& x) { return x.ndim() == 0 ? x.reshape({1}) : x; }

ValuesAndPositions middle(const char* tag, const Tensor& given, int64_t axis, bool keepdim,
                          bool skips_nan) {
  const Tensor x = with_axis(given);
  const int64_t a = sized_axis(tag, axis, x), n = x.size(a);
  require_elements(tag, x, a);
  const Tensor nans = nan_count(x, a);  // which are last
  const Tensor number =
      skips_nan ? (n - nans - 1).maximum(0).floor_div(2) : (nans > 0).where(n - nans, (n - 1) / 2);
  return chosen(x, number, a, keepdim && given.ndim() > 0);
}

}  // namespace

ValuesAndPositions median(const Tensor& x, int64_t axis, bool keepdim, CallSite at) {
  const CallSiteScope site(at);
  return middle("median", x, axis, keepdim, false);
}

ValuesAndPositions nanmedian(const Tensor& x, int64_t axis, bool keepdim, CallSite at) {
  const CallSiteScope site(at);
  return middle("nanmedian", x, axis, keepdim, true);
}

// In rows that are so many times as long the k least are found sooner than one by its rank (2^20 of
// f32, two cores: 16384 in 2.2 ms, 4096 in 0.9, one in 2.0).
constexpr int64_t kManyTimes = 128;

ValuesAndPositions kthvalue(const Tensor& given, int64_t k, int64_t axis, bool keepdim,
                            CallSite at) {
  const CallSiteScope site(at);
  const Tensor x = with_axis(given);
  const int64_t a = sized_axis("kthvalue", axis, x);
  if (k < 1 || k > x.size(a))
    fail("kthvalue", "k is {} for axis {} of shape {}: it must be from 1 to {}", k, axis,
         given.dims().text(), x.size(a));
  Dims one = x.dims();
  one[static_cast<size_t>(a)] = 1;
  const Tensor rank = Tensor::full(one, k - 1, build::position_dtype(x.size(a)));
  const bool kept = keepdim && given.ndim() > 0;
  if (k > x.size(a) / kManyTimes) return chosen(x, rank, a, kept);
  const auto [sorted, order] = x.topk(k, a, false);
  return without_axis(gather_inside(sorted, a, rank), gather_inside(order, a, rank), a, kept);
}

ValuesAndPositions mode(const Tensor& given, int64_t axis, bool keepdim, CallSite at) {
  const CallSiteScope site(at);
  const Tensor x = with_axis(given);
  const int64_t a = sized_axis("mode", axis, x), n = x.size(a);
  require_elements("mode", x, a);
  const auto [sorted, order] = x.sort(a);
  Dims along(std::vector<Dim>(x.ndim(), 1));
  along[static_cast<size_t>(a)] = n;
  const Tensor place = Tensor::arange(n).reshape(along);
  const Tensor before = sorted.roll(1, a);
  const Tensor same = (sorted == before) | (sorted.isnan() & before.isnan());
  const Tensor start = (same & (place > 0)).where(0, place).cummax(a);
  const Tensor last = (place - start).argmax(a, true);  // of the first run of the most
  return without_axis(sorted.gather(a, last), order.gather(a, last), a,
                      keepdim && given.ndim() > 0);
}

// ---- quantiles

namespace {

/// The sorted last axis at the places `at`, between elements as asked for.
Tensor between_elements(const Tensor& sorted, const Tensor& at, Interpolation how) {
  const auto element = [&](const Tensor& place) {
    return sorted.gather(-1, place.maximum(0).cast(DType::I32));
  };
  const Tensor below = at.floor(), above = at.ceil();
  switch (how) {
    case Interpolation::Lower: return element(below);
    case Interpolation::Higher: return element(above);
    case Interpolation::Nearest: return element(at.round());
    case Interpolation::Midpoint: return element(below).lerp(element(above), 0.5);
    case Interpolation::Linear: break;
  }
  const Tensor low = element(below), high = element(above);
  // From the nearer one, so that an infinite neighbour makes the result infinite, not NaN.
  const Tensor part = (at - below).cast(low.dtype()), step = high - low;
  const Tensor between = (part < 0.5).where(low + step * part, high - step * (1 - part));
  return ((below == above) | ((low == high) & low.isinf())).where(low, between);
}

Tensor quantile_of(const char* tag, const Tensor& given, const Tensor& q, int64_t axis,
                   bool keepdim, Interpolation how, bool skips_nan) {
  if (q.ndim() > 1) fail(tag, "q has shape {}: give a number, or a list of them", q.dims().text());
  const DType out = float_or_default(given.dtype()), run = sum_dtype(out);
  const Tensor x = with_axis(given.cast(run));
  const int64_t a = sized_axis(tag, axis, x), n = x.size(a);
  require_elements(tag, x, a);
  const Tensor sorted = movedim(x, a, -1).sort(-1).first;
  const Tensor nans = nan_count(sorted, -1), last = skips_nan ? n - nans - 1 : nans * 0 + (n - 1);
  // (..., m); f64 has every place of every axis.
  const Tensor place = last.cast(DType::F64) * q.cast(DType::F64).flatten();
  const Tensor found = between_elements(sorted, place, how);
  const Tensor outside = (q < 0) | (q > 1), none = (skips_nan ? last < 0 : nans > 0) | outside;
  Tensor y = movedim(none.where(NAN, found).cast(out), -1, 0);
  if (keepdim && given.ndim() > 0) y = y.unsqueeze(a + 1);
  return q.ndim() == 0 ? y.squeeze(0) : y;
}

}  // namespace

Tensor quantile(const Tensor& x, const Tensor& q, int64_t axis, bool keepdim, Interpolation how,
                CallSite at) {
  const CallSiteScope site(at);
  return quantile_of("quantile", x, q, axis, keepdim, how, false);
}

Tensor nanquantile(const Tensor& x, const Tensor& q, int64_t axis, bool keepdim, Interpolation how,
                   CallSite at) {
  const CallSiteScope site(at);
  return quantile_of("nanquantile", x, q, axis, keepdim, how, true);
}

// ---- counts

namespace {

// So many elements at hand are looked at in less time than a kernel and reading back take.
constexpr int64_t kFewElements = 1 << 13;

/// The least and the largest element. Read back once.
std::pair<int64_t, int64_t> bounds_of(const Tensor& x) {
  if (x.dims().is_static() && x.numel() <= kFewElements)
    if (const auto known = known_bounds(x)) return *known;
  const Tensor wide = x.cast(DType::I64);
  const std::vector<int64_t> ends = Tensor::stack({wide.min(), wide.max()}).to_vector<int64_t>();
  return {ends[0], ends[1]};
}

/// The largest element; an Error where one is negative.
int64_t checked_largest(const Tensor& x) {
  const auto [least, most] = bounds_of(x);
  if (least < 0) fail("bincount", "an element is {}: they must not be negative", least);
  return most;
}

}  // namespace

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t least, std::optional<int64_t> size,
                CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() != 1 || !is_int(x.dtype()))
    fail_type("bincount", "counts 1-D integers: got {} of shape {}", name(x.dtype()),
              x.dims().text());
  if (weights.defined() && !(weights.dims() == x.dims()))
    fail("bincount", "weights {} for elements {}: give one for each", weights.dims().text(),
         x.dims().text());
  if (least < 0 || size.value_or(0) < 0)
    fail("bincount", "{} bins: give at least 0", std::min(least, size.value_or(0)));
  const bool none = x.dims().is_static() && x.numel() == 0;
  const int64_t bins = size ? *size : std::max(least, none ? 0 : checked_largest(x) + 1);
  const Tensor places = size ? x : bounded(x, Dim(bins));
  if (!weights.defined()) return counts_in_blocks(places, bins);
  return added_at(places, bins, weights.cast(float_or_default(weights.dtype())));
}

Tensor histc(const Tensor& x, int64_t bins, double low, double high, CallSite at) {
  const CallSiteScope site(at);
  if (!is_float(x.dtype())) fail_type("histc", "takes floats: got {}", name(x.dtype()));
  if (bins < 1) fail("histc", "{} bins: give at least 1", bins);
  if (!(low <= high)) fail("histc", "a range from {} to {}: give the lower end first", low, high);
  const DType run = sum_dtype(x.dtype());
  const Tensor flat = x.cast(run).detach().flatten();
  sized_axis("histc", 0, flat);
  Tensor first = Tensor::full({}, low, run), last = Tensor::full({}, high, run);
  if (low == high && !(x.dims().is_static() && x.numel() == 0)) {
    first = flat.min();
    last = flat.max();
  }
  const Tensor one_value = first == last;
  const Tensor from = one_value.where(first - 1, first), to = one_value.where(last + 1, last);
  const Tensor place = ((flat - from) * static_cast<double>(bins) / (to - from)).floor();
  const Tensor inside = (flat >= from) & (flat <= to);
  const Tensor bin = inside.where(place.minimum(bins - 1), bins).cast(DType::I32);
  return counts_in_blocks(bin, bins).cast(x.dtype());
}

// ---- covariances, differences

Tensor cov(const Tensor& x, int64_t correction, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() > 2) fail("cov", "takes variables (n, observations): got shape {}", x.dims().text());
  const Tensor rows = x.ndim() == 2 ? x : x.reshape({1, -1});
  const DType out = float_or_default(x.dtype());
  const Tensor wide = rows.cast(sum_dtype(out)), apart = wide - wide.mean(1, true);
  const auto count = static_cast<double>(std::max<int64_t>(0, rows.size(1) - correction));
  const Tensor found = (apart.matmul(apart.T()) / count).cast(out);
  return x.ndim() == 2 ? found : found.reshape(Dims());
}

Tensor corrcoef(const Tensor& x, CallSite at) {
  const CallSiteScope site(at);
  const Tensor c = cov(x);
  if (c.ndim() == 0) return c / c;
  const Tensor deviation = c.diagonal().sqrt();
  return (c / deviation.unsqueeze(1) / deviation).clamp(-1, 1);
}

Tensor diff(const Tensor& x, int64_t n, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  const int64_t a = sized_axis("diff", axis, x);
  if (n < 0) fail("diff", "{} times: give at least 0", n);
  Tensor y = x;
  for (int64_t i = 0; i < n && y.size(a) > 0; ++i) {
    std::vector<DimPair> later;
    for (const Dim& d : y.dims()) later.emplace_back(0, d);
    std::vector<DimPair> former = later;
    const int64_t size = y.size(a);
    later[static_cast<size_t>(a)] = {1, size};
    former[static_cast<size_t>(a)] = {0, size - 1};
    const Tensor next = y.shrink(later), before = y.shrink(former);
    y = is_bool(x.dtype()) ? next ^ before : next - before;
  }
  return y;
}

Tensor trapezoid(const Tensor& y, double dx, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  const int64_t a = sized_axis("trapezoid", axis, y), n = y.size(a);
  if (n < 2) return y.cast(float_or_default(y.dtype())).sum(a) * 0;
  const std::vector<Tensor> parts = y.cast(float_or_default(y.dtype())).split({1, n - 2, 1}, a);
  return (parts[1].sum(a) + (parts[0] + parts[2]).sum(a) * 0.5) * dx;
}

}  // namespace weft
