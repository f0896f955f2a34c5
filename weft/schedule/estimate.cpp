#include "weft/schedule/estimate.h"

#include <algorithm>
#include <bit>

#include "weft/graph/loops.h"
#include "weft/graph/tuple.h"
#include "weft/schedule/plan.h"

namespace weft {

using namespace cycles;

bool is_view(Op op) {
  return is_movement(op) || op == Op::Detach || op == Op::Bind || op == Op::Get;
}
bool is_sum(NodeRef n) { return n->op == Op::Reduce && fold_of(n) == Fold::Add; }

bool always_staged(NodeRef n) {
  switch (n->op) {
    case Op::Contiguous:
    case Op::Copy:
    case Op::Scan:
    case Op::CumCount:
    case Op::Assign:
    case Op::Scatter: return true;
    case Op::Get: return is_step(n->src(0)) || (n->src(0)->op == Op::Loop && is_running(n->src(0)));
    default: return false;
  }
}

double largest_numel(std::span<const NodeRef> dims) {
  double p = 1;
  for (NodeRef d : dims) p *= static_cast<double>(std::max<int64_t>(0, d->vmax));
  return p;
}

namespace {

struct Fanout {
  uint64_t accesses = 0;
  int users = 0;
};

/// Of exp2, log2, sin and the like. Vectors of 512 bits that run whole take half of what was
/// measured on Zen 4, which halves them, and of what AVX2 takes; of f64, which was not measured, it
/// stays.
double function_cost(DType dtype, const Target& target) {
  const bool whole = target.vector_bits == 512 && target.machine.turns(512) == 1;
  return whole && bits(dtype) <= 32 ? kFunction / 2 : kFunction;
}

/// Whether the result is rounded to bf16, which takes a handful of operations on integers.
bool is_rounded(NodeRef n) {
  if (n->dtype != DType::BF16) return false;
  switch (n->op) {
    case Op::Neg:
    case Op::Max:
    case Op::Min:
    case Op::Where:
    case Op::Bitcast: return false;
    default: return true;
  }
}

double op_cost(NodeRef n, const Target& target) {
  switch (n->op) {
    case Op::Exp2:
    case Op::Log2:
    case Op::Sin:
    case Op::Cos:
    case Op::Tan: return target.native(n->op, n->dtype) ? kHardOp : function_cost(n->dtype, target);
    case Op::Div:
    case Op::Sqrt:
    case Op::IDiv:
    case Op::Mod:
    case Op::Rem: return kHardOp;
    case Op::Bitcast: return 0;
    default: return kOp;
  }
}

/// True where a node repeats elements of its source, so that the source is read several times.
bool repeats(NodeRef n) {
  if (n->op == Op::Expand) return n->shape != n->src(0)->shape;
  return n->op == Op::Window && n->int_arg(2) < n->int_arg(1);
}

bool surely_staged(NodeRef n, const NodeMap<bool>& outputs) {
  return n->op == Op::Param || is_reduction(n) || always_staged(n) || outputs.contains(n);
}

/// In how many places a value is wanted, at least: a reduction is one, and so is what is stored.
/// Places are bits, given out in turn; beyond 64 they are many anyway.
NodeMap<Fanout> count_fanout(std::span<const NodeRef> order, const NodeMap<bool>& outputs) {
  NodeMap<Fanout> fanout(order.size());
  int next = 0;
  for (size_t i = order.size(); i-- > 0;) {
    NodeRef n = order[i];
    if (n->dtype == DType::Index) continue;
    const uint64_t access = surely_staged(n, outputs) || !fanout.contains(n)
                                ? uint64_t{1} << (next++ % 64)
                                : fanout.at(n).accesses;
    for (size_t k = 0; k < n->nsrc; ++k) {
      Fanout& of = fanout[n->src(k)];
      of.accesses |= access;
      of.users += k == 0 || n->src(k) != n->src(k - 1);
    }
  }
  return fanout;
}

/// Whether a value of which each element costs `work` is likely to go to memory: who reads it then
/// pays for a load.
bool is_worth_storing(NodeRef n, double work, const Fanout& fanout) {
  if (fanout.users < 2) return false;
  const double times = std::popcount(fanout.accesses), numel = largest_numel(n->shape->span());
  return times * work > work + kStore + times * kLoad + kLaunch / std::max(1.0, numel);
}

/// A sum over a view of a heavy sum becomes one reduction with it. Notes how often the outer sum
/// has each element of the inner one.
bool merges_with_heavy(NodeRef n, Estimates& e) {
  if (!is_sum(n)) return false;
  NodeRef inner = n->src(0);
  double visits = 1;
  while (is_movement(inner->op) && inner->op != Op::Gather) {
    NodeRef x = inner->src(0);
    if (repeats(inner))
      visits *=
          largest_numel(inner->shape->span()) / std::max(1.0, largest_numel(x->shape->span()));
    inner = x;
  }
  if (!is_sum(inner)) return false;
  const double* known = e.visits.find(inner);
  e.visits[inner] = std::max(visits, known ? *known : 1.0);
  return e.heavy.at(inner);
}

}  // namespace

Estimates estimate(std::span<const NodeRef> order, const NodeMap<bool>& outputs,
                   const Target& target) {
  Estimates e;
  const NodeMap<Fanout> fanout = count_fanout(order, outputs);
  NodeMap<double> seen(order.size());  // the work of a value as others see it
  for (NodeRef n : order) {
    double work = 0;
    bool full = false;
    if (surely_staged(n, outputs)) {
      work = kLoad;
      full = true;
    } else if (is_view(n->op) && n->nsrc > 0) {
      NodeRef x = n->src(0);
      const double ratio = repeats(n)
                               ? std::min(1.0, largest_numel(x->shape->span()) /
                                                   std::max(1.0, largest_numel(n->shape->span())))
                               : 1;
      work = seen.at(x) * ratio + (n->op == Op::Gather ? seen.at(n->src(1)) + kOp : 0);
      full = e.full.at(x) && !repeats(n);
    } else if (is_alu(n->op)) {
      work = op_cost(n, target) + (is_rounded(n) ? kRounding : 0);
      for (NodeRef x : n->src()) {
        const bool small = x->rank() < n->rank();
        work += small ? 0 : seen.at(x);
        full = full || (!small && e.full.at(x));
      }
    }
    e.work[n] = std::min(work, 100.0);
    const Fanout* of = fanout.find(n);
    e.users[n] = of ? of->users : 0;
    seen[n] = of && is_worth_storing(n, e.work.at(n), *of) ? kLoad : e.work.at(n);
    e.full[n] = full;
    if (is_reduction(n)) e.heavy[n] = merges_with_heavy(n, e) || !e.full.at(n->src(0));
  }
  return e;
}

}  // namespace weft
