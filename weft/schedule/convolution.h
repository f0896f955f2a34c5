// Sums of products that are convolutions, found in the graph.
#pragma once
#include "weft/graph/graph.h"

namespace weft {

/// How windows lie along an axis of an image.
struct Taps {
  int64_t count = 1, stride = 1, dilation = 1;
  bool operator==(const Taps&) const = default;
};

/// What is convolved: sizes of the result, and of the image in front of the windows.
struct Convolution {
  NodeRef image = nullptr;   // (images, in, rows, columns), zeros around it included
  NodeRef weight = nullptr;  // (out, in, taps of rows, of columns)
  int64_t images = 0, in = 0, out = 0, rows = 0, columns = 0;
  Taps down = {}, along = {};
};

/// Whether `sum` is one of two axes, without groups, in f32, as conv2d writes it.
bool find_convolution(Graph& g, NodeRef sum, Convolution& out);

}  // namespace weft
