#include "weft/optimize/optimize.h"

namespace weft {

Kernel optimize_kernel(const Kernel& kernel, const Target&, const OptimizeOptions&) {
  Kernel out{std::make_shared<Graph>(), nullptr, kernel.name};
  out.sink = out.graph->import(kernel.sink);
  return out;
}

}  // namespace weft
