// Building nodes with lanes, and the arithmetic of folds.
#pragma once
#include "weft/graph/graph.h"

namespace weft {

struct Target;

namespace lower {

/// `n` with this many equal lanes; `n` itself when it has them already.
NodeRef splat(Graph& g, NodeRef n, uint16_t lanes);
/// Lane k of a vector.
NodeRef lane(Graph& g, NodeRef n, size_t k);
/// The vector of these scalars; the scalar where there is one.
NodeRef vec(Graph& g, std::span<const NodeRef> scalars);
/// Transposed in place, in squares of as many lanes as there are vectors, a power of two: vector j
/// then has, in its block of lanes b, lane b * n + j of each (Eklundh, "A Fast Computer Method for
/// Matrix Transposing", 1972: a step for every power of two below n).
void transpose_blocks(Graph& g, std::span<NodeRef> vectors);
/// An elementwise op, with scalar operands splat where others have lanes.
NodeRef elementwise(Graph& g, Op op, DType dtype, std::span<const NodeRef> src);

/// True where fold(a*b, c) may be one fused operation on the target: reductions are free to
/// contract.
bool may_contract(const Target& target, Fold fold, NodeRef value);
/// fold(so_far, value); fused where `contract`.
NodeRef fold_in(Graph& g, Fold fold, NodeRef so_far, NodeRef value, bool contract);
/// All values folded: products one after the other so that they fuse, anything else as a balanced
/// tree.
NodeRef fold_all(Graph& g, const Target& target, Fold fold, std::span<const NodeRef> values);
/// The lanes of a vector folded: k with k + n/2, then the halves again.
NodeRef fold_lanes(Graph& g, Fold fold, NodeRef vector);

}  // namespace lower
}  // namespace weft
