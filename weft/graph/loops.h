// Reduce, Scan and Loop as parts: the one place that knows how their sources and integers lie.
#pragma once
#include <span>

#include "weft/graph/node.h"

namespace weft {

/// A lowered kernel's Barrier runs its stores in loops of its own, as a Reduce folds its value.
constexpr bool is_loop_op(Op op) {
  return op == Op::Reduce || op == Op::Scan || op == Op::Loop || op == Op::Barrier;
}

/// What a Reduce, Scan or Loop is made of. In kernels and after it goes over ranges, in tensor
/// graphs over axes (loop_axes).
struct LoopParts {
  std::span<const NodeRef> elements;  ///< of a tensor graph's Loop: what bodies see as elem(k)
  std::span<const NodeRef> inits;     ///< of a Loop
  std::span<const NodeRef> values;    ///< the folded values, the bodies of a Loop, or stores
  std::span<const NodeRef> ranges;
  bool open = false;  ///< every step is seen from outside: users run inside of the ranges
  /// The ranges whose loops end with the node.
  std::span<const NodeRef> closed() const { return open ? std::span<const NodeRef>() : ranges; }
};
LoopParts loop_parts(NodeRef n);

/// Every step is seen from outside, and so the ranges stay open: Scan, and Loop where it says so.
bool is_running(NodeRef n);
/// The ranges that `n` goes over, and those whose loops end with it; none where it is no loop.
std::span<const NodeRef> listed_ranges(NodeRef n);
std::span<const NodeRef> reduction_ranges(NodeRef n);
/// The axes of a tensor graph's Reduce, Scan or Loop.
std::span<const int64_t> loop_axes(NodeRef n);

/// A kernel's Reduce may fold several values per iteration, in order (made by unrolling): ints are
/// [fold, values].
size_t reduced_values(NodeRef reduce);

}  // namespace weft
