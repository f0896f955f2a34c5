#include "weft/optimize/tiling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <span>

#include "weft/graph/index_algebra.h"
#include "weft/optimize/byte_sums.h"
#include "weft/optimize/steady.h"

namespace weft::optimize {
namespace {

constexpr int64_t kSmallWindow = 8;  // reductions up to this size may lose their loop
constexpr int64_t kFactors[] = {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16};
constexpr size_t kLineUnroll = Machine::kLine / sizeof(float);  // elements of a line
constexpr size_t kStarts = 3;          // vector ranges whose tiles are compared
constexpr double kWorthwhile = 0.985;  // more copies must save at least this,
constexpr int64_t kRowsLeft = 8;       // groups of running rows that threads share,
constexpr size_t kFewAccesses = 8;     // of a step, beside which four rows have registers
constexpr double kWorthCode = 0.95;    // where only the loop's own overhead is saved, this
constexpr int64_t kFewRows[] = {2, 3, 4, 6, 8};  // that share nothing,
constexpr double kMuchLess = 0.85;               // and have to cost so much less
constexpr int64_t kPage = 4096;                  // bytes

/// What is decided: how a body is cut, after others have decided about some ranges.
struct Turn {
  const Body& body;
  RangeMask decided;
};

/// A tiling and what the kernel then costs.
struct Choice {
  Tiling tiling;
  double cost = 0;
  bool found = false;  ///< false: all that was seen is too long
};

/// Decides one body after the other, the most expensive first; what one has decided stays. What its
/// choice of vectors leaves to the others is known only when they have decided, so that is tried
/// for each of its best choices.
class TileSearch {
 public:
  TileSearch(const KernelInfo& info, const CostModel& model, const Target& target)
      : info_(info),
        model_(model),
        target_(target),
        keeps_order_(!target.canonical && scales_sums(info)) {}

  Tiling run() const {
    Tiling plain;
    plain.ranges.resize(info_.ranges.size(), Tiling::Of{});
    const std::vector<const Body*> bodies = dearest_first(plain);
    const Turn first{*bodies[0], 0};
    Choice best = best_of(vector_choices(first, plain, bodies.size() > 1), [&](const Start& start) {
      Choice all = with_unroll_factors(first, start, 0);
      RangeMask decided = first.body.deps;
      for (const Body* b : std::span(bodies).subspan(1)) {
        all = choose_tile({*b, decided}, all);
        decided |= b->deps;
      }
      return all;
    });
    for (const Body* b : bodies)
      if (b->own != 0) try_rows(*b, best);
    return best.tiling;
  }

 private:
  std::vector<const Body*> dearest_first(const Tiling& plain) const {
    std::vector<std::pair<double, const Body*>> bodies;
    for (const Body& b : model_.bodies()) bodies.emplace_back(model_.cycles(b, plain), &b);
    // Bodies lie in one array: their addresses are their order.
    std::sort(bodies.begin(), bodies.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::vector<const Body*> order;
    for (const auto& [cycles, body] : bodies) order.push_back(body);
    return order;
  }

  // ---- lanes

  struct Start {
    double cost;
    Tiling tiling;
    size_t order = 0;  // decides between equal costs
  };

  /// Of what is made of each start: a later one has to be worth it.
  template <class F>
  static Choice best_of(std::span<const Start> starts, F&& made) {
    Choice best = made(starts[0]);
    for (const Start& start : starts.subspan(1))
      if (Choice next = made(start); next.found && next.cost < best.cost * kWorthwhile)
        best = std::move(next);
    return best;
  }

  /// Tries the most promising vector ranges each with its best copies: what a gather costs depends
  /// on how many copies share it.
  Choice choose_tile(const Turn& turn, const Choice& so_far) const {
    Choice best = best_of(vector_choices(turn, so_far.tiling, false), [&](const Start& start) {
      return with_unroll_factors(turn, start, so_far.cost);
    });
    best.found |= so_far.found;
    return best;
  }

  /// The vector ranges to try, with their best number of lanes: the cheapest first.
  std::vector<Start> vector_choices(const Turn& turn, const Tiling& so_far,
                                    bool several_bodies) const {
    std::vector<Start> all;
    if ((so_far.vectors & turn.body.deps) == 0)
      for (size_t r = info_.ranges.size(); r-- > 0;)
        if (may_be_vector(turn, so_far, r)) add_best_lanes(so_far, r, all);
    if (all.empty() || !keeps_order_) all.push_back({model_.total(so_far) * kWorthwhile, so_far});
    for (size_t i = 0; i < all.size(); ++i) all[i].order = i;
    std::sort(all.begin(), all.end(), [](const Start& a, const Start& b) {
      return a.cost != b.cost ? a.cost < b.cost : a.order < b.order;
    });
    const size_t most = turn.body.products || several_bodies ? kStarts : 1;
    if (all.size() > most) all.resize(most);
    return all;
  }

  void add_best_lanes(const Tiling& so_far, size_t r, std::vector<Start>& all) const {
    const int64_t widest =
        std::min<int64_t>(target_.vector_bits / model_.widest(r), target_.max_lanes);
    Start best{0, so_far};
    bool found = false;
    for (int64_t lanes = widest; lanes >= 2; lanes /= 2) {
      if (cut_of(info_, r, lanes) == Cut::No) continue;
      Tiling trial = so_far;
      trial.set(r, lanes, 1);
      const double c = std::min(model_.total(trial), transposed_cost(trial, lanes));
      if (found && (keeps_order_ || c >= best.cost * kWorthwhile)) continue;
      best = {c, trial};
      found = true;
    }
    if (found) all.push_back(best);
  }

  /// What a kernel that only moves costs where pieces of the rows that vectors gather from are
  /// loaded.
  double transposed_cost(const Tiling& start, int64_t lanes) const {
    double least = INFINITY;
    if (model_.bodies().size() > 1) return least;
    const Body& body = model_.bodies()[0];
    for (size_t r = 0; r < info_.ranges.size(); ++r) {
      if (start.ranges[r].size() > 1 || !info_.ranges[r].parallel || !info_.ranges[r].free() ||
          !shares_lines(body, start, r))
        continue;
      for (int64_t columns = lanes; columns > 1; columns /= 2) {
        if (cut_of(info_, r, columns) == Cut::No) continue;
        Tiling trial = start;
        trial.set(r, 1, columns);
        if (model_.along_rows(body, trial) >= 0) least = std::min(least, model_.total(trial));
      }
    }
    return least;
  }

  bool may_be_vector(const Turn& turn, const Tiling& so_far, size_t r) const {
    const RangeInfo& range = info_.ranges[r];
    if ((turn.body.deps & ~turn.decided & bit(r)) == 0 || !range.free()) return false;
    if (keeps_order_ && turn.body.own != 0 && (turn.body.own >> r) != 1)
      return false;  // words that lie side by side
    if (keeps_order_ && sums_floats_over(r)) return false;
    if (range.parallel ? has_parallel_vector(so_far, turn.body) : target_.canonical) return false;
    // No value may have lanes along two ranges.
    const RangeMask vectors = so_far.vectors | bit(r);
    for (NodeRef n : info_.order)
      if (n->op != Op::Sink && std::popcount(info_.deps(n) & vectors) > 1) return false;
    for (NodeRef n : info_.reduces)
      if (std::popcount((info_.deps(n) | info_.reduced_by(n)) & vectors) > 1) return false;
    return true;
  }
  bool sums_floats_over(size_t r) const {
    return std::ranges::any_of(info_.reduces, [&](NodeRef n) {
      return is_float(n->dtype) && (info_.reduced_by(n) & bit(r)) != 0;
    });
  }
  /// Whether one is chosen; of stores in loops of their own each may have another.
  bool has_parallel_vector(const Tiling& so_far, const Body& body) const {
    const bool alone = !info_.has_folds() && !info_.has_loops;
    for (RangeMask m = so_far.vectors & (alone ? body.deps : ~RangeMask{0}); m != 0; m &= m - 1)
      if (info_.ranges[static_cast<size_t>(std::countr_zero(m))].parallel) return true;
    return false;
  }

  // ---- copies

  struct Candidate {
    size_t range;
    SmallVector<int64_t, 12> factors;
    bool along_lines;  // copies share the lines of a gather
  };

  /// Parallel ranges whose copies share loads (or whose vectors hide latency), with possible
  /// factors.
  std::vector<Candidate> parallel_candidates(const Turn& turn, const Tiling& start) const {
    std::vector<Candidate> out;
    for (size_t r = 0; r < info_.ranges.size(); ++r) {
      const RangeInfo& range = info_.ranges[r];
      const bool vector = (start.vectors & bit(r)) != 0;
      if ((turn.body.deps & ~turn.body.own & bit(r)) == 0 || !range.free()) continue;
      if (keeps_order_ && sums_floats_over(r)) continue;
      const bool along_lines =
          shares_lines(turn.body, start, r) || fills_lines(turn.body, start, r);
      if (((turn.decided & bit(r)) != 0) ||
          (!vector && !reuses(turn.body, r) && !along_lines && !is_border(turn.body)))
        continue;
      Candidate c{r, {}, along_lines};
      const int64_t lanes = start.ranges[r].lanes;
      for (int64_t f : kFactors)
        if (cut_of(info_, r, lanes * f) != Cut::No) c.factors.push_back(f);
      if (!c.factors.empty()) out.push_back(std::move(c));
    }
    return out;
  }

  bool reuses(const Body& body, size_t r) const {
    return std::any_of(body.accesses.begin(), body.accesses.end(),
                       [&](uint32_t i) { return (info_.accesses[i].deps & bit(r)) == 0; });
  }

  /// Zeros beside what is copied: most of a short loop over them is the loop itself, which copies
  /// share.
  bool is_border(const Body& body) const {
    return model_.bodies().size() > 1 && std::ranges::all_of(body.accesses, [&](uint32_t i) {
             return info_.accesses[i].is_store();
           });
  }

  /// A vector gathers across rows whose elements this range walks one by one.
  bool shares_lines(const Body& body, const Tiling& start, size_t r) const {
    return std::any_of(body.accesses.begin(), body.accesses.end(), [&](uint32_t i) {
      const Access& a = info_.accesses[i];
      const RangeMask vector = a.deps & start.vectors & ~bit(r);
      return !a.is_store() && std::abs(a.stride[r]) == 1 && vector != 0 &&
             std::abs(a.stride[static_cast<size_t>(std::countr_zero(vector))]) > 1;
    });
  }

  /// Outside of sums, whether a vector reads a part of a line and this range goes on in it.
  bool fills_lines(const Body& body, const Tiling& start, size_t r) const {
    return body.own == 0 &&
           std::any_of(body.accesses.begin(), body.accesses.end(), [&](uint32_t i) {
             const Access& a = info_.accesses[i];
             const RangeMask vector = a.deps & start.vectors & ~bit(r);
             if (a.is_store() || vector == 0) return false;
             const auto v = static_cast<size_t>(std::countr_zero(vector));
             const int64_t run = start.ranges[v].lanes * a.unit();
             return std::abs(a.stride[v]) == a.unit() && std::abs(a.stride[r]) == run &&
                    run * bits(a.node->src(0)->dtype) / 8 < Machine::kLine;
           });
  }

  /// `so_far`: what the kernel costs without.
  Choice with_unroll_factors(const Turn& turn, const Start& from, double so_far) const {
    const Tiling& start = from.tiling;
    Choice best{start, so_far};
    consider(turn, start, best);
    try_tiles(turn, start, best);
    if (turn.body.own == 0) return best;
    // The same with small windows unrolled: copies along them and along the output share loads.
    Tiling windows = start;
    for (size_t r = 0; r < info_.ranges.size(); ++r) {
      const RangeInfo& range = info_.ranges[r];
      if (!may_unroll_reduction(turn, r) || range.extent > kSmallWindow || !range.constant)
        continue;
      if (windows.ranges[r].lanes > 1) continue;
      windows.set(r, 1, range.extent);
      consider(turn, windows, best);
      try_tiles(turn, windows, best);
    }
    try_unrolled_reduction(turn, best);
    try_moved_windows(turn, best);
    return best;
  }

  void try_tiles(const Turn& turn, const Tiling& start, Choice& best) const {
    const std::vector<Candidate> parallel = parallel_candidates(turn, start);
    const auto registers = static_cast<size_t>(std::max(8, target_.vector_registers));
    // Beside accumulators, up to three operands and a result on its way need registers.
    const size_t most = turn.body.own == 0 ? 4 : registers - 4;
    for (size_t a = 0; a < parallel.size(); ++a)
      for (int64_t fa : parallel[a].factors) {
        if (static_cast<size_t>(fa) > (parallel[a].along_lines ? kLineUnroll : most)) break;
        Tiling one = start;
        one.set(parallel[a].range, one.ranges[parallel[a].range].lanes, fa);
        consider(turn, one, best);
        if (turn.body.own == 0) continue;
        for (size_t b = a + 1; b < parallel.size(); ++b)
          for (int64_t fb : parallel[b].factors) {
            if (static_cast<size_t>(fa * fb) > most) break;
            Tiling two = one;
            two.set(parallel[b].range, two.ranges[parallel[b].range].lanes, fb);
            consider(turn, two, best);
          }
      }
  }

  bool may_unroll_reduction(const Turn& turn, size_t r) const {
    return !target_.canonical && !keeps_order_ && (turn.body.own & ~turn.decided & bit(r)) != 0 &&
           info_.ranges[r].free();
  }

  /// A few copies of the innermost reduction loop, or of the vector one.
  void try_unrolled_reduction(const Turn& turn, Choice& best) const {
    const Tiling start = best.tiling;
    for (size_t r = 0; r < info_.ranges.size(); ++r) {
      const Tiling::Of of = start.ranges[r];
      const bool last = (turn.body.own >> r) == 1;
      if (!may_unroll_reduction(turn, r) || of.unroll > 1 || (of.lanes == 1 && !last)) continue;
      for (int64_t f : {2, 4, 8}) {
        const int64_t steps = info_.ranges[r].extent / of.lanes;
        if (steps < 2 * f || (info_.ranges[r].constant && steps % f != 0)) continue;
        if (cut_of(info_, r, of.lanes * f) == Cut::No) continue;
        Tiling trial = start;
        trial.set(r, of.lanes, f);
        consider(turn, trial, best);
      }
    }
  }

  /// Copies along ranges that move a window: of what the loops over it read, all but what is new is
  /// shared.
  void try_moved_windows(const Turn& turn, Choice& best) const {
    for (size_t r = 0; r < info_.ranges.size(); ++r) {
      if ((turn.body.deps & ~turn.body.own & ~turn.decided & bit(r)) == 0 ||
          !info_.ranges[r].free() || !moves_window(turn.body, r) ||
          (keeps_order_ && sums_floats_over(r)))
        continue;
      const Tiling start = best.tiling;
      const auto [lanes, unroll] = start.ranges[r];
      for (int64_t f : kFactors) {
        if (f <= unroll || cut_of(info_, r, lanes * f) == Cut::No) continue;
        Tiling trial = start;
        trial.set(r, lanes, f);
        consider(turn, trial, best);
      }
    }
  }
  /// Copies along a range that shares nothing: what would wait for a sum's last result works on
  /// another meanwhile.
  void try_rows(const Body& body, Choice& best) const {
    const Choice start = best;
    for (size_t r = 0; r < info_.ranges.size(); ++r) {
      if ((body.deps & ~body.own & bit(r)) == 0 || !info_.ranges[r].free() || reuses(body, r) ||
          start.tiling.ranges[r].size() > 1 || (keeps_order_ && sums_floats_over(r)))
        continue;
      for (const int64_t f : kFewRows) {
        if (f > most_rows(r) || cut_of(info_, r, f) != Cut::Exact) continue;
        Choice trial{start.tiling, std::min(best.cost, start.cost * kMuchLess), start.found};
        Tiling more = start.tiling;
        more.set(r, 1, f);
        consider({body, 0}, more, trial);
        if (trial.tiling.ranges[r].unroll == f) best = trial;
      }
    }
  }
  /// Rows that lie a power of two apart share few places of a cache, half of which are left to one
  /// operand, and prefetchers have to find each in memory: the model counts neither.
  int64_t most_rows(size_t r) const {
    const CacheLevel& near = target_.machine.l1();
    std::vector<NodeRef> aliased;  // memory whose rows share places
    for (const Access& a : info_.accesses) {
      NodeRef memory = a.node->src(0);
      const int64_t size = bits(memory->dtype), apart = std::abs(a.stride[r]) * size / 8;
      if (apart >= kPage && buffer_size(a) * size / 8 > target_.machine.l3().bytes / 2) return 1;
      if (apart != 0 && apart % near.way_bytes() == 0 && !contains(aliased, memory))
        aliased.push_back(memory);
    }
    return aliased.empty() ? INT64_MAX : aliased.size() == 1 ? near.ways / 2 : 1;
  }

  bool moves_window(const Body& body, size_t r) const {
    return std::any_of(body.accesses.begin(), body.accesses.end(), [&](uint32_t i) {
      const Access& a = info_.accesses[i];
      for (RangeMask m = a.masked == 0 ? a.deps & body.own : 0; m != 0; m &= m - 1)
        if (a.stride[static_cast<size_t>(std::countr_zero(m))] == a.stride[r]) return true;
      return false;
    });
  }

  /// How much longer the kernel, `even` cycles, takes because its tiles do not divide evenly among
  /// workers. Only loops that every reduction depends on can be shared, and only long ones are: one
  /// worker is as soon done with a short one as all are with one that is worth it.
  double imbalance(const Tiling& trial, double even, const Choice& best) const {
    if (best.found && best.cost < kWorthSharingCycles) return 1;
    if (!is_worth_sharing(even)) return 1;
    double items = 1;
    for (size_t r = 0; r < info_.ranges.size(); ++r) {
      const RangeInfo& range = info_.ranges[r];
      const int64_t size = trial.ranges[r].size();
      if (range.parallel && range.free() && (info_.common & bit(r)) != 0)
        items *= static_cast<double>((range.extent + size - 1) / size);
    }
    // Of those that a large machine wants, so many hide each other's waits for memory.
    constexpr double kPart = 1.0 / 64;
    return std::max(uneven_share(items), kPart * static_cast<double>(target_.enough_items) / items);
  }

  void consider(const Turn& turn, const Tiling& trial, Choice& best) const {
    if (model_.too_long(turn.body, trial)) return;
    const double worth = turn.body.own == 0 ? kWorthCode : kWorthwhile;
    const double limit = best.found ? best.cost * worth : HUGE_VAL;
    const double even = model_.total(trial, limit);
    if (even >= limit) return;
    if (const double c = even * imbalance(trial, even, best); c < limit) best = {trial, c, true};
  }

  const KernelInfo& info_;
  const CostModel& model_;
  const Target& target_;
  const bool keeps_order_;
};

}  // namespace

namespace {

/// Whether the loop over `range` may become two, one of which is for short ones: of all that may be
/// short the innermost, where workers share out another, since they share both or none.
bool may_have_short(const KernelInfo& info, size_t range) {
  RangeMask common = info.common;
  for (const Access& a : info.accesses)
    if (a.is_store()) common &= a.deps;
  bool shared = false;
  for (size_t r = 0; r < info.ranges.size(); ++r) {
    const RangeInfo& other = info.ranges[r];
    if (other.sequential) return false;  // the state of one loop is not that of another
    if (r == range || !other.parallel || !other.free()) continue;
    if (r > range && !other.constant) return false;
    shared |= (common & bit(r)) != 0 && other.extent > 1;
  }
  return shared;
}

}  // namespace

Cut cut_of(const KernelInfo& info, size_t range, int64_t size) {
  const RangeInfo& r = info.ranges[range];
  NodeRef n = r.node->src(0);
  if (!r.free()) return size == 1 ? Cut::Exact : Cut::No;
  if (n->vmax < size) return Cut::No;
  // One tile or none: a loop whose number is always 0 is in no store's index, and would be lost.
  if (r.parallel && size > 1 && n->vmin < size && n->vmax == size) return Cut::No;
  if (r.constant ? r.extent % size == 0 : divisor_of(n) != 0 && divisor_of(n) % size == 0)
    return Cut::Exact;
  if (r.parallel) {
    if (none_or_at_least(n, size)) return Cut::Overlap;
    return info.repeatable && may_have_short(info, range) ? Cut::Short : Cut::No;
  }
  return info.has_loops ? Cut::No : Cut::Peel;
}

bool ends_in_vector(const KernelInfo& info, size_t range, const Tiling::Of& tile) {
  const RangeInfo& r = info.ranges[range];
  NodeRef n = r.node->src(0);
  return !r.constant && tile.lanes > kFewLanes && n->vmin >= tile.lanes && n->vmax > tile.size() &&
         cut_of(info, range, tile.size()) == Cut::Peel;
}

namespace {

/// Steps of a running fold each wait for the one before: of some rows at a time the others work
/// meanwhile. What a step holds for all rows leaves registers for two.
void run_rows_together(const KernelInfo& info, Tiling& tiling) {
  const bool runs = std::ranges::any_of(info.ranges, &RangeInfo::sequential);
  if (!runs || info.has_loops || tiling.vectors != 0 || tiling.unrolled != 0) return;
  for (size_t r = info.ranges.size(); r-- > 0;) {
    const RangeInfo& rows = info.ranges[r];
    if (!rows.parallel || !rows.free() || !rows.constant || rows.extent == 1) continue;
    const int64_t most = info.accesses.size() <= kFewAccesses ? 4 : 2;
    for (int64_t n = most; n > 1; n /= 2)
      if (rows.extent % n == 0 && rows.extent >= n * kRowsLeft) return tiling.set(r, 1, n);
    return;
  }
}

}  // namespace

Tiling choose_tiling(const KernelInfo& info, const CostModel& model, const Target& target) {
  Tiling best = TileSearch(info, model, target).run();
  run_rows_together(info, best);
  return best;
}

bool find_mergeable(const KernelInfo& info, RangeMask done, Mergeable& out) {
  auto walks_as_one = [&](size_t outer, size_t inner) {
    const RangeInfo &a = info.ranges[outer], &b = info.ranges[inner];
    if (!b.constant || a.parallel != b.parallel || !a.free() || !b.free()) return false;
    const RangeMask both = bit(outer) | bit(inner);
    if ((info.data_use & both) != 0) return false;
    for (const Access& x : info.accesses) {
      if (((x.opaque | x.masked) & both) != 0) return false;
      if (x.stride[outer] != x.stride[inner] * b.extent) return false;
    }
    // Values that depend on one of them must not be computed again for the other.
    for (NodeRef n : info.reduces) {
      const RangeMask reduced = info.reduced_by(n) & both, deps = info.deps(n) & both;
      if ((reduced != 0 && reduced != both) || (deps != 0 && deps != both)) return false;
    }
    return true;
  };
  for (size_t outer = 0; outer < info.ranges.size(); ++outer) {
    if ((done & bit(outer)) != 0) continue;
    for (size_t inner = 0; inner < info.ranges.size(); ++inner) {
      if (inner == outer || (done & bit(inner)) != 0) continue;
      // Parallel ranges keep their order; inside a reduction any order will do.
      if (info.ranges[outer].parallel && inner != outer + 1) continue;
      if (!walks_as_one(outer, inner)) continue;
      out = {outer, inner};
      return true;
    }
  }
  return false;
}

}  // namespace weft::optimize
