// Blocks of operands that no cache holds, copied one at a time. pack_operands.cpp makes the copies.
#pragma once
#include "weft/schedule/plan.h"

namespace weft {

/// Of a machine with vectors; others have caches of their own.
bool is_beyond_l3(const Target& target, double bytes);

/// What a copy for a product is of: the operand, or where that is more than L3 holds, the one block
/// of it that the product reads, as those of a long sum do. Then the copy is still in a cache when
/// it is read, and the copies of all blocks need the memory of one. `at` becomes the place in that.
NodeRef block_read(Planner& plan, const ProductOperand& o, Access& at);

/// The product reads the block's copy at this place.
void read_block(Planner& plan, const ProductOperand& o, NodeRef copy, Access at);

}  // namespace weft
