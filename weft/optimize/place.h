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

/// Puts a run of iterations that share arithmetic innermost, so that it is done once for all of
/// them: a loop that cores share would do it again in every item.
void keep_runs(LoopNest& nest, const KernelInfo& info);

/// Fuses outermost loops that may run at once into one and binds it to Core; none where every loop
/// left would have a reduction computed again for each of its iterations.
void share_out(LoopNest& nest, const KernelInfo& info);

}  // namespace weft::optimize
