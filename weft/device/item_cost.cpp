#include "weft/device/item_cost.h"

#include <algorithm>

#include "weft/base/small_vector.h"
#include "weft/graph/walks.h"
#include "weft/target/machine.h"

namespace weft {
namespace {

// Of an instruction on one vector register, two to four a cycle, and of one that moves it from or
// to the first cache meanwhile.
constexpr double kInstructionNs = 0.1, kAccessNs = 0.15;
constexpr double kOfDivision = 30;  // quotients and roots take as long as so many instructions
// What a line takes besides once in a kernel, out of the second cache where that may hold all.
constexpr double kLineNs = 1, kNearLineNs = 0.25;
constexpr double kNearBytes = 512 << 10;
// Loops whose size only run time knows; what is guessed decides about threads, never about results.
constexpr double kGuessedTrips = 1024;
constexpr size_t kMostInSize = 64;  // nodes of a size that is worked out for each launch

double most_trips(NodeRef size) {
  const int64_t most = size->vmax;
  return most > 0 && most <= 1 << 24 ? static_cast<double>(most) : kGuessedTrips;
}

double registers(NodeRef n) { return std::max(1.0, n->lanes * bits(n->dtype) / 512.0); }

/// As so many instructions.
double instructions_of(NodeRef n) {
  if (group(n->op) == OpGroup::Leaf) return 0;
  const bool divides = n->op == Op::Div || n->op == Op::Sqrt;
  if (n->op == Op::CDiv || n->op == Op::CMod) return kOfDivision * n->lanes;
  return divides ? kOfDivision * registers(n) : registers(n);
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

/// Of what is in a loop, but in none inside of it.
struct Counts {
  double instructions = 0, accesses = 0;

  void add(NodeRef n) {
    instructions += instructions_of(n);
    const bool loads = n->op == Op::Load || n->op == Op::TileLoad;
    if (loads || n->op == Op::Store) accesses += registers(n);
  }
  double nanoseconds(double access_ns) const {
    return std::max(instructions * kInstructionNs, accesses * access_ns);
  }
};

/// Loops in order of their ends, with how often what is in each runs within a loop whose size is
/// known at launch, by its number.
struct Counted {
  double times;
  size_t loop;
  Counts counts = {};
};

std::vector<Counted> counted(const LinearProgram& program, std::vector<LoopCost>& loops) {
  std::vector<Counted> open{{1, 0}}, done;
  const auto close = [&] {
    done.push_back(open.back());
    open.pop_back();
  };
  for (NodeRef n : program.code) {
    const Counted& here = open.back();
    if (n->op == Op::EndRange) {
      if (open.size() > 1) close();
    } else if (n->op != Op::Range) {
      open.back().counts.add(n);
    } else if (range_binding(n) == Binding::Core) {
      open.push_back({here.times, here.loop});
    } else if (is_rare(n->src(0))) {
      open.push_back({0, here.loop});
    } else if (is_known_at_launch(n->src(0))) {
      loops.push_back({static_cast<int>(here.loop) - 1, 0, n->src(0)});
      open.push_back({here.times, loops.size() - 1});
    } else {
      open.push_back({here.times * most_trips(n->src(0)), here.loop});
    }
  }
  while (!open.empty()) close();
  return done;
}

/// Of an access on average: lines that are read again come out of the first cache.
double access_ns(const LinearProgram& program, std::span<const Counted> loops) {
  double accesses = 0;
  for (const Counted& c : loops) accesses += c.times * c.counts.accesses;
  if (program.core_size != nullptr) accesses *= most_trips(program.core_size);
  const double line = program.bytes > 0 && program.bytes <= kNearBytes ? kNearLineNs : kLineNs;
  const double lines = program.bytes > 0 ? program.bytes / Machine::kLine : accesses;
  return kAccessNs + line * (accesses > 0 ? std::min(1.0, lines / accesses) : 0);
}

}  // namespace

std::vector<LoopCost> loop_costs(const LinearProgram& program) {
  std::vector<LoopCost> loops(1);
  const std::vector<Counted> all = counted(program, loops);
  const double each = access_ns(program, all);
  for (const Counted& c : all) loops[c.loop].ns += c.times * c.counts.nanoseconds(each);
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
