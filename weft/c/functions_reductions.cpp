// Reductions, running folds, sorting, losses.
#include "weft/c/functions.h"
#include "weft/tensor/losses.h"
#include "weft/tensor/statistics.h"

namespace weft::c {

WEFT_CHOICE(Interpolation, "linear|lower|higher|nearest|midpoint")

namespace {

using MaybeAxis = std::optional<int64_t>;
using MaybeDType = std::optional<DType>;

Tensor sum(const Tensor& x, const Axes& axes, bool keepdim, MaybeDType dtype) {
  return dtype ? x.sum(axes, keepdim, *dtype, CallSite()) : x.sum(axes, keepdim, CallSite());
}
Tensor prod(const Tensor& x, const Axes& axes, bool keepdim, MaybeDType dtype) {
  return dtype ? x.prod(axes, keepdim, *dtype, CallSite()) : x.prod(axes, keepdim, CallSite());
}
Tensor argmax(const Tensor& x, MaybeAxis axis, bool keepdim) {
  return axis ? x.argmax(*axis, keepdim, CallSite()) : x.argmax(CallSite());
}
Tensor argmin(const Tensor& x, MaybeAxis axis, bool keepdim) {
  return axis ? x.argmin(*axis, keepdim, CallSite()) : x.argmin(CallSite());
}

Tensor bce(const Tensor& x, const Tensor& target, const Tensor& weight, Reduction reduction) {
  return binary_crossentropy(x, target, {weight, {}, reduction}, CallSite());
}
Tensor bce_logits(const Tensor& x, const Tensor& target, const Tensor& weight,
                  const Tensor& pos_weight, Reduction reduction) {
  return binary_crossentropy_logits(x, target, {weight, pos_weight, reduction}, CallSite());
}
Tensor classes(const Tensor& x, const Tensor& target, const Tensor& weight, MaybeAxis ignore_index,
               double label_smoothing, Reduction reduction) {
  return cross_entropy(x, target, {weight, ignore_index, label_smoothing, reduction}, CallSite());
}
Tensor nll(const Tensor& x, const Tensor& target, const Tensor& weight, MaybeAxis ignore_index,
           Reduction reduction) {
  return nll_loss(x, target, {weight, ignore_index, 0, reduction}, CallSite());
}

constexpr Function kFunctions[] = {
    row<sum>("sum", "x, axes = [], keepdim = false, dtype = none"),
    row<prod>("prod", "x, axes = [], keepdim = false, dtype = none"),
    row<&Tensor::max>("max", "x, axes = [], keepdim = false"),
    row<&Tensor::min>("min", "x, axes = [], keepdim = false"),
    row<&Tensor::any>("any", "x, axes = [], keepdim = false"),
    row<&Tensor::all>("all", "x, axes = [], keepdim = false"),
    row<&Tensor::mean>("mean", "x, axes = [], keepdim = false"),
    row<&Tensor::var>("var", "x, axes = [], keepdim = false, correction = 1"),
    row<&Tensor::std>("std", "x, axes = [], keepdim = false, correction = 1"),
    row<&Tensor::logsumexp>("logsumexp", "x, axes = [], keepdim = false"),
    row<argmax>("argmax", "x, axis = none, keepdim = false"),
    row<argmin>("argmin", "x, axis = none, keepdim = false"),
    row<&Tensor::softmax>("softmax", "x, axis = -1"),
    row<&Tensor::log_softmax>("log_softmax", "x, axis = -1"),
    row<&Tensor::cumsum>("cumsum", "x, axis = 0"),
    row<&Tensor::cumprod>("cumprod", "x, axis = 0"),
    row<&Tensor::sort>("sort", "x, axis = -1, descending = false", "values and positions"),
    row<&Tensor::argsort>("argsort", "x, axis = -1, descending = false"),
    row<&Tensor::topk>("topk", "x, k, axis = -1, largest = true", "values and positions"),
    row<var_mean>("var_mean", "x, axes = [], keepdim = false, correction = 1"),
    row<std_mean>("std_mean", "x, axes = [], keepdim = false, correction = 1"),
    row<softmin>("softmin", "x, axis = -1"),
    row<normalize>("normalize", "x, p = 2, axis = 1, eps = 1e-12"),
    row<vector_norm>("vector_norm", "x, p = 2, axes = [], keepdim = false"),
    row<allclose>("allclose", "x, other, rtol = 1e-5, atol = 1e-8, equal_nan = false"),
    row<cummax>("cummax", "x, axis = 0", "values and positions"),
    row<cummin>("cummin", "x, axis = 0", "values and positions"),
    row<logcumsumexp>("logcumsumexp", "x, axis = 0"),
    row<nansum>("nansum", "x, axes = [], keepdim = false"),
    row<nanmean>("nanmean", "x, axes = [], keepdim = false"),
    row<count_nonzero>("count_nonzero", "x, axes = []"),
    row<median>("median", "x, axis = -1, keepdim = false", "values and positions"),
    row<nanmedian>("nanmedian", "x, axis = -1, keepdim = false", "values and positions"),
    row<kthvalue>("kthvalue", "x, k, axis = -1, keepdim = false", "values and positions"),
    row<mode>("mode", "x, axis = -1, keepdim = false", "values and positions"),
    row<quantile>("quantile", "x, q, axis = -1, keepdim = false, between = linear"),
    row<nanquantile>("nanquantile", "x, q, axis = -1, keepdim = false, between = linear"),
    row<bincount>("bincount", "x, weights = none, least = 0, size = none"),
    row<histc>("histc", "x, bins = 100, low = 0, high = 0"),
    row<cov>("cov", "x, correction = 1"),
    row<corrcoef>("corrcoef", "x"),
    row<diff>("diff", "x, n = 1, axis = -1"),
    row<trapezoid>("trapezoid", "y, dx = 1, axis = -1"),

    row<&Tensor::mse_loss>("mse_loss", "x, target, reduction = mean"),
    row<&Tensor::sparse_categorical_crossentropy>(
        "sparse_categorical_crossentropy",
        "x, target, label_smoothing = 0, ignore_index = -1, reduction = mean"),
    row<bce>("binary_crossentropy", "x, target, weight = none, reduction = mean"),
    row<bce_logits>("binary_crossentropy_logits",
                    "x, target, weight = none, pos_weight = none, reduction = mean"),
    row<classes>("cross_entropy",
                 "x, target, weight = none, ignore_index = -100, label_smoothing = 0, "
                 "reduction = mean"),
    row<nll>("nll_loss", "x, target, weight = none, ignore_index = -100, reduction = mean"),
    row<l1_loss>("l1_loss", "x, target, reduction = mean"),
    row<huber_loss>("huber_loss", "x, target, delta = 1, reduction = mean"),
    row<smooth_l1_loss>("smooth_l1_loss", "x, target, beta = 1, reduction = mean"),
    row<kl_div>("kl_div", "x, target, reduction = mean, log_target = false, batch_mean = false"),
    row<soft_margin_loss>("soft_margin_loss", "x, target, reduction = mean"),
    row<hinge_loss>("hinge_loss", "x, target, reduction = mean"),
    row<gaussian_nll_loss>("gaussian_nll_loss",
                           "x, target, var, full = false, eps = 1e-6, reduction = mean"),
    row<poisson_nll_loss>("poisson_nll_loss",
                          "x, target, log_input = true, eps = 1e-8, reduction = mean"),
    row<cosine_similarity>("cosine_similarity", "x, other, axis = 1, eps = 1e-8"),
    row<cosine_embedding_loss>("cosine_embedding_loss",
                               "x, other, target, margin = 0, reduction = mean"),
    row<triplet_margin_loss>("triplet_margin_loss",
                             "x, positive, negative, margin = 1, p = 2, reduction = mean"),
};

}  // namespace

std::span<const Function> reduction_functions() { return kFunctions; }

}  // namespace weft::c
