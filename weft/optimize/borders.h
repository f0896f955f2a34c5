// Borders of what a mask reads part of: copying an image with zeros around it is copying rows, and
// writing what lies around them. And of rows that are written in order, which no vectors divide.
#pragma once
#include <optional>

#include "weft/graph/graph.h"
#include "weft/optimize/kernel_info.h"

namespace weft {
struct Target;
}

namespace weft::optimize {

/// A range outside of whose iterations [first, last) no masked load reads anything, or that whole
/// vectors of stores in order fill so far.
struct Borders {
  size_t range;
  int64_t first, last;
};
std::optional<Borders> find_borders(const KernelInfo& info, const Target& target, Graph& g);

/// The kernel with the stores along the range once for what is inside, whose loads lose their masks
/// there, and once for each border. They store to different places.
NodeRef peel_borders(Graph& g, const KernelInfo& info, const Borders& borders);

}  // namespace weft::optimize
