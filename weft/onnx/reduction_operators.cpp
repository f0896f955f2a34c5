// Reductions, running folds, soft and hard maxima. Semantics: the ONNX operator specification.
#include <array>
#include <cmath>

#include "weft/onnx/axes.h"
#include "weft/onnx/operators.h"

namespace weft::onnx {

namespace {

// ---- Reduce*

using Fold = Tensor (*)(const Tensor& x, const Axes& axes, bool keep);

/// axes are an attribute before opset `since`, an input from then on.
template <Fold fold, int since = 18>
Values reduce(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const bool keep = call.integer("keepdims", 1) != 0;
  Axes axes;
  for (const int64_t a : call.ints_of(1, "axes", since)) axes.push_back(call.axis(a, x.ndim()));
  const bool of_none = axes.empty() && call.integer("noop_with_empty_axes", 0) != 0;
  // Of no axes: what is done besides the sum is done all the same.
  if (of_none) return {fold(x.unsqueeze(-1), Axes(-1), false).cast(x.dtype())};
  return {fold(x, axes, keep).cast(x.dtype())};
}

bool is_of_nothing(const Tensor& x, const Axes& axes) {
  const Dims dims = x.dims();
  const auto is_empty = [&](int64_t a) {
    return dims[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(dims.size()) : a)] == Dim(0);
  };
  for (const int64_t a : axes.empty() ? axes_from(0, x.ndim()) : axes)
    if (is_empty(a)) return true;
  return false;
}

/// The value of a fold over nothing: `value` in the shape of the others.
Tensor of_nothing(const Tensor& x, const Axes& axes, bool keep, Scalar value) {
  return Tensor::full(x.cast(DType::F32).sum(axes, keep).dims(), value, x.dtype());
}

Tensor most(const Tensor& x, const Axes& axes, bool keep) {
  if (is_bool(x.dtype())) return x.any(axes, keep);
  if (!is_of_nothing(x, axes)) return x.max(axes, keep);
  return of_nothing(x, axes, keep,
                    is_float(x.dtype()) ? Scalar(-INFINITY) : Scalar(int_min(x.dtype())));
}

Tensor least(const Tensor& x, const Axes& axes, bool keep) {
  if (is_bool(x.dtype())) return x.all(axes, keep);
  if (!is_of_nothing(x, axes)) return x.min(axes, keep);
  return of_nothing(x, axes, keep,
                    is_float(x.dtype()) ? Scalar(INFINITY) : Scalar(int_max(x.dtype())));
}

Tensor total(const Tensor& x, const Axes& axes, bool keep) { return x.sum(axes, keep); }

Tensor product(const Tensor& x, const Axes& axes, bool keep) { return x.prod(axes, keep); }

Tensor mean(const Tensor& x, const Axes& axes, bool keep) {
  if (is_float(x.dtype())) return x.mean(axes, keep);
  const Tensor counts = Tensor::ones(x.dims(), DType::I64).sum(axes, keep);
  return x.sum(axes, keep, DType::I64).div(counts, Rounding::Trunc);
}

Tensor l1(const Tensor& x, const Axes& axes, bool keep) { return x.abs().sum(axes, keep); }

Tensor sum_of_squares(const Tensor& x, const Axes& axes, bool keep) {
  return x.cast(wide(x.dtype())).square().sum(axes, keep);
}

Tensor l2(const Tensor& x, const Axes& axes, bool keep) {
  return x.cast(wide_float(x.dtype())).square().sum(axes, keep).sqrt();
}

Tensor log_sum(const Tensor& x, const Axes& axes, bool keep) {
  return x.cast(wide_float(x.dtype())).sum(axes, keep).log();
}

Tensor log_sum_exp(const Tensor& x, const Axes& axes, bool keep) {
  const Tensor y = x.cast(wide_float(x.dtype()));
  if (is_of_nothing(x, axes)) return of_nothing(y, axes, keep, -INFINITY);
  return y.logsumexp(axes, keep);
}

// ---- ArgMax, ArgMin

template <bool largest>
Values arg(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t axis = call.axis(call.integer("axis", 0), x.ndim());
  const bool keep = call.integer("keepdims", 1) != 0;
  const bool last = call.integer("select_last_index", 0) != 0;
  const Tensor y = last ? x.flip(axis) : x;
  const Tensor at = (largest ? y.argmax(axis, keep) : y.argmin(axis, keep)).cast(DType::I64);
  return {last ? x.size(axis) - 1 - at : at};
}

// ---- CumSum, CumProd

template <bool sums>
Values running(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t axis = call.axis(call.integer(1), x.ndim());
  const bool reversed = call.integer("reverse", 0) != 0;
  Tensor y = reversed ? x.flip(axis) : x;
  if (call.integer("exclusive", 0) != 0) {
    std::vector<DimPair> shifted(x.ndim(), DimPair(0, 0));
    shifted[static_cast<size_t>(axis)] = {1, -1};
    y = y.pad(shifted, sums ? 0 : 1);
  }
  y = (sums ? y.cumsum(axis) : y.cumprod(axis)).cast(x.dtype());
  return {reversed ? y.flip(axis) : y};
}

// ---- Softmax, LogSoftmax, Hardmax

using Normalised = Tensor (*)(const Tensor& x, int64_t axis);

/// Along one axis.
template <Normalised f>
Values along(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t axis = call.axis(call.integer("axis", -1), x.ndim());
  if (x.dims().product() == Dim(0)) return {x};
  return {f(x, axis)};
}

/// Before opset 13: along all axes from this one on, as if they were one.
template <Normalised f>
Values along_rest(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const auto rank = static_cast<int64_t>(x.ndim());
  int64_t axis = call.integer("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank)
    call.refuse("axis {} of shape {}: give 0 to {}", axis, x.dims().text(), rank);
  if (x.dims().product() == Dim(0)) return {x};
  if (axis == rank) return {f(x.unsqueeze(-1), -1).squeeze(-1)};
  return {f(x.flatten(axis, -1), -1).reshape(x.dims())};
}

Tensor soft(const Tensor& x, int64_t axis) { return x.softmax(axis); }

Tensor log_of_soft(const Tensor& x, int64_t axis) { return x.log_softmax(axis); }

Tensor hard(const Tensor& x, int64_t axis) {
  const int64_t at = axis < 0 ? axis + static_cast<int64_t>(x.ndim()) : axis;
  return (counted(x.dim(at), x.ndim(), at) == x.argmax(at, true)).cast(x.dtype());
}

}  // namespace

std::span<const Operator> reduction_operators() {
  static constexpr std::array kRows = {
      Operator{kOnnx, "ArgMax", 1, arg<true>},
      Operator{kOnnx, "ArgMin", 1, arg<false>},
      Operator{kOnnx, "CumProd", 26, running<false>},
      Operator{kOnnx, "CumSum", 11, running<true>},
      Operator{kOnnx, "Hardmax", 1, along_rest<hard>},
      Operator{kOnnx, "Hardmax", 13, along<hard>},
      Operator{kOnnx, "LogSoftmax", 1, along_rest<log_of_soft>},
      Operator{kOnnx, "LogSoftmax", 13, along<log_of_soft>},
      Operator{kOnnx, "ReduceL1", 1, reduce<l1>},
      Operator{kOnnx, "ReduceL2", 1, reduce<l2>},
      Operator{kOnnx, "ReduceLogSum", 1, reduce<log_sum>},
      Operator{kOnnx, "ReduceLogSumExp", 1, reduce<log_sum_exp>},
      Operator{kOnnx, "ReduceMax", 1, reduce<most>},
      Operator{kOnnx, "ReduceMean", 1, reduce<mean>},
      Operator{kOnnx, "ReduceMin", 1, reduce<least>},
      Operator{kOnnx, "ReduceProd", 1, reduce<product>},
      Operator{kOnnx, "ReduceSum", 1, reduce<total, 13>},
      Operator{kOnnx, "ReduceSumSquare", 1, reduce<sum_of_squares>},
      Operator{kOnnx, "Softmax", 1, along_rest<soft>},
      Operator{kOnnx, "Softmax", 13, along<soft>},
  };
  return kRows;
}

}  // namespace weft::onnx
