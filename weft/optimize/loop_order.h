// The order of a kernel's loops, and which of them cores share.
#pragma once
#include "weft/optimize/loop_nest.h"

namespace weft::optimize {

/// Puts parallel loops that more reductions depend on outside of others, so that none is computed
/// again in a loop it has no part in. False where they are in order.
bool hoist_reductions(LoopNest& nest, const KernelInfo& info);

/// Orders the loops of each reduction: outermost those that expensive arithmetic depends on alone,
/// which is then done once for all iterations inside; then those that masks depend on, as lower/
/// leaves out what is inside them; then the longest steps through memory. False where they are in
/// order.
bool order_sums(LoopNest& nest, const KernelInfo& info);

/// Puts the loop over this range (a position, or -1) inside all other parallel ones, where no
/// reduction would be computed more often for it; and inside of it those that read the rest of its
/// lines.
void order_loops(LoopNest& nest, const KernelInfo& info, int innermost);

/// Where the innermost parallel loop streams more bytes past its tiles than `most`, in every
/// iteration of the loop around it, it runs in blocks that stay in a cache, outside of that loop.
/// False where it does not, or cannot.
bool block_stream(LoopNest& nest, const KernelInfo& info, int innermost, double most);

/// Puts a run of iterations that share arithmetic innermost, so that it is done once for all of
/// them: a loop that cores share would do it again in every item.
void keep_runs(LoopNest& nest, const KernelInfo& info, int64_t enough_items);

/// Of a copy whose neighbours go to other pages, as rows that are laid out in panels do: some rows
/// at once, innermost, whose stores follow each other, and some lines of each row.
void keep_stores_near(LoopNest& nest, const KernelInfo& info);

/// Fuses outermost loops that may run at once into one, up to enough items (Target::enough_items),
/// and binds it to Core; none where every loop left would have a reduction computed again for each
/// of its iterations. `in_runs`: of loops of single elements, the last one keeps a part inside of
/// an item: to take an item's number apart takes longer than an element.
void share_out(LoopNest& nest, const KernelInfo& info, int64_t enough_items, bool in_runs);

}  // namespace weft::optimize
