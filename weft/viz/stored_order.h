// StoredOrder: the nodes of a state in order, straight from a recording's bytes: what a drawing
// needs before it has any text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "weft/dtype/dtype.h"
#include "weft/graph/op.h"
#include "weft/viz/state.h"

namespace weft::viz {

/// Nodes come after their sources, numbered as a Toposort of the same roots numbers them. Nothing
/// is interned, so that a million of them take a tenth of a second.
class StoredOrder {
 public:
  StoredOrder() = default;
  /// Everything below `roots`. Errors: viz.damaged.
  StoredOrder(const NodeSource& source, std::span<const uint64_t> roots);

  size_t size() const { return numbers.size(); }
  /// Which of them the nodes of these numbers need, those included.
  std::vector<bool> below(std::span<const uint64_t> roots) const;

  std::vector<uint64_t> numbers;                ///< of node i, in its arena
  std::vector<uint32_t> begins = {0}, sources;  ///< as GraphData's
  std::vector<Op> ops;
  std::vector<DType> dtypes;
  std::vector<uint16_t> lanes;
};

}  // namespace weft::viz
