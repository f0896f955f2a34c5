#include "weft/codegen/x86/read_ahead.h"

#include "weft/graph/index_algebra.h"

namespace weft::codegen {
namespace {

// Operations for each byte: with more the machine waits for its pipes.
constexpr double kMostWork = 32;
// Times L2 that are read at least, and bytes between two work items at most: what comes earlier
// than that is gone again before it is read.
constexpr double kTimesL2 = 2;
constexpr int64_t kFurthest = 128 << 10;
// Wider numbers fill whole lines with each vector, which the machine follows.
constexpr int kWidest = 16;

/// How much values change from one work item to the next, as far as that is the same for all.
class Slopes {
 public:
  void add(NodeRef n) {
    if (!is_int(n->dtype) || n->lanes > 1) return;
    int64_t slope = 0;
    if (find(n, slope)) of_.set(n, slope);
  }
  /// 0 where it is not known, too.
  int64_t of(NodeRef n) const {
    const int64_t* found = of_.find(n);
    return found ? *found : 0;
  }

 private:
  bool find(NodeRef n, int64_t& slope) const {
    switch (n->op) {
      case Op::Const: slope = 0; return true;
      case Op::Range: slope = range_binding(n) == Binding::Core ? 1 : 0; return true;
      case Op::Cast:
      case Op::Min:  // the last item may lie where it overlaps the one before
      case Op::Max: return of(n->src(0), slope);
      case Op::Add: return sum(n, slope);
      case Op::Mul:
      case Op::Shl: return multiple(n, slope);
      default: return false;
    }
  }
  bool of(NodeRef n, int64_t& slope) const {
    const int64_t* found = of_.find(n);
    if (found) slope = *found;
    return found != nullptr;
  }
  bool sum(NodeRef n, int64_t& slope) const {
    int64_t other = 0;
    if (!of(n->src(0), slope) || !of(n->src(1), other)) return false;
    slope += other;
    return true;
  }
  bool multiple(NodeRef n, int64_t& slope) const {
    NodeRef by = n->src(1);
    const int64_t most = n->op == Op::Mul ? kFurthest : 16;
    if (by->op != Op::Const || !of(n->src(0), slope) || by->vmin < 0 || by->vmin > most)
      return false;
    slope *= n->op == Op::Mul ? by->vmin : int64_t{1} << by->vmin;
    return slope <= kFurthest;
  }

  NodeMap<int64_t> of_;
};

bool streams(const LinearProgram& program, const Machine& machine) {
  return program.bytes >= kTimesL2 * static_cast<double>(machine.l2().bytes) &&
         program.flops <= kMostWork * program.bytes;
}

}  // namespace

NodeMap<int64_t> reads_ahead(const LinearProgram& program, const Target& target) {
  NodeMap<int64_t> ahead;
  if (!streams(program, target.machine)) return ahead;
  Slopes slopes;
  int loops = 0;
  for (NodeRef n : program.code) {
    loops += n->op == Op::Range && range_binding(n) != Binding::Core;
    loops -= n->op == Op::EndRange;
    slopes.add(n);
    if (n->op != Op::Load || loops == 0 || bits(n->src(0)->dtype) > kWidest) continue;
    const int64_t bytes = slopes.of(n->src(1)) * bits(n->src(0)->dtype) / 8;
    if (bytes >= Machine::kLine && bytes <= kFurthest) ahead.set(n, bytes);
  }
  return ahead;
}

}  // namespace weft::codegen
