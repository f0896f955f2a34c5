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
    {"hinge_loss", hinge_loss, "max(0, 1 - Y x) for Y of 1 and -1."},
    {"soft_margin_loss", soft_margin_loss, "log(1 + e^(-Y x)) for Y of 1 and -1."},
};

Tensor divergence(const Tensor& x, const Tensor& y, const std::string& reduction, bool log_target) {
  const bool batch_mean = reduction == "batchmean";
  return kl_div(x, y, batch_mean ? Reduction::Sum : reduction_of(reduction), log_target, batch_mean,
                CallSite());
}

void bind_of_numbers(TensorClass& c) {
  method(
      c, "smooth_l1_loss",
      [](const Tensor& x, const Tensor& y, const std::string& reduction, double beta) {
        return smooth_l1_loss(x, y, beta, reduction_of(reduction), CallSite());
      },
      "Y"_a, "reduction"_a = "mean", "beta"_a = 1.0, "huber_loss(delta=beta) / beta.");
  method(c, "kl_div", divergence, "Y"_a, "reduction"_a = "mean", "log_target"_a = false,
         "Y (log Y - x) for log-probabilities x; reduction also \"batchmean\".");
  method(
      c, "gaussian_nll_loss",
      [](const Tensor& x, const Tensor& y, const Tensor& var, bool full, double eps,
         const std::string& reduction) {
        return gaussian_nll_loss(x, y, var, full, eps, reduction_of(reduction), CallSite());
      },
      "Y"_a, "var"_a, "full"_a = false, "eps"_a = 1e-6, "reduction"_a = "mean",
      "((x - Y)^2 / var + log var) / 2.");
  method(
      c, "poisson_nll_loss",
      [](const Tensor& x, const Tensor& y, bool log_input, double eps,
         const std::string& reduction) {
        return poisson_nll_loss(x, y, log_input, eps, reduction_of(reduction), CallSite());
      },
      "Y"_a, "log_input"_a = true, "eps"_a = 1e-8, "reduction"_a = "mean",
      "e^x - Y x, or x - Y log(x + eps) where x is no logarithm.");
}

void bind_of_vectors(TensorClass& c) {
  method(c, "cosine_similarity", plain(cosine_similarity), "other"_a, "dim"_a = 1, "eps"_a = 1e-8,
         "x y / max(|x| |y|, eps) along dim.");
  method(
      c, "cosine_embedding_loss",
      [](const Tensor& x, const Tensor& other, const Tensor& y, double margin,
         const std::string& reduction) {
        return cosine_embedding_loss(x, other, y, margin, reduction_of(reduction), CallSite());
      },
      "other"_a, "Y"_a, "margin"_a = 0.0, "reduction"_a = "mean",
      "1 - cosine for Y of 1, max(0, cosine - margin) for -1.");
  method(
      c, "triplet_margin_loss",
      [](const Tensor& x, const Tensor& positive, const Tensor& negative, double margin, double p,
         const std::string& reduction) {
        return triplet_margin_loss(x, positive, negative, margin, p, reduction_of(reduction),
                                   CallSite());
      },
      "positive"_a, "negative"_a, "margin"_a = 1.0, "p"_a = 2.0, "reduction"_a = "mean",
      "max(0, |x - positive|_p - |x - negative|_p + margin).");
}

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
  bind_of_numbers(c);
  bind_of_vectors(c);
}

}  // namespace weft::python
