#include "weft/optimize/loop_order.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "weft/graph/index_algebra.h"
#include "weft/optimize/cost.h"

namespace weft::optimize {
namespace {

constexpr int64_t kRun = 32;  // iterations for which what they have in common is computed once,
constexpr int64_t kFewItems = 16;    // where at least so many items are left
constexpr int64_t kItemsOfRuns = 4;  // or this part of those that keep all workers busy

// Rows that are read side by side, each of which prefetchers fetch ahead; fewer do not pay.
constexpr int64_t kRows = 32, kFewRows = 8;
constexpr double kPage = 4096;                         // bytes
constexpr double kReadAtOnce = 4 * Machine::kLine;     // of each: less is on its way than could be
constexpr double kVectorOfRow = Machine::kLine / 2.0;  // less is gathered, not read along a row

bool every_reduction_needs(const KernelInfo& info, RangeMask ranges) {
  return (ranges & ~info.common) == 0;
}

bool every_store_needs(const KernelInfo& info, RangeMask ranges) {
  return std::all_of(info.accesses.begin(), info.accesses.end(),
                     [&](const Access& a) { return !a.is_store() || (a.deps & ranges) == ranges; });
}

/// Open, in no order that matters, and still a loop.
bool may_run_at_once(const LoopNest& nest, const KernelInfo& info, LoopNest::Axis a) {
  if (nest.binding(a) != Binding::Loop || nest.extent(a) <= 1) return false;
  for (RangeMask m = nest.parts_of(a); m != 0; m &= m - 1) {
    const RangeInfo& r = info.ranges[static_cast<size_t>(std::countr_zero(m))];
    if (!r.parallel || !r.free()) return false;
  }
  return true;
}

/// Whether some arithmetic on data is the same in every iteration over `ranges`.
bool has_invariants(const KernelInfo& info, RangeMask ranges) {
  return std::any_of(info.order.begin(), info.order.end(), [&](NodeRef n) {
    return is_alu(n->op) && is_float(n->dtype) && (info.deps(n) & ranges) == 0;
  });
}

/// Of all that an access reads: windows overlap, so at most of the whole buffer.
double bytes_of(const KernelInfo& info, const Access& a) {
  double elements = 1;
  for (RangeMask m = a.deps; m != 0; m &= m - 1)
    elements *= static_cast<double>(info.ranges[static_cast<size_t>(std::countr_zero(m))].extent);
  NodeRef buffer = a.node->src(0);
  if (buffer->op == Op::Param && buffer->nsrc > 0)
    elements = std::min(elements, static_cast<double>(buffer->src(0)->vmax));
  return elements * bits(buffer->dtype) / 8;
}

/// Bytes that all stores, or all loads, together move by with one step of a loop over one range.
double moved_bytes(const KernelInfo& info, RangeMask range, bool stores) {
  double bytes = 0;
  for (const Access& a : info.accesses) {
    if (a.is_store() != stores) continue;
    if (!std::has_single_bit(range) || (a.opaque & range) != 0) return INFINITY;
    bytes += static_cast<double>(std::abs(a.stride[std::countr_zero(range)])) *
             bits(a.node->src(0)->dtype) / 8;
  }
  return bytes;
}

/// Whether the loop takes what lies in lines that iterations of `around` read.
bool walks_lines_of(const LoopNest& nest, const KernelInfo& info, LoopNest::Axis a,
                    LoopNest::Axis around) {
  const RangeMask parts = nest.parts_of(a), outer = nest.parts_of(around);
  return std::has_single_bit(parts) &&
         info.in_a_line(static_cast<size_t>(std::countr_zero(parts))) &&
         std::ranges::all_of(info.accesses, [&](const Access& x) {
           return x.is_store() || (x.deps & parts) == 0 || (x.deps & outer) != 0;
         });
}

/// Whether the kernel only moves data.
bool computes_nothing(const KernelInfo& info) {
  return std::ranges::none_of(info.order,
                              [](NodeRef n) { return is_alu(n->op) && !is_index(n->dtype); });
}

int64_t divisor_up_to(int64_t n, int64_t most) {
  while (most > 1 && n % most != 0) --most;
  return most;
}

/// How often the innermost loop body runs.
int64_t all_iterations(const LoopNest& nest) {
  int64_t n = 1;
  for (LoopNest::Axis a : nest.loops()) n *= nest.extent(a);
  return n;
}

/// True where every reduction closes all of these ranges or depends on none of them: nothing is
/// computed between their loops.
bool reduced_together(const KernelInfo& info, RangeMask own) {
  return std::all_of(info.reduces.begin(), info.reduces.end(), [&](NodeRef n) {
    const RangeMask reduced = info.reduced_by(n), deps = info.deps(n);
    return (reduced == own || (reduced & own) == 0) && ((deps & own) == 0 || (deps & own) == own);
  });
}

/// Bytes that all accesses together move by with one step of the range; everything where it decides
/// a mask.
double step_bytes(const KernelInfo& info, size_t range) {
  double bytes = 0;
  for (const Access& a : info.accesses) {
    if ((a.masked & bit(range)) != 0) return INFINITY;
    bytes += static_cast<double>(std::abs(a.stride[range])) * bits(a.node->src(0)->dtype) / 8;
  }
  return bytes;
}

/// Of the ranges that a reduction closes, those whose arithmetic is the same in all iterations over
/// the others, where that is worth longer steps through memory.
RangeMask most_shared(const KernelInfo& info, RangeMask own) {
  std::map<RangeMask, double> cycles;
  for (NodeRef n : info.order) {
    const RangeMask part = info.deps(n) & own;
    if (is_alu(n->op) && is_float(n->dtype) && part != 0 && part != own)
      cycles[part] += op_cycles(n->op, n->dtype);
  }
  RangeMask best = 0;
  double most = kLongStepCycles;
  for (const auto& [part, saved] : cycles) {
    if (saved <= most) continue;
    most = saved;
    best = part;
  }
  return best;
}

/// Puts loops, which are in the order of the nest, in the order of their rank, the highest first;
/// false where they are.
template <class Rank>
bool order_by(LoopNest& nest, const std::vector<LoopNest::Axis>& loops, Rank&& rank) {
  std::vector<LoopNest::Axis> sorted = loops;
  std::ranges::sort(sorted, [&](LoopNest::Axis a, LoopNest::Axis b) {
    const auto of_a = rank(a), of_b = rank(b);
    return of_a != of_b ? of_a > of_b : a < b;
  });
  if (sorted == loops) return false;
  nest.move_before(sorted[0], loops[0]);
  for (size_t i = 1; i < sorted.size(); ++i) nest.move_after(sorted[i], sorted[i - 1]);
  return true;
}

/// The outer loop of `shared`, which is to be moved around loops that store in order: each of their
/// steps then goes on along a run of what lies side by side, not to a line of every page.
LoopNest::Axis around_runs(LoopNest& nest, const KernelInfo& info, LoopNest::Axis shared,
                           int64_t enough_items) {
  const bool in_order = std::ranges::any_of(info.ranges, &RangeInfo::in_order);
  if (!in_order || info.has_folds() || shared == nest.loops()[0]) return shared;
  const int64_t size = divisor_of(nest.size(shared));
  const int64_t few = std::max(kFewItems, enough_items / kItemsOfRuns);
  const int64_t run = divisor_up_to(size, std::min(kRun, size / few));
  return run > 1 ? nest.split(shared, run, Tail::Exact).outer : shared;
}

}  // namespace

bool hoist_reductions(LoopNest& nest, const KernelInfo& info) {
  std::vector<LoopNest::Axis> parallel;
  for (LoopNest::Axis a : nest.loops()) {
    const RangeInfo& r = info.ranges[a];
    if (!r.free()) return false;
    if (r.parallel) parallel.push_back(a);
  }
  return order_by(nest, parallel, [&](LoopNest::Axis a) {
    return std::ranges::count_if(info.reduces,
                                 [&](NodeRef n) { return (info.deps(n) & bit(a)) != 0; });
  });
}

bool order_sums(LoopNest& nest, const KernelInfo& info) {
  bool moved = false;
  RangeMask done = 0;
  for (NodeRef n : info.reduces) {
    const RangeMask own = info.reduced_by(n);
    const bool listed = (own & done) == 0 && reduced_together(info, own);
    done |= own;
    if (!listed) continue;
    std::vector<LoopNest::Axis> order;
    for (RangeMask m = own; m != 0; m &= m - 1)
      order.push_back(static_cast<LoopNest::Axis>(std::countr_zero(m)));
    const RangeMask shared = most_shared(info, own);
    moved |= order_by(nest, order, [&](LoopNest::Axis a) {
      return std::pair((shared & bit(a)) != 0, step_bytes(info, a));
    });
  }
  return moved;
}

void order_loops(LoopNest& nest, const KernelInfo& info, int innermost) {
  std::vector<LoopNest::Axis> parallel;
  LoopNest::Axis best = 0;
  bool found = false;
  for (LoopNest::Axis a : nest.loops()) {
    if (!may_run_at_once(nest, info, a)) continue;
    if (!every_reduction_needs(info, nest.parts_of(a))) return;
    parallel.push_back(a);
    if (innermost < 0 || (nest.parts_of(a) & bit(static_cast<size_t>(innermost))) == 0) continue;
    best = a;
    found = true;
  }
  if (!found) return;
  const auto stays = [&](LoopNest::Axis a) {
    return a == best || !walks_lines_of(nest, info, a, best);
  };
  size_t last = parallel.size() - 1;  // what is behind it is inside already
  while (!stays(parallel[last])) --last;
  const LoopNest::Axis around = parallel[last];
  std::vector<LoopNest::Axis> inside(parallel.begin(),
                                     parallel.begin() + static_cast<ptrdiff_t>(last));
  std::erase_if(inside, stays);
  if (best != around) nest.move_after(best, around);
  while (!inside.empty()) {
    nest.move_after(inside.back(), best);
    inside.pop_back();
  }
}

bool block_stream(LoopNest& nest, const KernelInfo& info, int innermost, double most) {
  if (innermost < 0) return false;
  const std::vector<LoopNest::Axis> loops = nest.loops();
  const auto found = std::ranges::find_if(loops, [&](LoopNest::Axis a) {
    return may_run_at_once(nest, info, a) &&
           nest.parts_of(a) == bit(static_cast<size_t>(innermost));
  });
  if (found == loops.end() || found == loops.begin()) return false;
  const LoopNest::Axis stream = *found, around = *(found - 1);
  if (!may_run_at_once(nest, info, around)) return false;
  double bytes = 0;  // that come by in every iteration around
  for (const Access& a : info.accesses)
    if (!a.is_store() && (a.deps & nest.parts_of(stream)) != 0 &&
        (a.deps & nest.parts_of(around)) == 0)
      bytes += bytes_of(info, a);
  if (bytes <= most) return false;
  const auto blocks = static_cast<int64_t>(std::ceil(bytes / most));
  const int64_t size = (nest.extent(stream) + blocks - 1) / blocks;
  const int64_t divisor = divisor_of(nest.size(stream));
  if (divisor == 0 || size < 2) return false;
  const Tail tail = divisor % size == 0 ? Tail::Exact : Tail::Overlap;
  // A loop that may be shorter than a block cannot end with one that overlaps.
  if (tail == Tail::Overlap && !none_or_at_least(nest.size(stream), size)) return false;
  nest.move_before(nest.split(stream, size, tail).outer, around);
  return true;
}

void keep_runs(LoopNest& nest, const KernelInfo& info, int64_t enough_items) {
  if (info.has_folds()) return;
  const std::vector<LoopNest::Axis>& loops = nest.loops();
  const auto found = std::find_if(loops.rbegin(), loops.rend(), [&](LoopNest::Axis a) {
    return may_run_at_once(nest, info, a) && has_invariants(info, nest.parts_of(a));
  });
  if (found == loops.rend()) return;
  const LoopNest::Axis repeating = *found;
  const int64_t all = all_iterations(nest), size = divisor_of(nest.size(repeating));
  // Innermost already, inside of enough to share.
  if (repeating == loops.back() && all / nest.extent(repeating) >= enough_items) return;
  int64_t run = std::min(kRun, size);
  while (run > 1 && (size % run != 0 || all / run < kFewItems)) --run;
  if (run < 2) return;
  const LoopNest::Axis inner = nest.split(repeating, run, Tail::Exact).inner;
  nest.move_after(inner, loops.back());
}

void keep_stores_near(LoopNest& nest, const KernelInfo& info) {
  if (info.has_folds()) return;
  std::vector<LoopNest::Axis> loops;
  for (LoopNest::Axis a : nest.loops())
    if (may_run_at_once(nest, info, a)) loops.push_back(a);
  if (loops.size() < 2) return;
  const auto step = [&](LoopNest::Axis a) { return moved_bytes(info, nest.parts_of(a), true); };
  const LoopNest::Axis far = loops.back();
  if (step(far) < kPage) return;
  const auto near = std::ranges::min_element(loops, {}, step);
  const int64_t rows = divisor_up_to(divisor_of(nest.size(*near)), kRows);
  if (step(*near) > Machine::kLine || rows < kFewRows) return;
  const LoopNest::Axis inner = nest.split(*near, rows, Tail::Exact).inner;
  nest.move_after(inner, nest.loops().back());
  const double read = moved_bytes(info, nest.parts_of(far), false);
  if (read < kVectorOfRow || 2 * read > kReadAtOnce || !computes_nothing(info)) return;
  const auto most = static_cast<int64_t>(kReadAtOnce / read);
  if (const int64_t copies = divisor_up_to(divisor_of(nest.size(far)), most); copies > 1)
    nest.bind(nest.split(far, copies, Tail::Exact).inner, Binding::Unroll);
}

void share_out(LoopNest& nest, const KernelInfo& info, int64_t enough_items, bool in_runs) {
  const std::vector<LoopNest::Axis> loops = nest.loops();
  const auto may_be_shared = [&](LoopNest::Axis a) {
    return may_run_at_once(nest, info, a) && every_reduction_needs(info, nest.parts_of(a));
  };
  // The rest of a loop that not all stores are in would be left to one worker.
  auto first = std::find_if(loops.begin(), loops.end(), [&](LoopNest::Axis a) {
    return may_be_shared(a) && every_store_needs(info, nest.parts_of(a));
  });
  // Not one of no iterations, where nobody would do the rest.
  if (first == loops.end())
    first = std::find_if(loops.begin(), loops.end(), [&](LoopNest::Axis a) {
      return may_be_shared(a) && nest.size(a)->vmin > 0;
    });
  if (first == loops.end()) return;
  LoopNest::Axis core = around_runs(nest, info, *first, enough_items);
  nest.move_before(core, loops[0]);
  const bool shared = every_store_needs(info, nest.parts_of(core));
  while (shared && nest.extent(core) < enough_items) {
    const std::vector<LoopNest::Axis>& now = nest.loops();
    if (now.size() < 2 || !may_run_at_once(nest, info, now[1])) break;
    const RangeMask parts = nest.parts_of(now[1]);
    if (!every_store_needs(info, parts) || !every_reduction_needs(info, parts)) break;
    // Of quotients by what may be 0 it is not known that they lie in range.
    if (nest.size(now[1])->vmin == 0) break;
    LoopNest::Axis next = now[1];
    if (in_runs && now.size() == 2 && nest.is_of_elements() && !info.has_folds()) {
      const int64_t size = divisor_of(nest.size(next));
      const int64_t run = divisor_up_to(size, size / enough_items * nest.extent(core));
      if (run >= kRun) next = nest.split(next, run, Tail::Exact).outer;
    }
    core = nest.fuse(core, next);
  }
  nest.bind(core, Binding::Core);
}

}  // namespace weft::optimize
