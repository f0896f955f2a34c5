// Sums to sorting.

#include "weft/tensor/reductions.h"
#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"

namespace weft::python {

namespace {

/// PyTorch's rule: a number has an axis 0 (or -1) of size 1 where one is asked for.
bool is_axis_of_number(const Tensor& x, int64_t axis) {
  return x.ndim() == 0 && (axis == 0 || axis == -1);
}
Axes axes_in(const Tensor& x, const Axes& axis) {
  return axis.size() == 1 && is_axis_of_number(x, axis[0]) ? Axes() : axis;
}

Tensor number(const Tensor& x) { return x.reshape(Dims(), CallSite()); }
std::pair<Tensor, Tensor> number(const std::pair<Tensor, Tensor>& xs) {
  return {number(xs.first), number(xs.second)};
}
/// f(x, axis), for numbers too.
template <class F>
auto along_axis(const Tensor& x, int64_t axis, const F& f) {
  return is_axis_of_number(x, axis) ? number(f(x.reshape({1}, CallSite()), 0)) : f(x, axis);
}

using Reduction = Tensor (Tensor::*)(const Axes&, bool, CallSite) const;

struct Row {
  const char* name;
  Reduction apply;
  const char* doc;
};
constexpr Row kReductions[] = {
    {"max", &Tensor::max, "The largest; NaN wins; ties share the gradient."},
    {"min", &Tensor::min, "The smallest; NaN wins."},
    {"any", &Tensor::any, "Whether any element is not 0."},
    {"all", &Tensor::all, "Whether every element is not 0."},
    {"mean", &Tensor::mean, "Of integers in float32."},
    {"logsumexp", &Tensor::logsumexp, "log(sum(exp(x))) that overflows for no x."},
};

using InDType = Tensor (Tensor::*)(const Axes&, bool, DType, CallSite) const;
template <Reduction apply, InDType apply_in>
Tensor summed(const Tensor& x, const Axes& axis, bool keepdim, std::optional<DType> dtype) {
  const Axes axes = axes_in(x, axis);
  return dtype ? (x.*apply_in)(axes, keepdim, *dtype, CallSite())
               : (x.*apply)(axes, keepdim, CallSite());
}

template <Tensor (Tensor::*all)(CallSite) const,
          Tensor (Tensor::*along)(int64_t, bool, CallSite) const>
Tensor position(const Tensor& x, std::optional<int64_t> axis, bool keepdim) {
  if (axis && !is_axis_of_number(x, *axis)) return (x.*along)(*axis, keepdim, CallSite());
  const Tensor found = (x.*all)(CallSite());
  return keepdim ? found.reshape(std::vector<int64_t>(x.ndim(), 1), CallSite()) : found;
}

/// In the dtype asked for; integers in the default float, as tinygrad has it.
Tensor floats(const Tensor& x, std::optional<DType> dtype) {
  const DType usual = is_float(x.dtype()) ? x.dtype() : default_dtypes().floats;
  return x.cast(dtype.value_or(usual), CallSite());
}

template <Tensor (Tensor::*apply)(int64_t, CallSite) const>
Tensor along(const Tensor& x, int64_t axis, std::optional<DType> dtype) {
  return along_axis(floats(x, dtype), axis,
                    [](const Tensor& y, int64_t a) { return (y.*apply)(a, CallSite()); });
}

template <Tensor (Tensor::*apply)(int64_t, CallSite) const>
Tensor running(const Tensor& x, int64_t axis) {
  return along_axis(x, axis, [](const Tensor& y, int64_t a) { return (y.*apply)(a, CallSite()); });
}

std::pair<Tensor, Tensor> topk(const Tensor& x, int64_t k, int64_t dim, bool largest,
                               bool /*sorted: every order is right where none is asked for*/) {
  return along_axis(x, dim,
                    [&](const Tensor& y, int64_t a) { return y.topk(k, a, largest, CallSite()); });
}

void bind_sums(TensorClass& c) {
  for (const Row& r : kReductions) {
    const Reduction apply = r.apply;
    method(
        c, r.name,
        [apply](const Tensor& x, const Axes& axis, bool keepdim) {
          return (x.*apply)(axes_in(x, axis), keepdim, CallSite());
        },
        "axis"_a = nb::none(), "keepdim"_a = false, r.doc);
  }
  method(c, "sum", summed<&Tensor::sum, &Tensor::sum>, "axis"_a = nb::none(), "keepdim"_a = false,
         "dtype"_a = nb::none(),
         "Of bools and small integers in int32 or uint32; half and bfloat16 run in float32.");
  method(c, "prod", summed<&Tensor::prod, &Tensor::prod>, "axis"_a = nb::none(),
         "keepdim"_a = false, "dtype"_a = nb::none(), "The product; of no elements 1.");
}

void bind_moments(TensorClass& c) {
  using Moment = Tensor (Tensor::*)(const Axes&, bool, int64_t, CallSite) const;
  const auto moment = [&c](const char* name, Moment apply, const char* doc) {
    method(
        c, name,
        [apply](const Tensor& x, const Axes& axis, bool keepdim, int64_t correction) {
          return (x.*apply)(axes_in(x, axis), keepdim, correction, CallSite());
        },
        "axis"_a = nb::none(), "keepdim"_a = false, "correction"_a = 1, doc);
  };
  moment("var", &Tensor::var, "The variance: divided by count - correction.");
  moment("std", &Tensor::std, "The standard deviation.");
  using Both = std::pair<Tensor, Tensor> (*)(const Tensor&, const Axes&, bool, int64_t, CallSite);
  const auto with_mean = [&c](const char* name, Both both) {
    method(
        c, name,
        [both](const Tensor& x, const Axes& axis, bool keepdim, int64_t correction) {
          return both(x, axes_in(x, axis), keepdim, correction, CallSite());
        },
        "axis"_a = nb::none(), "keepdim"_a = false, "correction"_a = 1, "And the mean.");
  };
  with_mean("std_mean", std_mean);
  with_mean("var_mean", var_mean);
}

void bind_extremes(TensorClass& c) {
  using Both = ValuesAndPositions (*)(const Tensor&, int64_t, CallSite);
  const auto extremes = [&c](const char* name, Both both, const char* doc) {
    method(
        c, name,
        [both](const Tensor& x, int64_t axis) {
          return along_axis(x, axis, [both](const Tensor& y, int64_t a) {
            const ValuesAndPositions found = both(y, a, CallSite());
            return std::pair(found.values, found.positions);
          });
        },
        "axis"_a = 0, doc);
  };
  extremes("cummax", cummax, "The largest so far and its int32 position.");
  extremes("cummin", cummin, "The smallest so far and its int32 position.");
}

/// Functions of a tensor and an axis, of reductions.h.
void bind_running(TensorClass& c) {
  method(
      c, "logcumsumexp",
      [](const Tensor& x, int64_t axis) {
        return along_axis(
            x, axis, [](const Tensor& y, int64_t a) { return logcumsumexp(y, a, CallSite()); });
      },
      "axis"_a = 0, "log of the running sum of exp(x); overflows for no x.");
  method(
      c, "softmin",
      [](const Tensor& x, int64_t axis, std::optional<DType> dtype) {
        return along_axis(floats(x, dtype), axis,
                          [](const Tensor& y, int64_t a) { return softmin(y, a, CallSite()); });
      },
      "axis"_a = -1, "dtype"_a = nb::none(), "softmax of -x.");
  method(
      c, "normalize",
      [](const Tensor& x, double p, int64_t dim, double eps) {
        return normalize(x, p, dim, eps, CallSite());
      },
      "p"_a = 2.0, "dim"_a = 1, "eps"_a = 1e-12, "x / max(|x|_p, eps) along dim.");
}

void bind_along(TensorClass& c) {
  method(c, "softmax", along<&Tensor::softmax>, "axis"_a = -1, "dtype"_a = nb::none(),
         "exp(x) / sum(exp(x)); no x overflows.");
  method(c, "log_softmax", along<&Tensor::log_softmax>, "axis"_a = -1, "dtype"_a = nb::none(),
         "The logarithm of softmax.");
  method(c, "cumsum", running<&Tensor::cumsum>, "axis"_a = 0, "Running sums.");
  method(c, "cumprod", running<&Tensor::cumprod>, "axis"_a = 0, "Running products.");
  method(c, "argmax", position<&Tensor::argmax, &Tensor::argmax>, "axis"_a = nb::none(),
         "keepdim"_a = false, "int32: the first position of the largest; NaN wins.");
  method(c, "argmin", position<&Tensor::argmin, &Tensor::argmin>, "axis"_a = nb::none(),
         "keepdim"_a = false, "int32: the first position of the smallest; NaN wins.");
}

}  // namespace

void bind_reductions(TensorClass& c) {
  bind_sums(c);
  bind_moments(c);
  bind_along(c);
  bind_extremes(c);
  bind_running(c);
  method(
      c, "sort",
      [](const Tensor& x, int64_t dim, bool descending) {
        return x.sort(dim, descending, CallSite());
      },
      "dim"_a = -1, "descending"_a = false,
      "Values and int32 positions; stable; NaN sorts as the largest.");
  method(c, "argsort", plain(&Tensor::argsort), "dim"_a = -1, "descending"_a = false,
         "The positions of sort().");
  method(c, "topk", topk, "k"_a, "dim"_a = -1, "largest"_a = true, "sorted_"_a = true,
         "The first k values and positions of sort().");
}

}  // namespace weft::python
