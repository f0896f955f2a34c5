// Reductions and running folds; the tuple loops behind argmax and argmin.
#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/base/hash.h"
#include "weft/tensor/access.h"
#include "weft/tensor/tracing.h"

namespace weft {

using build::AxisList;
using build::Extents;

namespace {

/// Puts reduced axes back as size 1.
Tensor keep_axes(const Tensor& reduced, const Tensor& x, const AxisList& axes) {
  Dims shape = x.dims();
  for (const int64_t a : axes) shape[static_cast<size_t>(a)] = 1;
  return reduced.reshape(shape);
}

void require_elements(const char* tag, const Tensor& x, const AxisList& axes) {
  for (const int64_t a : axes)
    if (x.dim(a).max() == 0)
      fail(tag, "axis {} of shape {} has no elements, and there is no {} of nothing", a,
           x.dims().text(), tag);
}

/// Folds in `run`, then casts to `out`.
Tensor fold(const char* tag, Fold kind, const Tensor& x, const Axes& given, bool keepdim, DType run,
            DType out, CallSite at) {
  const OpScope scope(x, at);
  const AxisList axes = checked_axes(tag, given, x);
  if (kind == Fold::Max || kind == Fold::Min) require_elements(tag, x, axes);
  NodeRef n = build::reduce(scope.g, scope.g.cast(x.node(), run), kind, axes);
  const Tensor y = scope.result(scope.g.cast(n, out));
  return keepdim ? keep_axes(y, x, axes) : y;
}

DType sum_result(DType d) { return is_float(d) ? d : sum_dtype(d); }

/// Numbers are in the same order there, and are not rounded to a half at each step.
DType extreme_dtype(DType d) { return is_float(d) && bits(d) < 32 ? DType::F32 : d; }

/// What the number of elements along these axes is held in.
DType counting_dtype(const Tensor& x, const AxisList& axes) {
  Dim count = 1;
  for (const int64_t a : axes) count = count * x.dim(a);
  return build::position_dtype(count.max());
}

}  // namespace

Tensor Tensor::sum(const Axes& axes, bool keepdim, CallSite at) const {
  const CallSiteScope site(at);
  if (is_bool(dtype())) {
    const DType wide = counting_dtype(*this, checked_axes("sum", axes, *this));
    return fold("sum", Fold::Add, *this, axes, keepdim, wide, wide, at);
  }
  return fold("sum", Fold::Add, *this, axes, keepdim, sum_dtype(dtype()), sum_result(dtype()), at);
}
Tensor Tensor::prod(const Axes& axes, bool keepdim, CallSite at) const {
  const CallSiteScope site(at);
  return fold("prod", Fold::Mul, *this, axes, keepdim, sum_dtype(dtype()), sum_result(dtype()), at);
}
Tensor Tensor::sum(const Axes& axes, bool keepdim, DType dtype, CallSite at) const {
  return fold("sum", Fold::Add, *this, axes, keepdim, dtype, dtype, at);
}
Tensor Tensor::prod(const Axes& axes, bool keepdim, DType dtype, CallSite at) const {
  return fold("prod", Fold::Mul, *this, axes, keepdim, dtype, dtype, at);
}
Tensor Tensor::max(const Axes& axes, bool keepdim, CallSite at) const {
  const CallSiteScope site(at);
  return fold("max", Fold::Max, *this, axes, keepdim, extreme_dtype(dtype()), dtype(), at);
}
Tensor Tensor::min(const Axes& axes, bool keepdim, CallSite at) const {
  const CallSiteScope site(at);
  return fold("min", Fold::Min, *this, axes, keepdim, extreme_dtype(dtype()), dtype(), at);
}
Tensor Tensor::any(const Axes& axes, bool keepdim, CallSite at) const {
  const CallSiteScope site(at);
  return fold("any", Fold::Or, *this, axes, keepdim, DType::Bool, DType::Bool, at);
}
Tensor Tensor::all(const Axes& axes, bool keepdim, CallSite at) const {
  const CallSiteScope site(at);
  return fold("all", Fold::And, *this, axes, keepdim, DType::Bool, DType::Bool, at);
}

namespace {

/// How many elements each result folds, as a rank-0 tensor of `dtype`.
Tensor fold_count(const Tensor& x, const AxisList& axes, DType dtype) {
  const OpScope scope(x, CallSite::here());
  Dim count = 1;
  for (const int64_t a : axes) count = count * x.dim(a);
  if (count.is_static()) return scope.result(scope.g.constant(Value::of(dtype, count.value())));
  return scope.result(scope.g.cast(scope.g.cast(count.node(), DType::I64), dtype));
}

}  // namespace

Tensor Tensor::mean(const Axes& axes, bool keepdim, CallSite at) const {
  const CallSiteScope site(at);
  const DType out = float_or_default(dtype()), run = sum_dtype(out);
  const Tensor total = cast(run).sum(axes, keepdim);
  return (total / fold_count(*this, checked_axes("mean", axes, *this), run)).cast(out);
}

Tensor Tensor::var(const Axes& axes, bool keepdim, int64_t correction, CallSite at) const {
  const CallSiteScope site(at);
  const DType out = float_or_default(dtype()), run = sum_dtype(out);
  const Tensor x = cast(run);
  const Tensor squares = (x - x.mean(axes, true)).square().sum(axes, keepdim);
  const Tensor count = fold_count(*this, checked_axes("var", axes, *this), run) - correction;
  return (squares / count.maximum(0)).cast(out);
}

Tensor Tensor::std(const Axes& axes, bool keepdim, int64_t correction, CallSite at) const {
  const CallSiteScope site(at);
  const Tensor square = var(axes, keepdim, correction);
  // Of equal numbers: the slope of a root at 0 would be infinite.
  const Tensor none = square == 0;
  return none.where(0, none.where(1, square).sqrt());
}

// ---- soft maximum

namespace {

/// The maximum along axes, kept as size 1, or 0 where there is nothing.
Tensor top_of(const char* tag, const Tensor& x, const Axes& axes) {
  for (const int64_t a : checked_axes(tag, axes, x))
    if (x.dim(a).max() == 0) return x.sum(axes, true).detach();
  return x.max(axes, true).detach();
}

}  // namespace

Tensor Tensor::logsumexp(const Axes& axes, bool keepdim, CallSite at) const {
  const CallSiteScope site(at);
  const DType out = float_or_default(dtype());
  const Tensor x = cast(sum_dtype(out)), top = top_of("logsumexp", x, axes);
  const Tensor shift = top.isinf().where(0, top);  // inf - inf would be NaN
  const Tensor y = ((x - shift).exp().sum(axes, true).log() + shift).cast(out);
  return keepdim ? y : y.reshape(sum(axes).dims());
}

Tensor Tensor::softmax(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("softmax", axis, *this);
  const DType out = float_or_default(dtype());
  const Tensor x = cast(sum_dtype(out)), e = (x - top_of("softmax", x, a)).exp();
  return (e / e.sum(a, true)).cast(out);
}

Tensor Tensor::log_softmax(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("log_softmax", axis, *this);
  const DType out = float_or_default(dtype());
  const Tensor x = cast(sum_dtype(out)), shifted = x - top_of("log_softmax", x, a);
  return (shifted - shifted.exp().sum(a, true).log()).cast(out);
}

// ---- running folds

namespace {

Tensor running(const char* tag, Fold kind, const Tensor& x, int64_t axis, DType run, DType out,
               CallSite at) {
  const OpScope scope(x, at);
  const int64_t a = checked_axis(tag, axis, x);
  NodeRef n = build::scan(scope.g, scope.g.cast(x.node(), run), kind, a);
  return scope.result(scope.g.cast(n, out));
}

/// Narrow floats are compared as wide ones, step by step, and are themselves again at the end.
DType compared_dtype(DType d) { return is_float(d) ? sum_dtype(d) : d; }

}  // namespace

Tensor delayed(const Tensor& x, int64_t axis, double value) {
  if (x.dim(axis).max() == 0) return x;
  std::vector<DimPair> by(x.ndim(), DimPair(0, 0));
  by[static_cast<size_t>(axis)] = {1, -1};
  return x.pad(by, value);
}

Tensor Tensor::cumsum(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  return running("cumsum", Fold::Add, *this, axis, sum_dtype(dtype()), sum_result(dtype()), at);
}
Tensor Tensor::cumprod(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  return running("cumprod", Fold::Mul, *this, axis, sum_dtype(dtype()), sum_result(dtype()), at);
}
Tensor Tensor::cummax(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  return running("cummax", Fold::Max, *this, axis, compared_dtype(dtype()), dtype(), at);
}
Tensor Tensor::cummin(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  return running("cummin", Fold::Min, *this, axis, compared_dtype(dtype()), dtype(), at);
}

// ---- positions of extremes

namespace {
// A loop that carries a position runs element by element along a row; of many columns it is a loop
// over vectors. Rows of this length find the extreme first, then its place: folds of vectors.
constexpr int64_t kFoldedRow = 16;
// Of longer ones the place is looked for in one part of the row alone.
constexpr int64_t kLongRow = 1 << 13;

/// Along the last axis, kept: the largest (smallest) value, or NaN, and the first place it is at.
struct Extreme {
  Tensor value, position;
};

/// Where the extremes are along the last axis, the first of each, as `index`.
Tensor first_place(const Tensor& x, const Tensor& value, DType index) {
  const Tensor hit = (x == value) | x.isnan();  // with a NaN, value is one
  const Tensor at = Tensor::arange(x.dim(-1), index);
  return hit.where(at, Tensor::full({}, Scalar(int_max(index)), index)).min(-1, true);
}

Extreme extreme_of_row(const Tensor& x, bool largest, DType index) {
  const Tensor value = largest ? x.max(-1, true) : x.min(-1, true);
  return {value, first_place(x, value, index)};
}

/// Elements [begin, end) along the last axis.
Tensor part_of(const Tensor& x, int64_t begin, int64_t end) {
  return x.index({kEllipsis, Slice(begin, end)});
}

/// The extremes of parts, and the place in the first part that has the row's.
Extreme extreme_of_parts(const Tensor& x, int64_t length, bool largest, DType index) {
  const Tensor parts = x.unflatten(-1, {x.size(-1) / length, length});
  const Tensor best = largest ? parts.max(-1) : parts.min(-1);
  const Extreme part = extreme_of_row(best.contiguous(), largest, index);
  Dims shape = parts.dims();
  shape[shape.size() - 2] = 1;
  const Tensor row = part.position.unsqueeze(-1).expand(shape);
  const Tensor chosen = gather_inside(parts, -2, row).squeeze(-2);
  return {part.value, part.position * length + first_place(chosen, part.value, index)};
}

Tensor position_in_parts(const Tensor& x, bool largest) {
  const int64_t n = x.size(-1);
  const DType index = build::position_dtype(n);
  // Fewer parts than elements of one: each ends with a fold across a vector.
  const auto root = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  const auto length = static_cast<int64_t>(std::bit_ceil(4 * root));
  const int64_t whole = n / length * length;
  const Extreme main = extreme_of_parts(part_of(x, 0, whole), length, largest, index);
  if (whole == n) return main.position;
  const Extreme rest = extreme_of_row(part_of(x, whole, n), largest, index);
  const Tensor beyond = largest ? main.value < rest.value : rest.value < main.value;
  const Tensor better = beyond | (rest.value.isnan() & ~main.value.isnan());
  return better.where(rest.position + whole, main.position);
}

/// Along the last axis, kept.
Tensor position_in_row(const Tensor& given, bool largest) {
  const Tensor x = given.cast(extreme_dtype(given.dtype()));
  if (x.dim(-1).is_static() && x.size(-1) >= kLongRow && !is_bool(x.dtype()))
    return position_in_parts(x, largest);
  return extreme_of_row(x, largest, build::position_dtype(x.dim(-1).max())).position;
}

/// Elements along the axis are neighbours, and so many that vectors pay.
bool is_row(const Tensor& x, int64_t axis) {
  Dim columns = 1;
  for (size_t a = static_cast<size_t>(axis) + 1; a < x.ndim(); ++a) columns = columns * x.dims()[a];
  return columns == Dim(1) && x.dim(axis).max() >= kFoldedRow;
}

Tensor position(const char* tag, const Tensor& x, int64_t given, bool largest, bool keepdim,
                CallSite at) {
  const OpScope scope(x, at);
  const int64_t axis = checked_axis(tag, given, x);
  require_elements(tag, x, {axis});
  Tensor y;
  if (is_row(x, axis)) {
    const auto f = [largest](const Tensors& in) {
      return Tensors{position_in_row(in[0], largest)};
    };
    y = called("position", {largest}, {x.transpose(axis, -1)}, f)[0].transpose(axis, -1);
    return keepdim ? y : y.squeeze(axis);
  }
  const build::ExtremeLoop found = build::extreme(scope.g, x.node(), axis, largest, false);
  y = scope.result(found.position).cast(build::position_dtype(x.dim(axis).max()));
  return keepdim ? keep_axes(y, x, {axis}) : y;
}
}  // namespace

Tensor Tensor::argmax(int64_t axis, bool keepdim, CallSite at) const {
  return position("argmax", *this, axis, true, keepdim, at);
}
Tensor Tensor::argmin(int64_t axis, bool keepdim, CallSite at) const {
  return position("argmin", *this, axis, false, keepdim, at);
}
Tensor Tensor::argmax(CallSite at) const { return flatten(0, -1, at).argmax(0, false, at); }
Tensor Tensor::argmin(CallSite at) const { return flatten(0, -1, at).argmin(0, false, at); }

}  // namespace weft
