// Pools besides Tensor::max_pool2d and avg_pool2d, for any number of spatial axes (as many as the
// kernel or the output sizes list).
#pragma once

#include "weft/tensor/reductions.h"

namespace weft {

/// max_pool2d, and where each maximum was: i32 in the flat spatial axes, without padding; the first
/// of equal ones, NaN wins. What max_unpool2d takes.
ValuesAndPositions max_pool2d_with_positions(const Tensor& x, const Ints& kernel = {2, 2},
                                             const PoolOptions& options = {},
                                             CallSite = CallSite::here());
/// Values back at their positions, 0 elsewhere. Without output sizes the spatial axes are as long
/// as kernel, stride and padding say: (n - 1) * stride - 2 * padding + kernel.
Tensor max_unpool2d(const Tensor& x, const Tensor& positions, const Ints& kernel = {2, 2},
                    const PoolOptions& options = {}, const Ints& output_sizes = {},
                    CallSite = CallSite::here());
/// Pools to these sizes: output i of o covers [floor(i n / o), ceil((i + 1) n / o)).
Tensor adaptive_avg_pool(const Tensor& x, const Ints& sizes, CallSite = CallSite::here());
Tensor adaptive_max_pool(const Tensor& x, const Ints& sizes, CallSite = CallSite::here());
/// (sum over the window of x^p)^(1/p); floats.
Tensor lp_pool2d(const Tensor& x, double p, const Ints& kernel = {2, 2},
                 const PoolOptions& options = {}, CallSite = CallSite::here());

}  // namespace weft
