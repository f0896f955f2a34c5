// How the operands of a product are read.
#pragma once
#include <vector>

#include "weft/schedule/index_map.h"

namespace weft {

struct Target;

/// What is read for a value: what its movement ops move.
NodeRef moved(NodeRef n);
/// What `full` is a conversion of, moved as it is; null where there is no such thing, or it would
/// be more than `most` times what is given.
NodeRef narrow_values(Graph& g, NodeRef full, double most = 2);

/// How a value is read, element by element: a range for each of its axes, and where that is in what
/// movement ops move, and casts convert, as it is read.
struct Reading {
  NodeRef of;
  std::vector<NodeRef> along;
  Access at;

  Reading(Graph& g, NodeRef x);
  /// Whether neighbours along `axis` are neighbours in memory.
  bool lies_along(Graph& g, size_t axis) const;
  /// How many elements are read, each perhaps more than once.
  double elements() const;
};

/// Of an operand of a product that is summed along `axis`: whether that walks down its rows, which
/// lie along another axis and are long.
bool walks_down_rows(Graph& g, const Reading& operand, size_t axis);

/// Whether a tile of a product has many sums, which takes many registers; one order of sums, which
/// every machine takes, is of such tiles.
bool makes_large_tiles(const Target& target);

}  // namespace weft
