// Matrix products, convolutions, pools, normalisation, attention, losses.

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

Tensor matmul(const Tensor& x, const Operand& w, std::optional<DType> dtype, bool reverse) {
  if (!w.tensor()) throw nb::type_error("matmul() takes a Tensor: use * for numbers");
  const Tensor a = as_dtype(reverse ? *w.tensor() : x, dtype);
  return a.matmul(as_dtype(reverse ? x : *w.tensor(), dtype), CallSite());
}
Tensor dot(const Tensor& x, const Operand& w, std::optional<DType> dtype) {
  return matmul(x, w, dtype, false);
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor* bias,
              std::optional<DType> dtype) {
  if (!dtype) return x.linear(weight, or_none(bias), CallSite());
  const Tensor b = bias ? bias->cast(*dtype) : Tensor();
  return x.cast(*dtype).linear(weight.cast(*dtype), b, CallSite());
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor* bias, int64_t groups,
              const Ints& stride, const Ints& dilation, const Ints& padding,
              std::optional<DType> dtype) {
  const ConvOptions options{groups, stride, dilation, padding, 0};
  const Tensor b = bias ? as_dtype(*bias, dtype) : Tensor();
  return as_dtype(x, dtype).conv2d(as_dtype(weight, dtype), b, options, CallSite());
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor* bias, int64_t groups,
                        const Ints& stride, const Ints& dilation, const Ints& padding,
                        const Ints& output_padding) {
  const ConvOptions options{groups, stride, dilation, padding, output_padding};
  return x.conv_transpose2d(weight, or_none(bias), options, CallSite());
}

Ints two_if_one(const Ints& kernel) {
  return kernel.size() == 1 ? Ints{kernel[0], kernel[0]} : kernel;
}

Tensor avg_pool2d(const Tensor& x, const Ints& kernel, const Ints& stride, const Ints& dilation,
                  const Ints& padding, bool ceil_mode, bool count_include_pad) {
  const PoolOptions options{stride, dilation, padding, ceil_mode, count_include_pad};
  return x.avg_pool2d(two_if_one(kernel), options, CallSite());
}
Tensor max_pool2d(const Tensor& x, const Ints& kernel, const Ints& stride, const Ints& dilation,
                  const Ints& padding, bool ceil_mode, bool return_indices) {
  if (return_indices) fail("max_pool2d", "return_indices is not there yet");
  const PoolOptions options{stride, dilation, padding, ceil_mode, true};
  return x.max_pool2d(two_if_one(kernel), options, CallSite());
}

Tensor attention(const Tensor& q, const Tensor& key, const Tensor& value, const Tensor* mask,
                 double dropout, bool causal, bool enable_gqa) {
  const AttentionOptions options{mask, dropout, causal, enable_gqa};
  return q.scaled_dot_product_attention(key, value, options, CallSite());
}

void bind_linear(TensorClass& c) {
  method(c, "matmul", matmul, "x"_a, "dtype"_a = nb::none(), "reverse"_a = false,
         "(..., m, k) @ (..., k, n); batch axes broadcast.");
  method(c, "dot", dot, "w"_a, "dtype"_a = nb::none(), "matmul(), tinygrad's name.");
  method(c, "linear", linear, "weight"_a, "bias"_a = nb::none(), "dtype"_a = nb::none(),
         "x @ weight + bias for a weight (in, out); a 1-D weight multiplies.");
}

void bind_windows(TensorClass& c) {
  method(c, "conv2d", conv2d, "weight"_a, "bias"_a = nb::none(), "groups"_a = 1, "stride"_a = 1,
         "dilation"_a = 1, "padding"_a = 0, "dtype"_a = nb::none(),
         "(N, C, spatial...) with a weight (out, C / groups, kernel...): any number of spatial "
         "axes. padding: one number, one per axis, or (last_before, last_after, ..., "
         "first_after).");
  method(c, "conv_transpose2d", conv_transpose2d, "weight"_a, "bias"_a = nb::none(), "groups"_a = 1,
         "stride"_a = 1, "dilation"_a = 1, "padding"_a = 0, "output_padding"_a = 0,
         "The adjoint of conv2d, for a weight (C, out / groups, kernel...).");
  method(c, "avg_pool2d", avg_pool2d, "kernel_size"_a = nb::make_tuple(2, 2),
         "stride"_a = nb::none(), "dilation"_a = 1, "padding"_a = 0, "ceil_mode"_a = false,
         "count_include_pad"_a = true, "Means of windows over the last axes.");
  method(c, "max_pool2d", max_pool2d, "kernel_size"_a = nb::make_tuple(2, 2),
         "stride"_a = nb::none(), "dilation"_a = 1, "padding"_a = 0, "ceil_mode"_a = false,
         "return_indices"_a = false, "Largest elements of windows over the last axes.");
}

Reduction reduction_of(const std::string& name) {
  if (name == "mean") return Reduction::Mean;
  if (name == "sum") return Reduction::Sum;
  if (name == "none") return Reduction::None;
  fail("reduction", "\"{}\": use \"mean\", \"sum\" or \"none\"", name);
}

using Loss = Tensor (Tensor::*)(const Tensor&, Reduction, CallSite) const;

void bind_plain_loss(TensorClass& c, const char* name, const char* target, Loss loss,
                     const char* doc) {
  method(
      c, name,
      [loss](const Tensor& x, const Tensor& y, const std::string& reduction) {
        return (x.*loss)(y, reduction_of(reduction), CallSite());
      },
      nb::arg(target), "reduction"_a = "mean", doc);
}

}  // namespace

void bind_products(TensorClass& c) {
  bind_linear(c);
  bind_windows(c);
  method(c, "layernorm", plain(&Tensor::layernorm), "axis"_a = -1, "eps"_a = 1e-5,
         "(x - mean) / sqrt(var + eps) (Ba, Kiros and Hinton 2016).");
  method(
      c, "batchnorm",
      [](const Tensor& x, const Tensor* weight, const Tensor* bias, const Tensor& mean,
         const Tensor& invstd) {
        return x.batchnorm(or_none(weight), or_none(bias), mean, invstd, CallSite());
      },
      "weight"_a.none(), "bias"_a.none(), "mean"_a, "invstd"_a,
      "(x - mean) * invstd * weight + bias along axis 1.");
  method(c, "scaled_dot_product_attention", attention, "key"_a, "value"_a,
         "attn_mask"_a = nb::none(), "dropout_p"_a = 0.0, "is_causal"_a = false,
         "enable_gqa"_a = false,
         "softmax(q k^T / sqrt(d)) v (Vaswani et al. 2017). The mask is bool (True takes part) or "
         "added to the scores.");
}

void bind_losses(TensorClass& c) {
  bind_plain_loss(c, "binary_crossentropy", "Y", &Tensor::binary_crossentropy,
                  "-Y log p - (1 - Y) log(1 - p) for p = this.");
  bind_plain_loss(c, "mse_loss", "Y", &Tensor::mse_loss, "(x - Y)^2.");
  bind_plain_loss(c, "binary_crossentropy_logits", "Y", &Tensor::binary_crossentropy_logits,
                  "binary_crossentropy of sigmoid(this), which overflows for no x.");
  bind_plain_loss(c, "nll_loss", "Y", &Tensor::nll_loss,
                  "-this at the target class: log-probabilities (N, classes, ...).");
  method(
      c, "sparse_categorical_crossentropy",
      [](const Tensor& x, const Tensor& y, int64_t ignore_index, double smoothing,
         const std::string& reduction) {
        return x.sparse_categorical_crossentropy(y, smoothing, ignore_index,
                                                 reduction_of(reduction), CallSite());
      },
      "Y"_a, "ignore_index"_a = -1, "label_smoothing"_a = 0.0, "reduction"_a = "mean",
      "-log softmax at the class: logits (N, classes, ...), class numbers (N, ...).");
  method(
      c, "cross_entropy",
      [](const Tensor& x, const Tensor& y, const std::string& reduction, double smoothing) {
        return x.cross_entropy(y, smoothing, reduction_of(reduction), CallSite());
      },
      "Y"_a, "reduction"_a = "mean", "label_smoothing"_a = 0.0,
      "The same, with class numbers or probabilities.");
}

}  // namespace weft::python
