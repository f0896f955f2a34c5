// Work groups: which loops of a kernel the items of a group share, and what they share through
// local memory. For machines that have groups; other kernels run item by item.
#pragma once
#include <optional>

#include "weft/optimize/group_cost.h"
#include "weft/optimize/kernel_info.h"
#include "weft/optimize/loop_nest.h"
#include "weft/target/target.h"

namespace weft::optimize {

/// A sum of products left[m, k] * right[k, n] whose operands vary over all of that.
struct Product {
  NodeRef reduce, left, right;
  size_t m, n, k;  ///< ranges, by position
};
std::optional<Product> find_product(const KernelInfo& info);

/// How a kernel's groups work.
struct GroupPlan {
  enum class Kind : uint8_t {
    Items,  ///< there are no groups
    Tile,   ///< each computes a tile of a product, of whose operands it stages blocks
    Fold    ///< each computes a row: all its reductions are folded across the group
  };
  Kind kind = Kind::Items;
  ProductTile tile = {};                ///< Tile
  int64_t items = 1;                    ///< Fold: of a group
  SmallVector<size_t, 4> folded = {};   ///< Fold: the ranges that items share out, one of each
  SmallVector<size_t, 4> columns = {};  ///< reduction, and of each store that goes along the row
};

GroupPlan choose_groups(const KernelInfo& info, const Target& target);

/// The kernel with every reduction over `range` as long as the next multiple: what it folds in
/// addition is its identity. Of `product`, if that is given, each operand is 0 there.
NodeRef pad_reduction(Graph& g, const KernelInfo& info, size_t range, int64_t multiple,
                      const Product* product);

/// Binds these loops, innermost last, to the axes of the grid: the innermost to x. More loops than
/// axes are fused, outermost first; one that is longer than its axis may be is split, and its tail
/// masked. False where the machine's grid is too small.
bool bind_grid(LoopNest& nest, std::vector<LoopNest::Axis> loops, const WorkGroups& groups);

/// The loops of the plan. The kernel's reductions are padded for it.
void bind_groups(LoopNest& nest, const KernelInfo& info, const GroupPlan& plan,
                 const WorkGroups& groups);

}  // namespace weft::optimize
