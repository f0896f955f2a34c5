// Losses: each is a mean, a sum, or one number per sample.
#include "weft/tensor/access.h"

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

/// -log p of the right class in every row, mixed with the mean over classes; 0 where ignored.
Tensor class_losses(const Tensor& log_p, const Tensor& target, double smoothing,
                    const Tensor& counts) {
  const Tensor rows = class_rows(log_p), classes = target.flatten();
  const Tensor right = rows.gather(1, classes.maximum(0).unsqueeze(1)).squeeze(1);
  Tensor losses = -right;
  if (smoothing != 0) losses = losses * (1 - smoothing) - rows.mean(1) * smoothing;
  return counts.flatten().where(losses, 0).reshape(target.dims());
}

Tensor reduced_counts(const Tensor& losses, const Tensor& counts, Reduction reduction) {
  if (reduction != Reduction::Mean) return reduced(losses, reduction);
  return losses.sum() / counts.cast(losses.dtype()).sum();
}

/// Counts only classes that are not `ignored`.
Tensor sparse_loss(const char* tag, const Tensor& x, const Tensor& target, double smoothing,
                   int64_t ignored, Reduction reduction) {
  require_classes(tag, x, target);
  const Tensor counts = target != ignored;
  const Tensor losses = class_losses(x.log_softmax(1), target, smoothing, counts);
  return reduced_counts(losses, counts, reduction);
}

}  // namespace

Tensor Tensor::mse_loss(const Tensor& target, Reduction reduction, CallSite at) const {
  const CallSiteScope site(at);
  require_same_shape("mse_loss", *this, target);
  return reduced((*this - target).square(), reduction);
}

Tensor Tensor::binary_crossentropy(const Tensor& target, Reduction reduction, CallSite at) const {
  const CallSiteScope site(at);
  require_same_shape("binary_crossentropy", *this, target);
  return reduced(-(target * log()) - (1 - target) * (1 - *this).log(), reduction);
}

Tensor Tensor::binary_crossentropy_logits(const Tensor& target, Reduction reduction,
                                          CallSite at) const {
  const CallSiteScope site(at);
  require_same_shape("binary_crossentropy_logits", *this, target);
  // softplus(x) - x * y, which overflows for no x.
  return reduced(softplus() - *this * target, reduction);
}

Tensor Tensor::sparse_categorical_crossentropy(const Tensor& target, double label_smoothing,
                                               int64_t ignore_index, Reduction reduction,
                                               CallSite at) const {
  const CallSiteScope site(at);
  return sparse_loss("sparse_categorical_crossentropy", *this, target, label_smoothing,
                     ignore_index, reduction);
}

Tensor Tensor::cross_entropy(const Tensor& target, double label_smoothing, Reduction reduction,
                             CallSite at) const {
  const CallSiteScope site(at);
  if (!is_float(target.dtype()))
    return sparse_loss("cross_entropy", *this, target, label_smoothing, -1, reduction);
  require_same_shape("cross_entropy", *this, target);
  const double classes = static_cast<double>(size(1));
  const Tensor wanted =
      label_smoothing == 0 ? target : target * (1 - label_smoothing) + label_smoothing / classes;
  return reduced(-(log_softmax(1) * wanted).sum(1), reduction);
}

Tensor Tensor::nll_loss(const Tensor& target, Reduction reduction, CallSite at) const {
  const CallSiteScope site(at);
  require_classes("nll_loss", *this, target);
  const Tensor counts = target != -1;
  return reduced_counts(class_losses(*this, target, 0, counts), counts, reduction);
}

}  // namespace weft
