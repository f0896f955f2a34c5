// Results that take the memory of what their kernel reads.
#pragma once
#include "weft/schedule/plan.h"

namespace weft {

/// Whether the kernel reads an old value only in the iteration that overwrites it. An output that
/// has not all of the kernel's ranges (a number beside a matrix) is written in several.
bool reads_same_place_only(const KernelPlan& kernel, NodeRef sink, NodeRef old_param,
                           NodeRef new_param);

/// Large intermediates lie where the one lay that their kernel is the last to read, of those that
/// it reads at the place it writes alone: `order` is that of the kernels, `physical` the buffer
/// that each of the plan's really is.
void write_in_place(Planner& plan, std::span<const NodeRef> sinks, std::span<const int> order,
                    std::vector<int>& physical);

}  // namespace weft
