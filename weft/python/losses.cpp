// Losses.
#include "weft/tensor/losses.h"

#include "weft/base/error.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

Reduction reduction_of(const std::string& name) {
  if (name == "mean") return Reduction::Mean;
  if (name == "sum") return Reduction::Sum;
  if (name == "none") return Reduction::None;
  fail("reduction", "\"{}\": use \"mean\", \"sum\" or \"none\"", name);
}

Tensor or_none(const Tensor* t) { return t ? *t : Tensor(); }

Tensor nll(const Tensor& x, const Tensor& y, const Tensor* weight, std::optional<int64_t> ignored,
           const std::string& reduction) {
  return nll_loss(x, y, {or_none(weight), ignored, 0, reduction_of(reduction)}, CallSite());
}

/// tinygrad's rule: the last axis is the classes'.
Tensor sparse(const Tensor& x, const Tensor& y, int64_t ignored, double smoothing,
              const std::string& name) {
  Dims rows = x.dims();
  const Dim classes = rows.empty() ? Dim(0) : rows.back();
  if (!rows.empty()) rows.erase(rows.size() - 1);
  if (x.ndim() == 0 || !(rows == y.dims()))
    fail("sparse_categorical_crossentropy",
         "scores {} and class numbers {} do not fit: scores are (..., classes) and class numbers "
         "(...)",
         x.dims().text(), y.dims().text());
  const Reduction reduction = reduction_of(name);
  const Tensor loss = x.reshape({rows.product(), classes})
                          .sparse_categorical_crossentropy(y.reshape({rows.product()}), smoothing,
                                                           ignored, reduction, CallSite());
  return reduction == Reduction::None ? loss.reshape(rows) : loss;
}

Tensor entropy(const Tensor& x, const Tensor& y, const std::string& reduction, double smoothing,
               const Tensor* weight, std::optional<int64_t> ignored) {
  return cross_entropy(x, y, {or_none(weight), ignored, smoothing, reduction_of(reduction)},
                       CallSite());
}

Tensor binary_logits(const Tensor& x, const Tensor& y, const std::string& reduction,
                     const Tensor* pos_weight) {
  return binary_crossentropy_logits(x, y, {{}, or_none(pos_weight), reduction_of(reduction)},
                                    CallSite());
}

/// Those of a target alone.
struct Row {
  const char* name;
  Tensor (*apply)(const Tensor&, const Tensor&, Reduction, CallSite);
  const char* doc;
};
constexpr Row kPlain[] = {
    {"binary_crossentropy",
     [](const Tensor& x, const Tensor& y, Reduction r, CallSite at) {
       return x.binary_crossentropy(y, r, at);
     },
     "-Y log p - (1 - Y) log(1 - p) for p = this."},
    {"mse_loss",
     [](const Tensor& x, const Tensor& y, Reduction r, CallSite at) {
       return x.mse_loss(y, r, at);
     },
     "(x - Y)^2."},
    {"l1_loss", l1_loss, "|x - Y|."},
    {"soft_margin_loss", soft_margin_loss, "log(1 + e^(-Y x)) for Y of 1 and -1."},
};

}  // namespace

void bind_losses(TensorClass& c) {
  for (const Row& row : kPlain) {
    const auto call = row.apply;
    method(
        c, row.name,
        [call](const Tensor& x, const Tensor& y, const std::string& reduction) {
          return call(x, y, reduction_of(reduction), CallSite());
        },
        "Y"_a, "reduction"_a = "mean", row.doc);
  }
  method(c, "binary_crossentropy_logits", binary_logits, "Y"_a, "reduction"_a = "mean",
         "pos_weight"_a = nb::none(),
         "binary_crossentropy of sigmoid(this), which overflows for no x.");
  method(c, "nll_loss", nll, "Y"_a, "weight"_a = nb::none(), "ignore_index"_a = -100,
         "reduction"_a = "mean", "-this at the class: log-probabilities (N, classes, ...).");
  method(c, "sparse_categorical_crossentropy", sparse, "Y"_a, "ignore_index"_a = -1,
         "label_smoothing"_a = 0.0, "reduction"_a = "mean",
         "-log softmax at the class: logits (..., classes), class numbers (...).");
  method(c, "cross_entropy", entropy, "Y"_a, "reduction"_a = "mean", "label_smoothing"_a = 0.0,
         "weight"_a = nb::none(), "ignore_index"_a = -100,
         "The same for logits (N, classes, ...), with class numbers (N, ...) or probabilities. A "
         "class number that is none is an error where it is known, and a loss of NaN where it is "
         "computed.");
  method(
      c, "huber_loss",
      [](const Tensor& x, const Tensor& y, double delta, const std::string& reduction) {
        return huber_loss(x, y, delta, reduction_of(reduction), CallSite());
      },
      "Y"_a, "delta"_a = 1.0, "reduction"_a = "mean",
      "d^2 / 2 for d = |x - Y| up to delta, delta (d - delta / 2) above.");
}

}  // namespace weft::python
