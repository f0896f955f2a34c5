// Makes a failing program small: fewer nodes, smaller sizes, simpler numbers.
#pragma once
#include <cstdint>
#include <functional>

#include "weft/trust/random_graph.h"

namespace weft::trust {

using Fails = std::function<bool(const RandomGraph&)>;

struct ReduceLimits {
  int64_t runs = 4000;  ///< of `fails`
  double seconds = 120;
};

/// A program for which `fails` is still true, and of which nothing more can be left out: outputs,
/// nodes (bypassed, or params with their values), bindings, variables; then sizes, the elements of
/// params and constants are made smaller. Stops at the limits with what it has. `graph` holds
/// `program`'s nodes and all candidates'.
RandomGraph reduce(Graph& graph, const RandomGraph& program, const Fails& fails,
                   const ReduceLimits& limits = {});

}  // namespace weft::trust
