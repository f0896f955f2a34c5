// The parts of kernel building: expressions from uses, closed forms of reductions, canonical
// form.
#pragma once
#include "weft/base/function_ref.h"
#include "weft/schedule/plan.h"

namespace weft {

/// One sink per kernel of the plan; params carry buffer indices as slots.
std::vector<NodeRef> build_sinks(Planner& plan);

/// reduce(src[0], src[1..]) in its best closed form: sums of sums merge, a sum over r of (r == e ?
/// f(r) : 0) is f(e).
NodeRef build_reduce(Graph& g, Fold fold, std::span<const NodeRef> src);

/// A kernel's sink with ranges renumbered in nest order and slots in order of first use, so that
/// equal kernels are one node. `slots` gets the buffer of each slot.
NodeRef number_kernel(const Planner& plan, const KernelPlan& kernel, NodeRef sink,
                      std::vector<int>& slots);

/// Of every node a hash that knows only the integers that `ints_of` says, and not the order of
/// operands that may change places: what params are called, say, it need not.
using IntsOf = FunctionRef<std::span<const int64_t>(NodeRef)>;
NodeMap<uint64_t> nameless_hashes(std::span<const NodeRef> order, IntsOf ints_of);
/// In the order in which a walk from the sink meets them. Operands that may change places, whose
/// order in the node knows names, are walked in one that is the same for equal kernels.
std::vector<NodeRef> leaves_met(NodeRef sink, const NodeMap<uint64_t>& hashes,
                                FunctionRef<bool(NodeRef)> is_leaf);

/// Whether a plan writes so many parts of buffers that kernels which differ only in where should be
/// one.
bool has_many_parts(const Planner& plan);

/// A numbered kernel whose accesses begin at variables; `fixed` gets the values they have here.
NodeRef lift_offsets(Graph& g, NodeRef sink, std::vector<ScheduleStep::Fixed>& fixed);

/// Kernels that are one but for numbers become one, whose variables have other values in every
/// step.
void share_kernels(Graph& g, Schedule& s);

/// A numbered kernel in its simplest form. `slots` gets the old slot of each new one.
NodeRef simplify_kernel(Graph& g, NodeRef sink, std::vector<int>& slots);

/// The same kernel with every masked access in its simplest form.
NodeRef simplify_masks(Graph& g, NodeRef sink);

/// A readable name from the structure, e.g. "reduce_64_10_576".
std::string kernel_name(NodeRef sink);

}  // namespace weft
