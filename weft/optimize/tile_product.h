// Sums of products of words by a matrix unit whose operands are tiles.
#pragma once
#include <optional>

#include "weft/optimize/kernel_info.h"
#include "weft/optimize/loop_nest.h"
#include "weft/target/target.h"

namespace weft::optimize {

/// A sum of products rows[m, k] * columns[k, n] of words, rows lying along k and columns along n.
/// Ranges by position.
struct TileProduct {
  size_t m, n, k;
  size_t around_n;  ///< walks from tile to tile along n: n itself, or the range outside of it
  int64_t tile;     ///< rows and columns of one
  int64_t each;     ///< tiles of the sum along m and n that are summed together
  bool all_columns = false;  ///< there are no more along n, and the last one overlaps
};
/// Null where the kernel is none, or the target has no such unit.
std::optional<TileProduct> find_tile_product(const KernelInfo& info, const Target& target);

/// Binds what tiles cover, and how many of them are summed together.
void cut_tiles(LoopNest& nest, const KernelInfo& info, const TileProduct& product);

}  // namespace weft::optimize
