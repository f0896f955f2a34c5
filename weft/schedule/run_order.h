// In which order the kernels of a plan run.
#pragma once
#include "weft/schedule/plan.h"

namespace weft {

/// Kernels in an order that keeps their dependences and little memory alive. `physical`: the
/// buffer that each buffer of the plan really is.
std::vector<int> run_order(const Planner& plan, std::span<const int> physical);

}  // namespace weft
