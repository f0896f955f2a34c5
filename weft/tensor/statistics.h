// Statistics: order statistics, counts, what leaves NaN out, covariances. Axes, keepdim, dtypes: as
// in tensor.h.
#pragma once

#include "weft/tensor/reductions.h"

namespace weft {

/// Sums and means of what is no NaN; a mean of nothing is NaN.
Tensor nansum(const Tensor& x, const Axes& axes = {}, bool keepdim = false,
              CallSite = CallSite::here());
Tensor nanmean(const Tensor& x, const Axes& axes = {}, bool keepdim = false,
               CallSite = CallSite::here());
/// How many elements are not 0.
Tensor count_nonzero(const Tensor& x, const Axes& axes = {}, CallSite = CallSite::here());

/// The element in the middle of the sorted axis, the lower one of two, and its i32 position; NaN
/// where there is one, or (nanmedian) of what is no NaN.
ValuesAndPositions median(const Tensor& x, int64_t axis = -1, bool keepdim = false,
                          CallSite = CallSite::here());
ValuesAndPositions nanmedian(const Tensor& x, int64_t axis = -1, bool keepdim = false,
                             CallSite = CallSite::here());
/// The k-th smallest, k from 1, and its position; NaN counts as the largest.
ValuesAndPositions kthvalue(const Tensor& x, int64_t k, int64_t axis = -1, bool keepdim = false,
                            CallSite = CallSite::here());
/// The most frequent element, the smallest one of several, and its last position.
ValuesAndPositions mode(const Tensor& x, int64_t axis = -1, bool keepdim = false,
                        CallSite = CallSite::here());

/// What to do with a place between two elements: between them, the one below, above, nearer (even
/// of two), or their middle.
enum class Interpolation : uint8_t { Linear, Lower, Higher, Nearest, Midpoint };
/// The value that a share q of the elements is below, at place q (n - 1) of the sorted axis
/// (Hyndman and Fan 1996, 7): floats, NaN where there is one. q is () or (m), within [0, 1]; its
/// axis comes first. nanquantile is of what is no NaN.
Tensor quantile(const Tensor& x, const Tensor& q, int64_t axis = -1, bool keepdim = false,
                Interpolation between = Interpolation::Linear, CallSite = CallSite::here());
Tensor nanquantile(const Tensor& x, const Tensor& q, int64_t axis = -1, bool keepdim = false,
                   Interpolation between = Interpolation::Linear, CallSite = CallSite::here());

/// Of 1-D integers that are not negative: how often each occurs, i32, or the sum of the weights of
/// its places; at least `least` numbers. Without a size their number is read back once, and what is
/// negative is an Error; with one it is what is given, and what is outside does not count.
Tensor bincount(const Tensor& x, const Tensor& weights = {}, int64_t least = 0,
                std::optional<int64_t> size = {}, CallSite = CallSite::here());
/// How many elements are in each of `bins` equal parts of [low, high], in x's dtype; of the range
/// of x where both are equal. What is outside does not count.
Tensor histc(const Tensor& x, int64_t bins = 100, double low = 0, double high = 0,
             CallSite = CallSite::here());

/// Covariances (n, n) of variables (n, observations), sums divided by observations - correction;
/// of one variable (observations) its variance. corrcoef divides by the standard deviations.
Tensor cov(const Tensor& x, int64_t correction = 1, CallSite = CallSite::here());
Tensor corrcoef(const Tensor& x, CallSite = CallSite::here());
/// Differences of neighbours along axis, n times; of bools whether they differ.
Tensor diff(const Tensor& x, int64_t n = 1, int64_t axis = -1, CallSite = CallSite::here());
/// The area under y by trapezoids, dx apart.
Tensor trapezoid(const Tensor& y, double dx = 1, int64_t axis = -1, CallSite = CallSite::here());

}  // namespace weft
