// What one block of rows of an attention gives, as a graph.
#pragma once
#include "weft/schedule/row_cone.h"
#include "weft/target/target.h"

namespace weft {

/// Rows that are computed alike: `count` blocks of each head; how many elements of a row lie
/// together in what products walk down; the tiles that multiply bf16 as it is, if there are any.
/// Where a variable says how many rows there are, blocks that are not all there have none, and the
/// last one, whose begin is not a number, has what is left.
struct Blocks {
  NodeRef begin;
  int64_t rows, count, panel;
  const MatrixUnit* tiles = nullptr;

  bool is_last() const { return begin->op != Op::Const; }
};

/// Which head and block of it a round is of, and what its body reads: params from `slot` on.
struct BlockPlace {
  NodeRef head, block;
  int64_t slot;
  std::vector<NodeRef>& inputs;
};

/// Of each product the block's rows, or its part of sums over all rows; none where an index is not
/// affine.
std::vector<NodeRef> block_results(Graph& g, const RowCone& cone, const Blocks& blocks,
                                   const BlockPlace& place);

}  // namespace weft
