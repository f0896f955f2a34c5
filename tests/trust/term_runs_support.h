// What tensor graphs, kernels and linear programs compute, with terms for what their inputs hold:
// slow, and written from docs/design/ir.md. They throw Unsupported where they do not know an op or
// would take too long.
#pragma once
#include <map>

#include "tests/trust/terms_support.h"
#include "weft/graph/program.h"
#include "weft/trust/kernel_eval.h"

namespace weft::test {

using trust::Variables;

/// What all of them may take together.
struct Steps {
  int64_t left = 200'000;
  void take() {
    if (--left < 0) throw Unsupported{"it takes too many steps"};
  }
};

/// Elements of the roots, row-major. `params`: by slot.
TermMemory run_graph(TermAlgebra& algebra, std::span<const NodeRef> roots, const TermMemory& params,
                     const Variables& variables, Steps& steps);
/// The memory that the kernel leaves.
TermMemory run_kernel(TermAlgebra& algebra, NodeRef sink, const TermMemory& memory,
                      const Variables& variables, Steps& steps);
TermMemory run_program(TermAlgebra& algebra, const LinearProgram& program, const TermMemory& memory,
                       const Variables& variables, Steps& steps);

// ---- what kernels and programs share

using Lanes = std::vector<Term>;

/// A load's lanes from `at` on, each a word of elements where it is wider than they are.
Lanes load_lanes(TermAlgebra& algebra, NodeRef load, const std::vector<Term>& memory,
                 const Term& at, const Lanes& mask);
void store_lanes(TermAlgebra& algebra, std::vector<Term>& memory, const Term& at,
                 const Lanes& values, const Lanes& mask, const Term& condition);
/// An op that does the same in every lane, or that moves lanes about.
Lanes apply_lanes(TermAlgebra& algebra, NodeRef n, std::span<const Lanes> operands);

}  // namespace weft::test
