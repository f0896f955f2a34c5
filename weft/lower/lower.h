// Lowering: a kernel as a graph of loops becomes a linear program, a list of instructions in
// execution order.
#pragma once
#include "weft/graph/program.h"
#include "weft/rewrite/pass.h"
#include "weft/rewrite/rule_set.h"

namespace weft {

struct Target;

namespace lower {

/// A kernel on its way to a linear program.
struct State {
  const Kernel& kernel;  ///< as it was given
  const Target& target;
  Graph graph{};
  NodeRef sink = nullptr;
  LinearProgram program = {};  ///< empty until there is an order

  std::string_view name() const { return kernel.name; }
  PassView view() const;
  std::string text() const;
};

}  // namespace lower

/// The steps of lowering, in order.
std::span<const Pass<lower::State>> lower_passes();

/// The catalogue of this room's rules.
std::vector<RuleSetRow> lower_rule_sets();

/// The linear program of `kernel` for `target`, in the form docs/design/ir.md section 3 pins down.
/// The kernel is not changed: its graph is copied, and the program's graph holds only what the
/// program uses, so several targets may be lowered at once. Throws InternalError where the kernel
/// is not what section 2 allows.
LinearProgram lower_kernel(const Kernel& kernel, const Target& target);

}  // namespace weft
