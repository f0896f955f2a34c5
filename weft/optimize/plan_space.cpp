#include "weft/optimize/plan_space.h"

#include <algorithm>
#include <bit>

#include "weft/optimize/byte_sums.h"
#include "weft/optimize/tiling.h"

namespace weft::optimize {
namespace {

constexpr int64_t kFactors[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 24, 32};
constexpr int64_t kMostUnrolled = 512;  // copies of a body, in all
constexpr int64_t kMostStream = 4;      // doublings of a cache's share that are tried
constexpr int kSteps = 32;              // towards what the model likes best

}  // namespace

PlanSpace::PlanSpace(const KernelInfo& info, const Target& target)
    : info_(info), target_(target), tiles_(find_tile_product(info, target)), model_(info, target) {
  for (const Body& b : model_.bodies()) {
    cut_ |= b.deps;
    reduced_ |= b.own;
  }
}

LoopPlan PlanSpace::analytic() const {
  LoopPlan plan;
  plan.loops = info_.sink->hash;
  if (tiles_) {
    plan.innermost = static_cast<int64_t>(tiles_->around_n);
    return plan;
  }
  const auto sums = tile_byte_sums(info_, target_);
  const Tiling tiling = sums ? sums->tiling : choose_tiling(info_, model_, target_);
  for (const Tiling::Of& of : tiling.ranges) plan.ranges.push_back({of.lanes, of.unroll});
  plan.innermost = sums ? sums->innermost : model_.innermost(tiling);
  return plan;
}

Tiling PlanSpace::tiling(const LoopPlan& plan) const {
  Tiling out;
  out.ranges.resize(plan.ranges.size(), Tiling::Of{});
  for (size_t r = 0; r < plan.ranges.size(); ++r)
    out.set(r, plan.ranges[r].lanes, plan.ranges[r].unroll);
  return out;
}

double PlanSpace::cycles(const LoopPlan& plan) const {
  return plan.unit() ? 0 : model_.total(tiling(plan));
}

// ---- legality

bool PlanSpace::legal(const LoopPlan& plan) const {
  const auto ranges = static_cast<int64_t>(info_.ranges.size());
  if (plan.loops != info_.sink->hash || plan.innermost < -1 || plan.innermost >= ranges)
    return false;
  if (plan.unit()) return tiles_.has_value();
  if (plan.ranges.size() != info_.ranges.size()) return false;
  int64_t copies = 1;
  for (size_t r = 0; r < plan.ranges.size(); ++r) {
    const auto [lanes, unroll] = plan.ranges[r];
    if (lanes < 1 || unroll < 1 || unroll > kMostUnrolled) return false;
    copies *= unroll;
    if (copies > kMostUnrolled) return false;
    if (lanes * unroll == 1) continue;
    const bool reduced = !info_.ranges[r].parallel;
    if ((cut_ & bit(r)) == 0 || (reduced && (target_.canonical || (reduced_ & bit(r)) == 0)))
      return false;
    if (cut_of(info_, r, lanes * unroll) == Cut::No) return false;
  }
  return legal_lanes(plan);
}

int64_t PlanSpace::most_lanes(size_t range) const {
  return std::min<int64_t>(target_.vector_bits / model_.widest(range), target_.max_lanes);
}

bool PlanSpace::legal_lanes(const LoopPlan& plan) const {
  RangeMask vectors = 0;
  for (size_t r = 0; r < plan.ranges.size(); ++r) {
    const int64_t lanes = plan.ranges[r].lanes;
    if (lanes == 1) continue;
    if (!std::has_single_bit(static_cast<uint64_t>(lanes)) || lanes > most_lanes(r)) return false;
    vectors |= bit(r);
  }
  return may_have_lanes(vectors);
}

/// No value may have lanes along two ranges.
bool PlanSpace::may_have_lanes(RangeMask vectors) const {
  if (vectors == 0 || std::has_single_bit(vectors)) return true;
  RangeMask parallel = 0;
  for (size_t r = 0; r < info_.ranges.size(); ++r)
    if (info_.ranges[r].parallel) parallel |= bit(r);
  if (std::popcount(vectors & parallel) > 1) return false;
  const auto several = [&](RangeMask deps) { return std::popcount(deps & vectors) > 1; };
  return std::none_of(info_.order.begin(), info_.order.end(),
                      [&](NodeRef n) { return several(info_.deps(n)); }) &&
         std::none_of(info_.reduces.begin(), info_.reduces.end(),
                      [&](NodeRef n) { return several(info_.deps(n) | info_.reduced_by(n)); });
}

bool PlanSpace::too_long(const LoopPlan& plan) const {
  const Tiling cut = tiling(plan);
  return std::any_of(model_.bodies().begin(), model_.bodies().end(),
                     [&](const Body& b) { return model_.too_long(b, cut); });
}

// ---- neighbours

void PlanSpace::add(LoopPlan plan, std::vector<LoopPlan>& out) const {
  if (legal(plan) && !too_long(plan)) out.push_back(std::move(plan));
}

/// The next number of copies of a range that cuts it; the same plan where there is none.
LoopPlan PlanSpace::with_copies(LoopPlan plan, size_t range, bool more) const {
  LoopPlan::Of& of = plan.ranges[range];
  const auto cuts = [&](int64_t f) {
    return (more ? f > of.unroll : f < of.unroll) &&
           (f * of.lanes == 1 || cut_of(info_, range, f * of.lanes) != Cut::No);
  };
  int64_t next = of.unroll;
  for (const int64_t f : kFactors)
    if (cuts(f) && (next == of.unroll || !more)) next = f;
  of.unroll = next;
  return plan;
}

void PlanSpace::add_copies(const LoopPlan& plan, std::vector<LoopPlan>& out) const {
  for (size_t r = 0; r < plan.ranges.size(); ++r) {
    if ((cut_ & bit(r)) == 0) continue;
    const LoopPlan less = with_copies(plan, r, false);
    if (const LoopPlan more = with_copies(plan, r, true); more != plan) add(more, out);
    if (less == plan) continue;
    add(less, out);
    for (size_t other = 0; other < plan.ranges.size(); ++other)
      if (LoopPlan given = with_copies(less, other, true); other != r && given != less)
        add(std::move(given), out);
  }
}

void PlanSpace::add_lanes(const LoopPlan& plan, std::vector<LoopPlan>& out) const {
  for (size_t r = 0; r < plan.ranges.size(); ++r) {
    const int64_t lanes = plan.ranges[r].lanes;
    LoopPlan changed = plan;
    if (lanes > 1) {
      changed.ranges[r].lanes = lanes / 2;
      add(changed, out);
      changed.ranges[r].lanes = lanes * 2;
      add(changed, out);
      continue;
    }
    changed.ranges[r] = {most_lanes(r), 1};
    add(changed, out);
    // In the place of others.
    for (size_t other = 0; other < plan.ranges.size(); ++other)
      if (plan.ranges[other].lanes > 1) {
        LoopPlan moved = changed;
        moved.ranges[other].lanes = 1;
        add(std::move(moved), out);
      }
  }
}

void PlanSpace::add_orders(const LoopPlan& plan, std::vector<LoopPlan>& out) const {
  for (int64_t r = -1; r < static_cast<int64_t>(info_.ranges.size()); ++r) {
    const bool around = r < 0 || (info_.ranges[static_cast<size_t>(r)].parallel &&
                                  info_.ranges[static_cast<size_t>(r)].free());
    if (!around || r == plan.innermost) continue;
    LoopPlan changed = plan;
    changed.innermost = r;
    if (legal(changed)) out.push_back(std::move(changed));
  }
  if (plan.innermost < 0) return;
  for (const int64_t step : {-1, 1}) {
    LoopPlan changed = plan;
    changed.stream += step;
    if (std::abs(changed.stream) <= kMostStream) out.push_back(std::move(changed));
  }
}

std::vector<LoopPlan> PlanSpace::neighbours(const LoopPlan& plan) const {
  std::vector<LoopPlan> out;
  if (!plan.unit()) {
    add_copies(plan, out);
    add_lanes(plan, out);
  }
  add_orders(plan, out);
  return out;
}

/// Downhill by the model.
LoopPlan PlanSpace::best_near(LoopPlan plan) const {
  double best = cycles(plan);
  for (int step = 0; step < kSteps; ++step) {
    const LoopPlan from = plan;
    for (LoopPlan& next : neighbours(from))
      if (const double c = cycles(next); c < best) {
        best = c;
        plan = std::move(next);
      }
    if (plan == from) break;
  }
  return plan;
}

std::vector<LoopPlan> PlanSpace::starts() const {
  std::vector<LoopPlan> out;
  LoopPlan plain;
  plain.loops = info_.sink->hash;
  plain.ranges.resize(info_.ranges.size());
  const LoopPlan chosen = analytic();
  plain.innermost = chosen.innermost;
  for (size_t r = 0; r < info_.ranges.size(); ++r) {
    LoopPlan plan = plain;
    plan.ranges[r].lanes = most_lanes(r);
    if (plan.ranges[r].lanes < 2 || !legal(plan)) continue;
    // The range stays what it is: only its copies, and the others', follow the model.
    plan = best_near(plan);
    if (std::find(out.begin(), out.end(), plan) == out.end()) out.push_back(std::move(plan));
  }
  return out;
}

}  // namespace weft::optimize
