// Movement besides Tensor's own: grids, diagonals, padding that repeats what is there.
#pragma once

#include <optional>

#include "weft/tensor/tensor.h"

namespace weft {

enum class PadMode : uint8_t {
  Constant,   ///< with a number
  Reflect,    ///< mirrored at the border element: [c b] a b c; less than the axis
  Replicate,  ///< with the border element
  Circular,   ///< from the other end; at most the axis
};
/// (before, after) per axis; negative amounts cut, before anything is added.
Tensor pad(const Tensor& x, const std::vector<DimPair>& amounts, PadMode mode, Scalar value = 0,
           CallSite = CallSite::here());
/// Amounts as PyTorch lists them: (before, after) of the last axis, then of the one before.
std::vector<DimPair> pads_from_last(const Tensor& x, const Dims& amounts,
                                    CallSite = CallSite::here());
/// Padded at the end of each axis to these sizes (cut to them); std::nullopt keeps one.
Tensor pad_to(const Tensor& x, const std::vector<std::optional<Dim>>& sizes, Scalar value = 0,
              CallSite = CallSite::here());
Tensor shrink_to(const Tensor& x, const std::vector<std::optional<Dim>>& sizes,
                 CallSite = CallSite::here());

/// Every 1-D (or 0-D) tensor in the shape of them all: the k-th varies along axis k, or with xy the
/// first along axis 1 and the second along axis 0.
std::vector<Tensor> meshgrid(const std::vector<Tensor>& axes, bool xy = false,
                             CallSite = CallSite::here());
/// (n) to a matrix with x on the diagonal that starts at column `offset` (row -offset) and 0
/// elsewhere; of a matrix that diagonal.
Tensor diag(const Tensor& x, int64_t offset = 0, CallSite = CallSite::here());
/// x with axis `from` at place `to`, the others in their order.
Tensor movedim(const Tensor& x, int64_t from, int64_t to, CallSite = CallSite::here());
/// The slices of an axis, without it.
std::vector<Tensor> unbind(const Tensor& x, int64_t axis = 0, CallSite = CallSite::here());
/// Like chunk(), in exactly `parts` pieces of which the first are one longer; or cut at these
/// places, of which negative ones count from the end.
std::vector<Tensor> tensor_split(const Tensor& x, int64_t parts, int64_t axis = 0,
                                 CallSite = CallSite::here());
std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& places,
                                 int64_t axis = 0, CallSite = CallSite::here());
/// Turned by k quarters from the first of two axes towards the second.
Tensor rot90(const Tensor& x, int64_t k = 1, int64_t a = 0, int64_t b = 1,
             CallSite = CallSite::here());
/// Matrices (..., n, n) with the last axis on their diagonal that starts at column `offset`, 0
/// elsewhere; axes a and b of the result are the matrices'.
Tensor diag_embed(const Tensor& x, int64_t offset = 0, int64_t a = -2, int64_t b = -1,
                  CallSite = CallSite::here());
/// Matrices along the diagonal of one, 0 elsewhere; rows and numbers count as matrices.
Tensor block_diag(const std::vector<Tensor>& blocks, CallSite = CallSite::here());
/// (n) to (n, columns): powers of x from columns - 1 to 0, or from 0 if increasing.
Tensor vander(const Tensor& x, int64_t columns, bool increasing = false,
              CallSite = CallSite::here());
/// Shapes that broadcast, expanded to one: NumPy's broadcast_arrays.
std::vector<Tensor> broadcast_tensors(const std::vector<Tensor>& tensors,
                                      CallSite = CallSite::here());

}  // namespace weft
