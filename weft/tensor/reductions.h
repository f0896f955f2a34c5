// Reductions and running folds besides Tensor's own. Axes, keepdim, dtypes: as in tensor.h.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft {

/// var() or std() of floats, and mean().
std::pair<Tensor, Tensor> var_mean(const Tensor& x, const Axes& axes = {}, bool keepdim = false,
                                   int64_t correction = 1, CallSite = CallSite::here());
std::pair<Tensor, Tensor> std_mean(const Tensor& x, const Axes& axes = {}, bool keepdim = false,
                                   int64_t correction = 1, CallSite = CallSite::here());
/// softmax of -x.
Tensor softmin(const Tensor& x, int64_t axis = -1, CallSite = CallSite::here());
/// x / max(|x|_p, eps), where |x|_p is (sum |x|^p)^(1/p) along axis: p = 0 counts what is not 0, p
/// = infinity is the largest. Floats.
Tensor normalize(const Tensor& x, double p = 2, int64_t axis = 1, double eps = 1e-12,
                 CallSite = CallSite::here());
/// |x|_p over axes, floats: NumPy's vector norms.
Tensor vector_norm(const Tensor& x, double p = 2, const Axes& axes = {}, bool keepdim = false,
                   CallSite = CallSite::here());
/// Whether all are isclose(): a bool of shape ().
Tensor allclose(const Tensor& x, const Operand& other, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false, CallSite = CallSite::here());

/// Values and positions.
struct ValuesAndPositions {
  Tensor values, positions;
};
/// The largest (smallest) so far along axis and its i32 position: the last one of equal ones, as in
/// PyTorch; NaN wins from its place on. Not of axes of size 0.
ValuesAndPositions cummax(const Tensor& x, int64_t axis = 0, CallSite = CallSite::here());
ValuesAndPositions cummin(const Tensor& x, int64_t axis = 0, CallSite = CallSite::here());
/// log of the running sum of exp(x) along axis; overflows for no x, -inf while all are -inf.
/// Floats.
Tensor logcumsumexp(const Tensor& x, int64_t axis = 0, CallSite = CallSite::here());

}  // namespace weft
