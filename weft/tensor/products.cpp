// Products: matmul, linear layers, attention.
#include <cmath>

#include "weft/tensor/access.h"
#include "weft/tensor/tracing.h"
#include "weft/tensor/transforms.h"

namespace weft {

namespace {

/// Where a product of a and b is summed: see sum(); small integers too.
DType product_dtype(const Tensor& a, const Tensor& b, const char* tag) {
  const DType met = promote(a.dtype(), b.dtype());
  if (met == DType::Void)
    fail_type(tag, "{} and {} have no common dtype: cast one of them", name(a.dtype()),
              name(b.dtype()));
  return met;
}

/// Axes before the last two are equal or 1, counted from the last.
void require_batches(const Tensor& a, const Tensor& b) {
  for (size_t i = 3; i <= a.ndim() && i <= b.ndim(); ++i) {
    const auto axis = -static_cast<int64_t>(i);
    const Dim x = a.dim(axis), y = b.dim(axis);
    if (!(x == y) && !(x == Dim(1)) && !(y == Dim(1)))
      fail("matmul",
           "batch axes differ: got {} and {}; axis {} is {} and {}: they must be equal or 1",
           a.dims().text(), b.dims().text(), axis, x.text(), y.text());
  }
}

}  // namespace

Tensor Tensor::matmul(const Tensor& other, CallSite at) const {
  const CallSiteScope site(at);
  const DType out = product_dtype(*this, other, "matmul");
  if (ndim() == 0 || other.ndim() == 0)
    fail("matmul", "both operands need at least one axis: got {} and {}; use * for scalars",
         dims().text(), other.dims().text());
  const Dim inner = dim(-1), other_inner = other.dim(other.ndim() == 1 ? 0 : -2);
  if (!(inner == other_inner))
    fail("matmul",
         "inner dimensions differ: got {} and {}; the last axis of the left ({}) must equal the {} "
         "of "
         "the right ({})",
         dims().text(), other.dims().text(), inner.text(),
         other.ndim() == 1 ? "only axis" : "second-last axis", other_inner.text());
  require_batches(*this, other);
  const DType run = sum_dtype(out);
  // (..., m, 1, k) * (..., 1, n, k), summed over k.
  Tensor a = cast(run), b = other.cast(run);
  if (b.ndim() > 1) b = b.transpose(-1, -2);
  if (a.ndim() > 1 && b.ndim() > 1) {
    a = a.unsqueeze(-2);
    b = b.unsqueeze(-3);
  }
  return (a * b).sum(-1).cast(out);
}

Tensor Tensor::linear(const Tensor& weight, const Tensor& bias, CallSite at) const {
  const CallSiteScope site(at);
  const Tensor y = weight.ndim() == 1 ? *this * weight : matmul(weight);
  return bias.defined() ? y + bias : y;
}

namespace {

/// (.., heads, n, d) with every head repeated next to itself.
Tensor repeated_heads(const Tensor& x, int64_t heads) {
  const int64_t have = x.size(-3);
  if (heads % have != 0)
    fail("scaled_dot_product_attention", "{} query heads are no multiple of {} key heads", heads,
         have);
  return heads == have ? x : x.repeat_interleave(heads / have, -3);
}

Tensor masked(const Tensor& scores, const Tensor& mask) {
  return is_bool(mask.dtype()) ? mask.where(scores, -INFINITY) : scores + mask;
}

/// q k^T in the dtype of sums, of which no digit is lost before the softmax. Its gradient is
/// rounded to what q and k are: else the products that gradients are would not be those of narrow
/// numbers.
Tensor attention_scores(const Tensor& q, const Tensor& k) {
  const DType narrow = product_dtype(q, k, "scaled_dot_product_attention"), run = sum_dtype(narrow);
  const Tensor scores = q.cast(run).matmul(k.cast(run).transpose(-1, -2));
  if (run == narrow) return scores;
  const GradientFunction rounded = [narrow, run](auto&, auto&, const Tensors& upstream) {
    return Tensors{upstream[0].cast(narrow).cast(run)};
  };
  const auto same = [&](const Tensors& given) {
    return with_gradient([](const Tensors& in) { return in; }, rounded, given);
  };
  return called("attention_scores", {static_cast<int64_t>(narrow)}, {scores}, same)[0];
}

/// softmax along the last axis, and 0 in rows of -inf alone: what sees nothing attends to nothing.
Tensor attention_weights(const Tensor& scores) {
  const Tensor top = scores.max(-1, true).detach();
  const Tensor e = (scores - (top == -INFINITY).where(0, top)).exp(), sum = e.sum(-1, true);
  return e / (sum == 0).where(1, sum);
}

}  // namespace

Tensor Tensor::scaled_dot_product_attention(const Tensor& key, const Tensor& value,
                                            const AttentionOptions& options, CallSite at) const {
  const CallSiteScope site(at);
  require_float("scaled_dot_product_attention", *this);
  if (options.causal && options.mask)
    fail("scaled_dot_product_attention",
         "causal and mask together: put the causal part in the mask");
  if (options.window < 0)
    fail("scaled_dot_product_attention", "a window of {} positions", options.window);
  Tensor k = key, v = value;
  if (options.grouped_queries) {
    k = repeated_heads(k, size(-3));
    v = repeated_heads(v, size(-3));
  }
  const double scale =
      options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(size(-1)));
  Tensor scores = attention_scores(*this, k) * scale;
  if (options.mask) scores = masked(scores, *options.mask);
  const Tensor near = ones({dim(-2), k.dim(-2)}, DType::Bool);
  if (options.causal) scores = masked(scores, near.tril());
  if (options.window > 0) scores = masked(scores, near.triu(1 - options.window));
  const bool may_see_nothing = options.mask || options.window > 0;
  const Tensor weights =
      (may_see_nothing ? attention_weights(scores) : scores.softmax(-1)).cast(dtype());
  return weights.dropout(options.dropout).matmul(v);
}

}  // namespace weft
