// Convolutions, and gradients of their images that are convolutions, too, as they stand in a graph;
// and the ways to have them for less than a sum over windows.
#pragma once
#include <optional>

#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"

namespace weft {

class ConstantValues;
struct Target;

/// How windows lie along an axis of an image.
struct Taps {
  int64_t count = 1, stride = 1, dilation = 1;
  bool operator==(const Taps&) const = default;
  int64_t reach() const { return (count - 1) * dilation; }
};

/// What is convolved: sizes of the result, and of the image in front of the windows. Planes are
/// there where three axes are convolved.
struct Convolution {
  NodeRef image = nullptr;   // (images, in, [planes,] rows, columns), zeros around it included
  NodeRef weight = nullptr;  // (out, in, [taps of planes,] of rows, of columns)
  int64_t images = 0, in = 0, out = 0, planes = 1, rows = 1, columns = 0;
  Taps across = {}, down = {}, along = {};
  bool is_spaced = false;  // zeros lie between the image's elements
  bool has_planes() const { return image->rank() == 5; }
};

/// Its windows along an axis.
NodeRef window(Graph& g, NodeRef x, int64_t axis, const Taps& taps);

/// By tiles that multiply bf16 (tile_convolutions.cpp), in the shape of `like`; null where there
/// are none, or they would be mostly zeros.
NodeRef by_tiles(Graph& g, const Convolution& c, NodeRef like, const Target& target);
/// The gradient of its weights by those (tile_gradients.cpp); `c.weight` is what comes from above,
/// (images, out, [planes,] rows, columns).
NodeRef weight_gradient_by_tiles(Graph& g, const Convolution& c, NodeRef like,
                                 const Target& target);
/// Of bf16 with planes, if only one; none where image and weight are not conversions of bf16.
std::optional<Convolution> of_bf16_planes(Graph& g, const Convolution& c);
/// Of 3 x 3 taps in half the products (winograd.cpp); null where it is something else, or
/// transforming costs more.
NodeRef by_winograd(Graph& g, const Convolution& c, NodeRef like, const Target& target,
                    const ConstantValues& constants);

/// Sums that an Unwindow spreads over an image: products of what comes from above with weights. By
/// themselves they would be written for every tap; with it they are one sum.
NodeMap<bool> spread_sums(const Toposort& order);

}  // namespace weft
