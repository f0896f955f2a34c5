#include "weft/tensor/losses.h"

#include <cmath>
#include <numbers>

#include "weft/tensor/access.h"
#include "weft/tensor/known.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/reductions.h"

namespace weft {

namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::None) return losses;
  return reduction == Reduction::Sum ? losses.sum() : losses.mean();
}

void require_same_shape(const char* tag, const Tensor& x, const Tensor& y) {
  if (!(x.dims() == y.dims()))
    fail(tag, "predictions {} and targets {} have different shapes: they must be equal",
         x.dims().text(), y.dims().text());
}

/// Of integers floats: their differences and products would wrap.
std::pair<Tensor, Tensor> in_floats(const Tensor& x, const Tensor& y) {
  if (is_float(x.dtype()) || is_float(y.dtype())) return {x, y};
  return {x.cast(kDefaultFloat), y.cast(kDefaultFloat)};
}

Tensor difference(const Tensor& x, const Tensor& y) {
  const auto [a, b] = in_floats(x, y);
  return a - b;
}
Tensor product(const Tensor& x, const Tensor& y) {
  const auto [a, b] = in_floats(x, y);
  return a * b;
}

/// Classes on the last axis, everything else merged: (n, classes).
Tensor class_rows(const Tensor& x) {
  if (x.ndim() == 2) return x;
  Ints order{0};
  for (size_t i = 2; i < x.ndim(); ++i) order.push_back(static_cast<int64_t>(i));
  order.push_back(1);
  return x.permute(order).flatten(0, -2);
}

void require_classes(const char* tag, const Tensor& x, const Tensor& target) {
  if (is_float(target.dtype()) || is_bool(target.dtype()))
    fail_type(tag, "class numbers must be integers: got {} of shape {}; cast them",
              name(target.dtype()), target.dims().text());
  Dims expected = x.dims();
  if (expected.size() >= 2) expected.erase(1);
  if (x.ndim() < 2 || !(expected == target.dims()))
    fail(
        tag,
        "scores {} and class numbers {} do not fit: scores are (n, classes, ...) and class numbers "
        "(n, ...)",
        x.dims().text(), target.dims().text());
}

/// One per sample, and what each counts in the mean.
struct Weighed {
  Tensor losses, weights;
};

/// Class numbers in a dtype that holds ignore_index and has a sign.
Tensor signed_classes(const Tensor& target) {
  const DType d = target.dtype();
  if (bits(d) < 32) return target.cast(DType::I32);
  return is_unsigned(d) ? target.cast(DType::I64) : target;
}

void require_known_classes(const char* tag, const Tensor& target, int64_t classes,
                           const ClassLossOptions& o) {
  if (const auto found = known_outside(target, 0, classes, o.ignore_index))
    fail_index(tag, "class number {} is out of bounds for {} classes: it must be from 0 to {}{}",
               *found, classes, classes - 1,
               o.ignore_index ? strformat(", or {}, which is ignored", *o.ignore_index) : "");
}

/// -log p of the right class in every row, mixed with the mean over classes; 0 where ignored, NaN
/// where the class is none, so that neither it nor its gradient passes for a loss.
Weighed class_losses(const Tensor& log_p, const Tensor& target, const ClassLossOptions& o) {
  const Tensor rows = class_rows(log_p), given = signed_classes(target.flatten());
  const int64_t last = rows.size(1) - 1;
  const Tensor classes = given.maximum(0).minimum(std::max<int64_t>(last, 0));
  const double smoothing = o.label_smoothing;
  const auto scaled = [&](const Tensor& x) { return o.weight.defined() ? x * o.weight : x; };
  Tensor right = gather_inside(scaled(rows), 1, classes.unsqueeze(1)).squeeze(1);
  if (!is_known(target)) {
    Tensor valid = (given >= 0) & (given <= last);
    if (o.ignore_index) valid = valid | (given == *o.ignore_index);
    right = right * valid.where(1.0, std::nan("")).cast(right.dtype());
  }
  Tensor losses = -right;
  if (smoothing != 0) losses = losses * (1 - smoothing) - scaled(rows).mean(1) * smoothing;
  Tensor weights = o.weight.defined() ? gather_inside(o.weight, 0, classes).cast(losses.dtype())
                                      : losses.ones_like();
  if (o.ignore_index) {
    const Tensor counts = given != *o.ignore_index;
    losses = counts.where(losses, 0);
    weights = counts.where(weights, 0);
  }
  return {losses.reshape(target.dims()), weights};
}

Tensor reduced_classes(const Weighed& w, Reduction reduction) {
  return reduction == Reduction::Mean ? w.losses.sum() / w.weights.sum()
                                      : reduced(w.losses, reduction);
}

void require_weight(const char* tag, const Tensor& x, const ClassLossOptions& o) {
  if (!o.weight.defined()) return;
  const Dim classes = x.dim(x.ndim() > 1 ? 1 : 0);
  if (o.weight.ndim() != 1 || !(o.weight.dim(0) == classes))
    fail(tag, "weights of shape {} for {} classes: give one for each class", o.weight.dims().text(),
         classes.text());
}

/// Class numbers; a single sample without its axis is one row.
Tensor sparse_loss(const char* tag, const Tensor& x, const Tensor& target, bool logits,
                   const ClassLossOptions& o) {
  if (x.ndim() == 1 && target.ndim() == 0) {
    const Tensor loss = sparse_loss(tag, x.unsqueeze(0), target.unsqueeze(0), logits, o);
    return o.reduction == Reduction::None ? loss.squeeze(0) : loss;
  }
  require_classes(tag, x, target);
  require_weight(tag, x, o);
  require_known_classes(tag, target, x.size(1), o);
  const Tensor scores = x.cast(float_or_default(x.dtype()));
  return reduced_classes(class_losses(logits ? scores.log_softmax(1) : scores, target, o),
                         o.reduction);
}

}  // namespace

Tensor Tensor::mse_loss(const Tensor& target, Reduction reduction, CallSite at) const {
  const CallSiteScope site(at);
  require_same_shape("mse_loss", *this, target);
  return reduced(difference(*this, target).square(), reduction);
}

Tensor Tensor::binary_crossentropy(const Tensor& target, Reduction reduction, CallSite at) const {
  return weft::binary_crossentropy(*this, target, {.reduction = reduction}, at);
}

Tensor Tensor::binary_crossentropy_logits(const Tensor& target, Reduction reduction,
                                          CallSite at) const {
  return weft::binary_crossentropy_logits(*this, target, {.reduction = reduction}, at);
}

Tensor Tensor::sparse_categorical_crossentropy(const Tensor& target, double label_smoothing,
                                               int64_t ignore_index, Reduction reduction,
                                               CallSite at) const {
  const CallSiteScope site(at);
  return sparse_loss(
      "sparse_categorical_crossentropy", *this, target, true,
      {.ignore_index = ignore_index, .label_smoothing = label_smoothing, .reduction = reduction});
}

Tensor Tensor::cross_entropy(const Tensor& target, double label_smoothing, Reduction reduction,
                             CallSite at) const {
  return weft::cross_entropy(*this, target,
                             {.label_smoothing = label_smoothing, .reduction = reduction}, at);
}

Tensor Tensor::nll_loss(const Tensor& target, Reduction reduction, CallSite at) const {
  return weft::nll_loss(*this, target, {.reduction = reduction}, at);
}

// ---- of classes

Tensor binary_crossentropy(const Tensor& x, const Tensor& target, const BinaryLossOptions& o,
                           CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("binary_crossentropy", x, target);
  if (o.pos_weight.defined())
    fail("binary_crossentropy", "pos_weight is for logits: multiply the target's part by weight");
  const auto log = [](const Tensor& p) {
    const Tensor some = p > 0;
    return some.where(some.where(p, 1).log().maximum(-100), -100);
  };
  const Tensor losses = -(target * log(x)) - (1 - target) * log(1 - x);
  return reduced(o.weight.defined() ? losses * o.weight : losses, o.reduction);
}

Tensor binary_crossentropy_logits(const Tensor& x, const Tensor& target, const BinaryLossOptions& o,
                                  CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("binary_crossentropy_logits", x, target);
  // With w = pos_weight: (1 - y) softplus(x) + w y softplus(-x), of which the part that grows with
  // |x| is taken out: both parts are positive for y in [0, 1], so infinite x give no NaN there.
  const auto [a, y] = in_floats(x, target);
  const Tensor below = a < 0, away = below.where(a, -a).softplus();
  const bool even = !o.pos_weight.defined();
  const Tensor growth = below.where(even ? -y : -o.pos_weight * y, 1 - y);
  const Tensor losses = growth * a + (even ? away : (1 + (o.pos_weight - 1) * y) * away);
  return reduced(o.weight.defined() ? losses * o.weight : losses, o.reduction);
}

Tensor cross_entropy(const Tensor& x, const Tensor& target, const ClassLossOptions& o,
                     CallSite at) {
  const CallSiteScope site(at);
  if (!is_float(target.dtype())) return sparse_loss("cross_entropy", x, target, true, o);
  require_same_shape("cross_entropy", x, target);
  require_weight("cross_entropy", x, o);
  const int64_t axis = x.ndim() > 1 ? 1 : 0;
  const double smoothing = o.label_smoothing, classes = static_cast<double>(x.size(axis));
  const Tensor wanted = smoothing == 0 ? target : target * (1 - smoothing) + smoothing / classes;
  Tensor log_p = x.log_softmax(axis);
  if (o.weight.defined()) {
    Dims shape(std::vector<Dim>(x.ndim(), 1));
    shape[static_cast<size_t>(axis)] = o.weight.dim(0);
    log_p = log_p * o.weight.reshape(shape);
  }
  return reduced(-(log_p * wanted).sum(axis), o.reduction);
}

Tensor nll_loss(const Tensor& x, const Tensor& target, const ClassLossOptions& o, CallSite at) {
  const CallSiteScope site(at);
  return sparse_loss("nll_loss", x, target, false, o);
}

// ---- of numbers

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction, CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("l1_loss", x, target);
  return reduced(difference(x, target).abs(), reduction);
}

Tensor huber_loss(const Tensor& x, const Tensor& target, double delta, Reduction reduction,
                  CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("huber_loss", x, target);
  if (!(delta > 0)) fail("huber_loss", "delta is {}: it must be above 0", delta);
  // The square of what is not taken stays finite: its slope would be 0 times infinity.
  const Tensor d = difference(x, target).abs(), near = d.clamp(0, delta);
  return reduced((d > delta).where((d - delta / 2) * delta, near * near * 0.5), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta, Reduction reduction,
                      CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("smooth_l1_loss", x, target);
  if (!(beta >= 0)) fail("smooth_l1_loss", "beta is {}: it must not be negative", beta);
  return beta == 0 ? l1_loss(x, target, reduction) : huber_loss(x, target, beta, reduction) / beta;
}

Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction, bool log_target,
              bool batch_mean, CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("kl_div", x, target);
  if (batch_mean && x.ndim() == 0) fail("kl_div", "shape () has no axis of samples");
  Tensor losses;
  if (log_target) {
    losses = target.exp() * (target - x);
  } else {
    const Tensor none = target == 0;
    losses = none.where(0, target * (none.where(1, target).log() - x));
  }
  if (!batch_mean) return reduced(losses, reduction);
  return losses.sum() / static_cast<double>(x.size(0));
}

Tensor soft_margin_loss(const Tensor& x, const Tensor& target, Reduction reduction, CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("soft_margin_loss", x, target);
  return reduced((-product(target, x)).softplus(), reduction);
}

Tensor hinge_loss(const Tensor& x, const Tensor& target, Reduction reduction, CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("hinge_loss", x, target);
  return reduced((1 - product(target, x)).relu(), reduction);
}

Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var, bool full,
                         double eps, Reduction reduction, CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("gaussian_nll_loss", x, target);
  // The bound has no gradient, as in PyTorch.
  const Tensor v = var + (var.maximum(eps) - var).detach();
  const Tensor losses = ((x - target).square() / v + v.log()) * 0.5;
  return reduced(full ? losses + 0.5 * std::log(2 * std::numbers::pi) : losses, reduction);
}

Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, bool log_input, double eps,
                        Reduction reduction, CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("poisson_nll_loss", x, target);
  return reduced(log_input ? x.exp() - target * x : x - target * (x + eps).log(), reduction);
}

// ---- of distances

Tensor cosine_similarity(const Tensor& x, const Tensor& other, int64_t axis, double eps,
                         CallSite at) {
  const CallSiteScope site(at);
  const std::vector<Tensor> both = broadcast_tensors({x, other});
  const int64_t a = checked_axis("cosine_similarity", axis, both[0]);
  // Each length by itself: the product of two small ones is below eps long before one of them is.
  const auto length = [&](const Tensor& y) { return vector_norm(y, 2, a).maximum(eps); };
  return (both[0] * both[1]).sum(a) / (length(both[0]) * length(both[1]));
}

Tensor cosine_embedding_loss(const Tensor& x, const Tensor& other, const Tensor& target,
                             double margin, Reduction reduction, CallSite at) {
  const CallSiteScope site(at);
  const Tensor cosine = cosine_similarity(x, other, -1);
  require_same_shape("cosine_embedding_loss", cosine, target);
  return reduced((target > 0).where(1 - cosine, (cosine - margin).relu()), reduction);
}

Tensor triplet_margin_loss(const Tensor& x, const Tensor& positive, const Tensor& negative,
                           double margin, double p, Reduction reduction, CallSite at) {
  const CallSiteScope site(at);
  require_same_shape("triplet_margin_loss", x, positive);
  require_same_shape("triplet_margin_loss", x, negative);
  // PyTorch adds 1e-6 to the differences before it takes their norm.
  const auto distance = [&](const Tensor& y) { return vector_norm(x - y + 1e-6, p, -1); };
  return reduced((distance(positive) - distance(negative) + margin).relu(), reduction);
}

}  // namespace weft
