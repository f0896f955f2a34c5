// Chains of plane rotations, each of which turns two neighbours, and where matrices with nothing
// beside their diagonals fall apart: what iterations towards eigenvalues and singular values share.
#pragma once

#include "weft/base/function_ref.h"
#include "weft/tensor/transforms.h"

namespace weft::linalg {

/// A fold along an axis of tensors that broadcast: what is carried begins as 0 and becomes what the
/// body makes of one element of each and of itself. All that was carried, at every place.
Tensors folded_along(const Tensors& elems, size_t carries, int64_t axis,
                     FunctionRef<Tensors(const Tensors& elems, const Tensors& carried)> body);

/// What turns (x, z) to (length, 0): c x + s z and c z - s x; none where it is not `on`,
/// and where both are negligible.
struct Rotation {
  Tensor c, s, length;
};
Rotation rotation_of(const Tensor& x, const Tensor& z, const Tensor& on);

/// Rows i and i + 1 of x (..., n, columns) turned by c[i] and s[i] (..., n), one pair after the
/// other. The last of c is 1, of s 0.
Tensor turned_rows(const Tensor& x, const Tensor& c, const Tensor& s);

/// Where rows i and i + 1 are linked, if off[i] is not 0 (..., n): the first and the last row of
/// the last such chain, i32 (..., 1); both 0 where there is none.
struct Chain {
  Tensor first, last;
};
Chain last_chain(const Tensor& off);

/// (..., 1): x[at] of x (..., n).
Tensor element(const Tensor& x, const Tensor& at);
/// x[i + 1] along an axis; 0 at its end.
Tensor next_along(const Tensor& x, int64_t axis = -1);
/// 0, 1, ... along the last axis.
Tensor places(const Tensor& x);
/// Whether these are 0, in memory: a scan computes it once, not in every step.
Tensor starts(const Tensor& x);

}  // namespace weft::linalg
