// What products by a matrix unit's tiles read: one operand's rows along the sum, the other one's
// columns. pack_operands.cpp puts them in order.
#pragma once
#include <vector>

#include "weft/schedule/plan.h"

namespace weft {

/// Kernels whose products are of words that the target has tiles for.
std::vector<size_t> kernels_by_tiles(const Planner& plan);

/// What sums read, by kernel, without what was written for tiles in orders of its own: one operand
/// along a sum, the other along an output that the first does not have.
std::vector<std::vector<ProductOperand>> operands_to_order(const Planner& plan);

/// The range that the operand's kernel sums over, the first one; null where there is none.
NodeRef summed_range(const Planner& plan, const ProductOperand& o);

/// Whether the sum walks down the operand's rows, one after the other.
bool is_read_down(const Planner& plan, const ProductOperand& o);

/// The first of so many axes along which all that `made` is made of lies; else -1.
int comes_along(const Planner& plan, NodeRef made, size_t axes);

/// The order of axes in which `axis` is the innermost one, and all others come as they are.
std::vector<size_t> with_innermost(NodeRef n, int axis);
/// That in which the axes of the sum come behind those of the outputs.
std::vector<size_t> sums_innermost(const Planner& plan, const ProductOperand& o);

/// Words that would be stored along the sum, but are made of what lies along an output axis, lie
/// as that does: what they are made of is loaded in vectors then, and a copy turns them in
/// registers. 1536 x 1536 words of a matrix of 3072 x 1536: 14 to 45 ms, and 1.2.
void store_as_read(Planner& plan, const ProductOperand& o);

}  // namespace weft
