// Reductions and running folds; the tuple loops behind argmax and argmin.
#include <algorithm>

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
  return fold("max", Fold::Max, *this, axes, keepdim, dtype(), dtype(), at);
}
Tensor Tensor::min(const Axes& axes, bool keepdim, CallSite at) const {
  const CallSiteScope site(at);
  return fold("min", Fold::Min, *this, axes, keepdim, dtype(), dtype(), at);
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
  return running("cummax", Fold::Max, *this, axis, dtype(), dtype(), at);
}
Tensor Tensor::cummin(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  return running("cummin", Fold::Min, *this, axis, dtype(), dtype(), at);
}

// ---- positions of extremes

namespace {
// A loop that carries a position runs element by element. A long row becomes an array of this many
// parts, each as wide as a few vectors: parts and columns each find their own extreme.
constexpr int64_t kParts = 64, kColumns = 64;
constexpr int64_t kLongRow = 1 << 13, kFewRows = 8;

struct Extreme {
  Tensor value, position;
};

/// The position is that in a row of at most `most` elements, of which x may be a part.
Extreme extreme_along(const OpScope& scope, const Tensor& x, int64_t axis, bool largest,
                      int64_t most) {
  const build::ExtremeLoop found = build::extreme(scope.g, x.node(), axis, largest, false);
  return {scope.result(found.value),
          scope.result(found.position).cast(build::position_dtype(most))};
}

/// Elements [begin, end) along an axis.
Tensor part_of(const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  std::vector<DimPair> ranges;
  for (const Dim& d : x.dims()) ranges.emplace_back(0, d);
  ranges[static_cast<size_t>(axis)] = {begin, end};
  return x.shrink(ranges);
}

/// Of the columns' extremes the first of all: position (part * rows + row) * kColumns + column.
Extreme first_of_columns(const Extreme& of, int64_t axis, int64_t rows, bool largest) {
  const DType index = of.position.dtype();
  const Tensor part = Tensor::arange(kParts, index).reshape({kParts, 1}),
               column = Tensor::arange(kColumns, index);
  Dims shape;
  for (size_t a = 0; a < of.value.ndim(); ++a) shape.push_back(1);
  shape[static_cast<size_t>(axis)] = kParts, shape[static_cast<size_t>(axis) + 1] = kColumns;
  const Tensor start = (part * (rows * kColumns) + column).reshape(shape);
  const Axes both{axis, axis + 1};
  const Tensor best = largest ? of.value.max(both, true) : of.value.min(both, true);
  const Tensor hit = (of.value == best) | of.value.isnan();  // with a NaN, best is one
  const Tensor far = Tensor::full({}, Scalar(kParts * rows * kColumns), index);
  const Tensor first = hit.where(of.position * kColumns + start, far).min(both);
  return {best.reshape(first.dims()), first};
}

Tensor position_in_parts(const OpScope& scope, const Tensor& x, int64_t axis, bool largest) {
  const int64_t n = x.size(axis), rows = n / (kParts * kColumns), whole = rows * kParts * kColumns;
  const Tensor parts = part_of(x, axis, 0, whole).unflatten(axis, {kParts, rows, kColumns});
  const Extreme main =
      first_of_columns(extreme_along(scope, parts, axis + 1, largest, n), axis, rows, largest);
  if (whole == n) return main.position;
  const Extreme rest = extreme_along(scope, part_of(x, axis, whole, n), axis, largest, n);
  const Tensor beyond = largest ? main.value < rest.value : rest.value < main.value;
  const Tensor better = beyond | (rest.value.isnan() & ~main.value.isnan());
  return better.where(rest.position + whole, main.position);
}

bool is_long_row(const Tensor& x, int64_t axis) {
  if (!is_static(x.node()) || is_bool(x.dtype())) return false;
  return x.size(axis) >= kLongRow && x.numel() < kFewRows * x.size(axis);
}

Tensor position(const char* tag, const Tensor& x, int64_t axis, bool largest, bool keepdim,
                CallSite at) {
  const OpScope scope(x, at);
  const AxisList axes{checked_axis(tag, axis, x)};
  require_elements(tag, x, axes);
  const auto in_parts = [&](const Tensors& in) {
    return Tensors{position_in_parts(scope, in[0], axes[0], largest)};
  };
  const Tensor y = is_long_row(x, axes[0])
                       ? called("position", {axes[0], largest}, {x}, in_parts)[0]
                       : extreme_along(scope, x, axes[0], largest, x.dim(axes[0]).max()).position;
  return keepdim ? keep_axes(y, x, axes) : y;
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
