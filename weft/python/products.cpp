// Matrix products, normalisation, attention.

#include "weft/base/error.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

const Tensor& or_none(const Tensor* t) {
  static const Tensor nothing;
  return t ? *t : nothing;
}

Tensor as_dtype(const Tensor& t, std::optional<DType> dtype) {
  return dtype ? t.cast(*dtype, CallSite()) : t;
}

Tensor matmul(const Tensor& x, const Operand& w, bool reverse, std::optional<DType> dtype) {
  if (!w.tensor()) throw nb::type_error("matmul() takes a Tensor: use * for numbers");
  const Tensor a = as_dtype(reverse ? *w.tensor() : x, dtype);
  return a.matmul(as_dtype(reverse ? x : *w.tensor(), dtype), CallSite());
}
Tensor dot(const Tensor& x, const Operand& w, std::optional<DType> dtype) {
  return matmul(x, w, false, dtype);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor* bias,
              std::optional<DType> dtype) {
  if (!dtype) return x.linear(weight, or_none(bias), CallSite());
  const Tensor b = bias ? bias->cast(*dtype) : Tensor();
  return x.cast(*dtype).linear(weight.cast(*dtype), b, CallSite());
}

/// One number for each index along `axis`, beside x; what has as many axes as x stays as it is.
Tensor along(const Tensor& x, const Tensor& numbers, const Ints& axis) {
  if (numbers.ndim() == 0 || numbers.ndim() == x.ndim()) return numbers;
  Dims shape(std::vector<Dim>(x.ndim(), 1));
  for (int64_t a : axis) {
    const Dim size = x.dim(a, CallSite());  // checks a
    shape[static_cast<size_t>(a < 0 ? a + static_cast<int64_t>(x.ndim()) : a)] = size;
  }
  return numbers.reshape(shape, CallSite());
}

Tensor attention(const Tensor& q, const Tensor& key, const Tensor& value, const Tensor* mask,
                 double dropout, bool causal, bool enable_gqa, std::optional<double> scale) {
  AttentionOptions options{mask, dropout, causal, enable_gqa};
  options.scale = scale.value_or(0);
  return q.scaled_dot_product_attention(key, value, options, CallSite());
}

void bind_linear(TensorClass& c) {
  method(c, "matmul", matmul, "x"_a, "reverse"_a = false, "dtype"_a = nb::none(),
         "(..., m, k) @ (..., k, n); batch axes broadcast.");
  method(c, "dot", dot, "w"_a, "dtype"_a = nb::none(), "matmul(), tinygrad's name.");
  method(c, "linear", linear, "weight"_a, "bias"_a = nb::none(), "dtype"_a = nb::none(),
         "x @ weight + bias for a weight (in, out); a 1-D weight multiplies.");
}

}  // namespace

void bind_products(TensorClass& c) {
  bind_linear(c);
  method(c, "layernorm", plain(&Tensor::layernorm), "axis"_a = -1, "eps"_a = 1e-5,
         "(x - mean) / sqrt(var + eps) (Ba, Kiros and Hinton 2016).");
  method(
      c, "batchnorm",
      [](const Tensor& x, const Tensor* weight, const Tensor* bias, const Tensor& mean,
         const Tensor& invstd, const Ints& axis) {
        const Tensor scaled = (x - along(x, mean, axis)) * along(x, invstd, axis);
        const Tensor y = weight ? scaled * along(x, *weight, axis) : scaled;
        return bias ? y + along(x, *bias, axis) : y;
      },
      "weight"_a.none(), "bias"_a.none(), "mean"_a, "invstd"_a, "axis"_a = 1,
      "(x - mean) * invstd * weight + bias, whose sizes are those of these axes.");
  method(c, "scaled_dot_product_attention", attention, "key"_a, "value"_a,
         "attn_mask"_a = nb::none(), "dropout_p"_a = 0.0, "is_causal"_a = false,
         "enable_gqa"_a = false, "scale"_a = nb::none(),
         "softmax(q k^T / sqrt(d)) v (Vaswani et al. 2017). The mask is bool (True takes part) or "
         "added to the scores.");
}

}  // namespace weft::python
