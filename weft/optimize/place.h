// The order of a kernel's loops, and which of them cores share.
#pragma once
#include "weft/optimize/cost.h"
#include "weft/optimize/loop_nest.h"

namespace weft::optimize {

/// Puts innermost the open loop whose iterations share most of what the tile reads.
void order_loops(LoopNest& nest, const KernelInfo& info, const Tiling& tiling);

/// Fuses outermost loops that may run at once into one and binds it to Core.
void share_out(LoopNest& nest, const KernelInfo& info);

}  // namespace weft::optimize
