// Lowering: a kernel as a graph of loops becomes a linear program, a list of instructions in
// execution order.
#pragma once
#include <optional>

#include "weft/graph/program.h"
#include "weft/lower/analysis.h"
#include "weft/rewrite/pass.h"
#include "weft/rewrite/rule_set.h"

namespace weft {

struct Target;

namespace lower {

/// A kernel on its way to a linear program.
struct State {
  const Kernel& kernel;  ///< as it was given
  const Target& target;
  Graph& graph = *kernel.graph;  ///< nobody else's
  NodeRef sink = kernel.sink;
  LinearProgram program = {};          ///< empty until there is an order
  AccessBounds bounds = {};            ///< once accesses are guarded
  std::optional<Analysis> found = {};  ///< of the sink that was last asked about

  /// Of the sink.
  Analysis& analysis();
  std::string_view name() const { return kernel.name; }
  PassView view() const;
  std::string text() const;
  StateParts parts() const;
};

}  // namespace lower

/// The steps of lowering, in order.
std::span<const Pass<lower::State>> lower_passes();

/// The catalogue of this room's rules.
std::vector<RuleSetRow> lower_rule_sets();

/// The linear program of `kernel` for `target`, in the form docs/design/ir.md section 3 pins down.
/// The program's graph holds only what the program uses. The kernel's is copied: several targets
/// may be lowered at once. Throws InternalError where the kernel is not what section 2 allows.
LinearProgram lower_kernel(const Kernel& kernel, const Target& target);
/// The same in the kernel's own graph, which nobody else may use meanwhile and which keeps what the
/// steps make.
LinearProgram lower_in_place(const Kernel& kernel, const Target& target);

}  // namespace weft
