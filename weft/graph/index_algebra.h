// The normal form of index arithmetic: sorted sums of coefficient * term, with div and mod split
// exactly.
#pragma once
#include "weft/graph/graph.h"

namespace weft {

/// Normal form of an index-dtype Add, Mul, Neg, IDiv, Mod, Max, Min, or a comparison of index
/// values. Returns null where `spec` already is in normal form.
NodeRef normalise_index(Graph& g, const NodeSpec& spec);

/// Splits `index` into base + coefficient * `range` where that is exact; returns false where the
/// dependence is not affine.
struct Stride {
  NodeRef base;
  int64_t coefficient;
};
bool split_stride(Graph& g, NodeRef index, NodeRef range, Stride& out);

/// Whether what `load` reads lies in its memory whatever the mask says.
bool is_inside_anyway(NodeRef load);

/// True where two index expressions are known to differ whatever the ranges of either are.
bool never_meet(NodeRef a, NodeRef b);

/// True where `sum` is known to be `least` or more wherever the comparison `less` does not hold.
bool at_least_unless(NodeRef less, NodeRef sum, int64_t least);

/// `index` without the constant it ends with, and that constant.
struct Offset {
  NodeRef rest;
  int64_t constant;
};
Offset split_offset(Graph& g, NodeRef index);

/// The largest integer known to divide every value of `n` (0 for the constant 0).
int64_t divisor_of(NodeRef n);

}  // namespace weft
