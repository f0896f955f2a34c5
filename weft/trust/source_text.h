// A program as source text: what a report shows, and what somebody else can run.
#pragma once
#include <string>

#include "weft/trust/random_graph.h"

namespace weft::trust {

/// Programs in C++ (weft/weft.h) and Python that compute the roots with the first binding's inputs
/// and print them. An Error (repro.source) where an operation is none of Tensor's.
std::string cpp_text(const RandomGraph& program);
std::string python_text(const RandomGraph& program);

}  // namespace weft::trust
