// What a node's sources say about it: shape, device, bounds. Computed once, at construction.
#pragma once
#include "weft/graph/graph.h"

namespace weft {

struct Inferred {
  const Shape* shape;
  DeviceId device;
  int64_t vmin, vmax;
};

/// Shape, device and bounds of the node `spec` describes. Throws InternalError where the sources do
/// not fit the op: user errors are reported by the layer that builds, before this.
Inferred infer(Graph& g, const NodeSpec& spec);

/// Inclusive bounds.
struct Bounds {
  int64_t min, max;
};
/// Bounds of an elementwise op over integers from its sources' bounds; saturating.
Bounds alu_bounds(const NodeSpec& spec);
/// The whole range of a dtype as int64 (unsigned 64 and index are clamped to int64's range).
Bounds dtype_bounds(DType dtype);

}  // namespace weft
