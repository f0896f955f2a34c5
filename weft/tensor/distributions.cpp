#include "weft/tensor/distributions.h"

#include <cmath>
#include <numbers>

#include "weft/tensor/access.h"
#include "weft/tensor/known.h"
#include "weft/tensor/selection.h"

namespace weft {

Tensor rand_like(const Tensor& x, CallSite at) {
  const CallSiteScope site(at);
  return Tensor::rand(x.dims(), x.dtype()).to(x.device());
}
Tensor randn_like(const Tensor& x, CallSite at) {
  const CallSiteScope site(at);
  return Tensor::randn(x.dims(), x.dtype()).to(x.device());
}
Tensor randint_like(const Tensor& x, int64_t low, int64_t high, CallSite at) {
  const CallSiteScope site(at);
  return Tensor::randint(low, high, x.dims(), x.dtype()).to(x.device());
}

Tensor random_bits(const Dims& shape, CallSite at) {
  const CallSiteScope site(at);
  // All 32 bits of a number below 2^32.
  return Tensor::randint(0, int64_t{1} << 32, shape, DType::I64).cast(DType::U32);
}

Tensor scaled_uniform(const Dims& shape, CallSite at) {
  const CallSiteScope site(at);
  const auto count = static_cast<double>(std::max<int64_t>(1, shape.product().value()));
  return Tensor::uniform(shape, -1, 1) * (1 / std::sqrt(count));
}

Tensor bernoulli(const Tensor& p, CallSite at) {
  const CallSiteScope site(at);
  require_float("bernoulli", p);
  const Tensor chance = p.detach().cast(sum_dtype(p.dtype()));
  return (rand_like(chance) < chance).cast(p.dtype());
}

Tensor multinomial(const Tensor& weights, int64_t samples, bool replacement, CallSite at) {
  const CallSiteScope site(at);
  require_float("multinomial", weights);
  if (weights.ndim() < 1 || weights.ndim() > 2 || weights.size(-1) == 0)
    fail("multinomial", "weights are (classes) or (rows, classes): got shape {}",
         weights.dims().text());
  const int64_t classes = weights.size(-1);
  if (samples < 0 || (!replacement && samples > classes))
    fail("multinomial",
         "{} samples of {} classes: give at least 0, and with replacement if more "
         "than there are",
         samples, classes);
  const Tensor w = weights.detach().cast(sum_dtype(weights.dtype()));
  const int64_t enough = replacement ? std::min<int64_t>(samples, 1) : samples;
  const auto possible = known_least_positive(weights, enough);
  if (possible == 0 && samples > 0)
    fail("multinomial", "no class of a row has a weight above 0: give at least one");
  if (!replacement) {
    if (possible && *possible < samples)
      fail("multinomial",
           "{} samples without replacement where {} classes have a weight above 0: give at most as "
           "many",
           samples, *possible);
    // Finite for every weight above 0, so that those of 0 come last. Gumbel 1954.
    const double least = std::ldexp(1.0, -float_digits(w.dtype()) - 1);
    const Tensor spread = (-(1 - rand_like(w)).log()).maximum(least);
    return (w > 0).where(w.log() - spread.log(), -INFINITY).topk(samples).second;
  }
  const Tensor sums = (w > 0).where(w, 0).cumsum(-1).contiguous();
  Dims shape = w.dims();
  shape.back() = samples;
  const Tensor place = Tensor::rand(shape, w.dtype()).to(w.device()) *
                       sums.index({kEllipsis, Slice(classes - 1, classes)});
  // A place that was rounded up to the sum is in the last class of a weight above 0.
  const Tensor last = searchsorted(sums, sums.index({kEllipsis, Slice(classes - 1, classes)}));
  return searchsorted(sums, place, true).minimum(last);
}

// ---- transformed uniforms: 1 - u is in (0, 1], so logarithms are finite

namespace {

/// In the dtype that the transform runs in.
Tensor unit(const char* tag, const Dims& shape, DType dtype) {
  if (!is_float(dtype)) fail_type(tag, "makes floating-point numbers, not {}", name(dtype));
  return Tensor::rand(shape, sum_dtype(dtype));
}

/// (0, 1): a half of the grid's step up.
Tensor open_unit(const char* tag, const Dims& shape, DType dtype) {
  const Tensor u = unit(tag, shape, dtype);
  return u + std::ldexp(1.0, -float_digits(u.dtype()) - 1);
}

}  // namespace

Tensor exponential(const Dims& shape, double rate, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  if (!(rate > 0)) fail("exponential", "the rate is {}: it must be above 0", rate);
  return ((1 - unit("exponential", shape, dtype)).log() * (-1 / rate)).cast(dtype);
}

Tensor gumbel(const Dims& shape, double location, double scale, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  const Tensor spread = -(1 - unit("gumbel", shape, dtype)).log();
  // The logarithm of 0, once in 2^24 samples, is that of half a step.
  const double least = std::ldexp(1.0, -float_digits(spread.dtype()) - 1);
  return (location - spread.maximum(least).log() * scale).cast(dtype);
}

Tensor log_normal(const Dims& shape, double mean, double std, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  return Tensor::normal(shape, mean, std, sum_dtype(dtype)).exp().cast(dtype);
}

Tensor laplace(const Dims& shape, double location, double scale, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  const Tensor u = open_unit("laplace", shape, dtype) - 0.5;
  return (location - u.sign() * (1 - u.abs() * 2).log() * scale).cast(dtype);
}

Tensor cauchy(const Dims& shape, double location, double scale, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  const Tensor u = open_unit("cauchy", shape, dtype) - 0.5;
  return ((u * std::numbers::pi).tan() * scale + location).cast(dtype);
}

// ---- gammas and what is made of them

Tensor gamma(const Tensor& given, double rate, CallSite at) {
  const CallSiteScope site(at);
  require_float("gamma", given);
  if (!(rate > 0)) fail("gamma", "the rate is {}: it must be above 0", rate);
  const Tensor alpha = given.detach().cast(sum_dtype(given.dtype()));
  // Below 1 by one more, times u^(1 / alpha).
  const Tensor is_small = alpha < 1, a = is_small.where(alpha + 1, alpha);
  const Tensor d = a - 1.0 / 3, c = (d * 9).rsqrt();
  Tensor result = d;
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    const Tensor x = randn_like(a), root = c * x + 1, v = root * root * root;
    const Tensor bound = 0.5 * x * x + d - d * v + d * (v > 0).where(v, 1).log();
    const Tensor taken = (v > 0) & ((1 - rand_like(a)).log() < bound);
    result = taken.where(d * v, result);
  }
  const Tensor shrunk = result * ((1 - rand_like(a)).log() / alpha).exp();
  return (is_small.where(shrunk, result) * (1 / rate)).cast(given.dtype());
}

Tensor beta(const Tensor& a, const Tensor& b, CallSite at) {
  const CallSiteScope site(at);
  const Tensor x = gamma(a), y = gamma(b);
  return x / (x + y);
}

Tensor dirichlet(const Tensor& alpha, CallSite at) {
  const CallSiteScope site(at);
  const Tensor x = gamma(alpha);
  return x / x.sum(-1, true);
}

Tensor student_t(const Tensor& df, CallSite at) {
  const CallSiteScope site(at);
  require_float("student_t", df);
  return randn_like(df) * (gamma(df * 0.5) * 2 / df).rsqrt();
}

Tensor gumbel_softmax(const Tensor& logits, double temperature, bool hard, int64_t axis,
                      CallSite at) {
  const CallSiteScope site(at);
  require_float("gumbel_softmax", logits);
  if (!(temperature > 0))
    fail("gumbel_softmax", "the temperature is {}: it must be above 0", temperature);
  const int64_t a = checked_axis("gumbel_softmax", axis, logits);
  const Tensor noise = gumbel(logits.dims(), 0, 1, logits.dtype()).to(logits.device());
  const Tensor soft = ((logits + noise) * (1 / temperature)).softmax(a);
  if (!hard) return soft;
  Dims last(std::vector<Dim>(logits.ndim(), 1));
  last[static_cast<size_t>(a)] = logits.dim(a);
  const Tensor place = Tensor::arange(logits.dim(a)).to(logits.device()).reshape(last);
  const Tensor one = (soft.detach().argmax(a, true) == place).cast(soft.dtype());
  return one + (soft - soft.detach());
}

}  // namespace weft
