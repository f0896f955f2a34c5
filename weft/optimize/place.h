// The order of a kernel's loops, and which of them cores share.
#pragma once
#include "weft/optimize/loop_nest.h"

namespace weft::optimize {

/// Orders the loops of each reduction so that the longest steps through memory are outermost, but
/// those that masks depend on outside all others: lower/ leaves out what is inside them. False
/// where they are in order.
bool order_sums(LoopNest& nest, const KernelInfo& info);

/// Puts the loop over this range (a position, or -1) inside all other open ones, where no reduction
/// would be computed more often for it.
void order_loops(LoopNest& nest, const KernelInfo& info, int innermost);

/// Fuses outermost loops that may run at once into one and binds it to Core.
void share_out(LoopNest& nest, const KernelInfo& info);

}  // namespace weft::optimize
