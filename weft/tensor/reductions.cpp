#include "weft/tensor/reductions.h"

#include <cmath>

#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"

namespace weft {

std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Axes& axes, bool keepdim,
                                   int64_t correction, CallSite at) {
  const CallSiteScope site(at);
  return {x.var(axes, keepdim, correction), x.mean(axes, keepdim)};
}

std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Axes& axes, bool keepdim,
                                   int64_t correction, CallSite at) {
  const CallSiteScope site(at);
  return {x.std(axes, keepdim, correction), x.mean(axes, keepdim)};
}

Tensor softmin(const Tensor& x, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  return (-x.cast(float_or_default(x.dtype()))).softmax(axis);
}

Tensor vector_norm(const Tensor& x, double p, const Axes& axes, bool keepdim, CallSite at) {
  const CallSiteScope site(at);
  if (std::isnan(p)) fail("vector_norm", "p is {}: give a number, or an infinite one", p);
  const DType out = float_or_default(x.dtype());
  const Tensor size = x.cast(sum_dtype(out)).abs();
  if (p == 0) return (size != 0).sum(axes, keepdim).cast(out);
  if (std::isinf(p)) return (p > 0 ? size.max(axes, keepdim) : size.min(axes, keepdim)).cast(out);
  if (p == 1) return size.sum(axes, keepdim).cast(out);
  const auto power = [p](const Tensor& s) { return s.pow(p); };
  const Tensor powers = p == 2           ? size * size
                        : p > 0 && p < 1 ? elementwise::zero_or(size, power)
                                         : power(size);
  const Tensor total = powers.sum(axes, keepdim);
  return elementwise::zero_or(total,
                              [p](const Tensor& s) { return p == 2 ? s.sqrt() : s.pow(1 / p); })
      .cast(out);
}

Tensor normalize(const Tensor& x, double p, int64_t axis, double eps, CallSite at) {
  const CallSiteScope site(at);
  return x / vector_norm(x, p, checked_axis("normalize", axis, x), true).maximum(eps);
}

Tensor allclose(const Tensor& x, const Operand& other, double rtol, double atol, bool equal_nan,
                CallSite at) {
  const CallSiteScope site(at);
  return x.isclose(other, rtol, atol, equal_nan).all();
}

// ---- running folds

namespace {

/// Where x last was its running extreme.
Tensor last_hit(const Tensor& x, const Tensor& extreme, int64_t axis) {
  const OpScope scope(x, CallSite::here());
  const Tensor place = scope.result(build::positions(scope.g, x.node()->shape->span(), axis));
  return ((x == extreme) | x.isnan()).where(place, 0).cummax(axis);
}

}  // namespace

ValuesAndPositions cummax(const Tensor& x, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("cummax", axis, x);
  const Tensor values = x.cummax(a);
  return {values, last_hit(x.detach(), values.detach(), a)};
}

ValuesAndPositions cummin(const Tensor& x, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("cummin", axis, x);
  const Tensor values = x.cummin(a);
  return {values, last_hit(x.detach(), values.detach(), a)};
}

Tensor logcumsumexp(const Tensor& given, int64_t axis, CallSite at) {
  const OpScope scope(given, at);
  const int64_t a = checked_axis("logcumsumexp", axis, given);
  const DType out = float_or_default(given.dtype());
  const Tensor x = given.cast(sum_dtype(out));
  // With m the running maximum, s[i] = s[i-1] exp(m[i-1] - m[i]) + exp(x[i] - m[i]) stays in [1,
  // n]. m never falls, except where it stands for an infinity, and in front of the first.
  const Tensor running = x.cummax(a).detach(), m = running.isinf().where(0, running);
  const Tensor decay = (delayed(m, a, 0) - m).minimum(0).exp(), step = (x - m).exp();
  const Tensor s = scope.result(build::linear_recurrence(scope.g, decay.node(), step.node(), a));
  return (s.log() + m).cast(out);
}

}  // namespace weft
