// Kernel and LinearProgram: the two forms of a kernel that stages hand to each other.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// From this source on a store names ranges: it happens once for each of their values, whether or
/// not index, value and mask (which is there, if only as true) vary with them.
constexpr size_t kStoreRanges = 4;
/// Whether a store that happens twice leaves something else than once.
constexpr bool counts_repeats(Fold combine) { return combine == Fold::Add || combine == Fold::Mul; }

/// A kernel as a graph: sink(store...) over ranges, params and variables. Those of one schedule
/// live in its Graph; whoever changes one copies it into a private Graph first.
struct Kernel {
  std::shared_ptr<Graph> graph;  ///< owns every node of the kernel
  NodeRef sink = nullptr;
  std::string name;  ///< readable and stable, e.g. "reduce_512_64"; never from user input
};

/// In a graph of its own.
Kernel copy_of(const Kernel& kernel);

/// One argument of a linear program.
struct ProgramParam {
  DType dtype;
  bool read = false;
  bool written = false;
};

/// How many work items a program is launched over: a grid of groups of items, along each axis.
struct Launch {
  std::array<NodeRef, 3> grid{};  ///< expressions over variables; null = 1
  std::array<int64_t, 3> group{1, 1, 1};
  bool grouped = false;  ///< false: one after the other, over the core range
  int64_t items() const { return group[0] * group[1] * group[2]; }
};

/// Accesses of a kernel as it was optimized, which may each become many.
struct AccessBounds {
  int64_t proved = 0;  ///< in range whatever is in memory
  int64_t tested = 0;  ///< kept in range by a test that lowering added
};

/// A kernel as a list of instructions in execution order. Loops are Range ... EndRange; the range
/// bound to Binding::Core, when there is one, is the first instruction that is not a leaf and runs
/// over [begin, end) given at launch. A program of groups has no such range: it says what one item
/// does, WorkId which item that is.
struct LinearProgram {
  std::shared_ptr<Graph> graph;
  std::vector<NodeRef> code;
  std::vector<ProgramParam> params;  ///< by slot
  std::vector<NodeRef> variables;    ///< Op::Variable nodes, in order of name; passed as int64
  NodeRef core_size =
      nullptr;  ///< number of items of the core range (expression over variables); null = 1
  Launch launch;
  AccessBounds bounds = {};
  std::string name;
  double flops = 0;  ///< arithmetic operations, where sizes are static
  double bytes = 0;  ///< bytes of distinct buffer elements touched, where sizes are static
};

}  // namespace weft
