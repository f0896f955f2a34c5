#include "weft/device/item_cost.h"

#include <algorithm>

#include "weft/base/small_vector.h"
#include "weft/graph/walks.h"

namespace weft {
namespace {

// Of an instruction on one vector register, two to four a cycle, and of one that moves it from or
// to a cache beyond the first.
constexpr double kInstructionNs = 0.1, kAccessNs = 1;
// Loops whose size only run time knows; what is guessed decides about threads, never about results.
constexpr double kGuessedTrips = 1024;
constexpr size_t kMostInSize = 64;  // nodes of a size that is worked out for each launch

double most_trips(NodeRef size) {
  const int64_t most = size->vmax;
  return most > 0 && most <= 1 << 24 ? static_cast<double>(most) : kGuessedTrips;
}

double nanoseconds(NodeRef n) {
  if (group(n->op) == OpGroup::Leaf) return 0;
  const bool moves = n->op == Op::Load || n->op == Op::Store;
  return (moves ? kAccessNs : kInstructionNs) * std::max(1.0, n->lanes * bits(n->dtype) / 512.0);
}

/// Whether data decides between no iteration and some: the long way of a function, which few
/// numbers take.
bool is_rare(NodeRef size) {
  const bool truth = size->op == Op::Cast && is_bool(size->src(0)->dtype);
  const bool chosen = size->op == Op::Where && size->src(2)->op == Op::Const;
  if (!truth && !chosen) return false;
  const Toposort nodes(size);
  return std::ranges::any_of(nodes.nodes(), [](NodeRef n) { return n->op == Op::Load; });
}

/// Whether variables alone decide about a size, and it does depend on them.
bool is_known_at_launch(NodeRef size) {
  bool varies = false;
  const Toposort nodes(size);
  for (NodeRef n : nodes) {
    if (n->op != Op::Variable && n->op != Op::Const && !is_alu(n->op)) return false;
    varies |= n->op == Op::Variable;
  }
  return varies && nodes.nodes().size() <= kMostInSize;
}

}  // namespace

std::vector<LoopCost> loop_costs(const LinearProgram& program) {
  // Of each loop around: how often what is in it runs, within `loop`.
  struct Open {
    double times;
    size_t loop;
  };
  std::vector<LoopCost> loops(1);
  std::vector<Open> open{{1, 0}};
  for (NodeRef n : program.code) {
    const Open here = open.back();
    if (n->op == Op::EndRange) {
      if (open.size() > 1) open.pop_back();
    } else if (n->op != Op::Range) {
      loops[here.loop].ns += here.times * nanoseconds(n);
    } else if (range_binding(n) == Binding::Core) {
      open.push_back(here);
    } else if (is_rare(n->src(0))) {
      open.push_back({0, here.loop});
    } else if (is_known_at_launch(n->src(0))) {
      loops.push_back({static_cast<int>(here.loop) - 1, 0, n->src(0)});
      open.push_back({here.times, loops.size() - 1});
    } else {
      open.push_back({here.times * most_trips(n->src(0)), here.loop});
    }
  }
  return loops;
}

ItemCost::ItemCost(std::span<const LoopCost> loops, std::span<const NodeRef> variables,
                   double slowness)
    : always_(loops[0].ns * slowness) {
  for (const LoopCost& l : loops.subspan(1))
    loops_.push_back({l.around, l.ns * slowness, IndexProgram(l.size, variables)});
}

double ItemCost::evaluate(std::span<const int64_t> variables) const {
  double ns = always_;
  SmallVector<double, 16> times;
  for (const Loop& l : loops_) {
    const auto trips = static_cast<double>(std::max<int64_t>(0, l.size(variables)));
    times.push_back(trips * (l.around < 0 ? 1 : times[static_cast<size_t>(l.around)]));
    ns += times.back() * l.ns;
  }
  return ns;
}

}  // namespace weft
