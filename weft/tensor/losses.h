// Losses with all their parameters; Tensor's own are the short forms. x is what was predicted.
// Shapes are equal where nothing else is said; Reduction as in operand.h. Formulas and defaults:
// PyTorch's.
#pragma once

#include <optional>

#include "weft/tensor/tensor.h"

namespace weft {

/// |x - target|.
Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean,
               CallSite = CallSite::here());
/// d^2 / 2 for d = |x - target| up to delta, delta (d - delta / 2) above (Huber 1964);
/// smooth_l1_loss is huber_loss / beta, and l1_loss for beta 0.
Tensor huber_loss(const Tensor& x, const Tensor& target, double delta = 1,
                  Reduction reduction = Reduction::Mean, CallSite = CallSite::here());
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta = 1,
                      Reduction reduction = Reduction::Mean, CallSite = CallSite::here());
/// target (log target - x) for log-probabilities x, or e^target (target - x) where the target is
/// logarithmic too; 0 where the target is 0. batch_mean divides the sum by the first axis.
Tensor kl_div(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean,
              bool log_target = false, bool batch_mean = false, CallSite = CallSite::here());
/// log(1 + e^(-target x)) for targets of 1 and -1, and max(0, 1 - target x).
Tensor soft_margin_loss(const Tensor& x, const Tensor& target,
                        Reduction reduction = Reduction::Mean, CallSite = CallSite::here());
Tensor hinge_loss(const Tensor& x, const Tensor& target, Reduction reduction = Reduction::Mean,
                  CallSite = CallSite::here());
/// (x - target)^2 / var + log var, both halved, plus log(2 pi) / 2 with `full`; var is at least
/// eps.
Tensor gaussian_nll_loss(const Tensor& x, const Tensor& target, const Tensor& var,
                         bool full = false, double eps = 1e-6,
                         Reduction reduction = Reduction::Mean, CallSite = CallSite::here());
/// e^x - target x, or x - target log(x + eps) where x is no logarithm.
Tensor poisson_nll_loss(const Tensor& x, const Tensor& target, bool log_input = true,
                        double eps = 1e-8, Reduction reduction = Reduction::Mean,
                        CallSite = CallSite::here());
/// x y / max(|x| |y|, eps) along axis; shapes broadcast. No loss, but the base of some.
Tensor cosine_similarity(const Tensor& x, const Tensor& other, int64_t axis = 1, double eps = 1e-8,
                         CallSite = CallSite::here());
/// 1 - cosine for targets of 1, max(0, cosine - margin) for -1: x and other (n, d), target (n).
Tensor cosine_embedding_loss(const Tensor& x, const Tensor& other, const Tensor& target,
                             double margin = 0, Reduction reduction = Reduction::Mean,
                             CallSite = CallSite::here());
/// max(0, |x - positive|_p - |x - negative|_p + margin), rows (n, d).
Tensor triplet_margin_loss(const Tensor& x, const Tensor& positive, const Tensor& negative,
                           double margin = 1, double p = 2, Reduction reduction = Reduction::Mean,
                           CallSite = CallSite::here());

struct BinaryLossOptions {
  Tensor weight = {};      ///< multiplies each loss; broadcasts
  Tensor pos_weight = {};  ///< multiplies the part of the positive class; broadcasts (logits only)
  Reduction reduction = Reduction::Mean;
};
/// -target log p - (1 - target) log(1 - p), logarithms at least -100, for p = x or sigmoid(x).
Tensor binary_crossentropy(const Tensor& x, const Tensor& target, const BinaryLossOptions& options,
                           CallSite = CallSite::here());
Tensor binary_crossentropy_logits(const Tensor& x, const Tensor& target,
                                  const BinaryLossOptions& options, CallSite = CallSite::here());

struct ClassLossOptions {
  Tensor weight = {};  ///< (classes): the mean is over the weights of the targets
  std::optional<int64_t> ignore_index = -100;  ///< class number that does not count
  double label_smoothing = 0;
  Reduction reduction = Reduction::Mean;
};
/// Scores (n, classes, ...) or (classes), class numbers (n, ...) or probabilities of x's shape. A
/// class number that is none, and is not ignored, is an Error where its value is known when this is
/// called, and makes its loss NaN where it is not.
Tensor cross_entropy(const Tensor& x, const Tensor& target, const ClassLossOptions& options,
                     CallSite = CallSite::here());
/// The same of log-probabilities and class numbers.
Tensor nll_loss(const Tensor& x, const Tensor& target, const ClassLossOptions& options,
                CallSite = CallSite::here());

}  // namespace weft
