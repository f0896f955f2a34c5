// Reductions beside what reads them: what finishes one, as an activation does, is stored in its
// place; a small one leaves the loops of a large reader alone; a sum of sums is one sum.
#include <algorithm>

#include "weft/schedule/decoded_products.h"
#include "weft/schedule/plan.h"

namespace weft {
using namespace cycles;
namespace {

// A small reduction's consumer has so many times as many iterations, and so many at least: gates of
// channels, as squeeze and excitation has them.
constexpr double kSmallBeside = 64, kManyElements = 16384;

// A tile's registers hold the sums of one product: with two, tiles are smaller. In cycles for each
// term of either (ResNet-50's residual blocks: 175 instead of 215 GFLOP/s at 384 terms, 135 at
// 768); and for each block of packed weights, of which two matrices at once take 1.2 (Q4_K) to 1.6
// times (Q6_K) as long as one after the other.
constexpr double kCrowded = 0.007, kCrowdedBlock = 6;

// Times L2: what is longer comes from memory.
constexpr double kTimesL2 = 2;

// A sum of sums may visit this many places for each of the inner sum's, most of them masked.
constexpr double kMergeLimit = 4;

}  // namespace

/// Whether the inner of two sums is better computed at every place the outer one visits.
bool Planner::merging_pays(NodeRef inner, double evaluated) const {
  const double numel = largest_numel(inner->shape->span());
  if (evaluated > kMergeLimit * numel) return false;
  const double* visits = estimates_.visits.find(inner);
  const double again = visits ? (*visits - 1) * largest_numel(inner->src(0)->shape->span()) : 0;
  return again * (estimates_.work.at(inner->src(0)) + kOp) <=
         kLaunch + numel * kStore + evaluated * kLoad;
}

/// Chunks were chosen for each of the two sums (split_folds.cpp), of which one of all would have
/// none.
bool Planner::merging_keeps_digits(NodeRef inner, const Use& d) const {
  if (!is_float(inner->dtype)) return true;
  const std::vector<NodeRef>& own = kernels[static_cast<size_t>(d.kernel)].ranges;
  std::vector<NodeRef> outer;
  for (NodeRef r : d.scope)
    if (!contains(own, r)) outer.push_back(r);
  const double each = largest_numel(inner->src(0)->shape->span()) /
                      std::max(largest_numel(inner->shape->span()), 1.0);
  return iterations(outer) * each < static_cast<double>(kLongSum);
}

/// Whether a reduction with as many elements would be stored if `n` were not, and nothing else
/// wants what is between them.
bool Planner::finishes_reduction(NodeRef n) const {
  constexpr size_t kLargestCone = 32;  // nodes looked at
  const double numel = largest_numel(n->shape->span());
  std::vector<NodeRef> cone{n};
  NodeMap<int> users;
  bool reduced = false;
  for (size_t i = 0; i < cone.size(); ++i) {
    if (is_reduction(cone[i])) {
      reduced = true;
      continue;
    }
    for (size_t k = 0; k < cone[i]->nsrc; ++k) {
      NodeRef x = cone[i]->src(k);
      const bool between = is_alu(x->op) || is_movement(x->op) || is_reduction(x);
      if (!between || is_index(x->dtype) || largest_numel(x->shape->span()) < numel) continue;
      if (demands_.whole.contains(x) || cone.size() == kLargestCone) return false;
      users[x] += k == 0 || x != cone[i]->src(k - 1);
      if (!contains(cone, x)) cone.push_back(x);
    }
  }
  return reduced && std::all_of(cone.begin() + 1, cone.end(),
                                [&](NodeRef x) { return users.at(x) == estimates_.users.at(x); });
}

/// What the terms of a product lose where its kernel sums those of another one, too.
double Planner::crowding(NodeRef reduce) const {
  const double terms = largest_numel(reduce->src(0)->shape->span());
  if (sums_scaled_bytes(reduce)) return kCrowdedBlock * terms;
  return estimates_.heavy.at(reduce) ? kCrowded * terms : 0;
}

/// The arrays that a sum reads from end to end, once, where they come from memory.
std::vector<NodeRef> Planner::streams_of(NodeRef reduce) const {
  constexpr size_t kLargestCone = 32;                                   // nodes looked at
  if (estimates_.heavy.at(reduce) || target.groups.exist()) return {};  // of grids not measured
  const double terms = largest_numel(reduce->src(0)->shape->span());
  const double least = kTimesL2 * static_cast<double>(target.machine.l2().bytes);
  std::vector<NodeRef> cone{reduce->src(0)}, found;
  for (size_t i = 0; i < cone.size() && i < kLargestCone; ++i) {
    NodeRef n = cone[i];
    if (largest_numel(n->shape->span()) < terms) continue;
    if (n->op == Op::Param || always_staged(n)) {
      if (terms * bits(n->dtype) / 8 >= least) found.push_back(n);
    } else if (is_alu(n->op) || is_movement(n->op)) {
      for (NodeRef s : n->src())
        if (!is_index(s->dtype) && !contains(cone, s)) cone.push_back(s);
    }
  }
  return found;
}

/// Whether sums of a kernel read other memory from end to end. Two such streams at once come slower
/// than one after the other (two matrices of f16, 32 MiB each, by a vector: 37 and 44 GB/s, Zen 4).
bool Planner::streams_apart(NodeRef reduce, const KernelPlan& k) const {
  if (k.streams.empty()) return false;
  const std::vector<NodeRef> own = streams_of(reduce);
  return !own.empty() &&
         std::ranges::none_of(own, [&](NodeRef n) { return contains(k.streams, n); });
}

/// Whether a kernel that sums products already loses more by the sums of another one than by
/// reading them.
bool Planner::crowds(NodeRef reduce, const Use& d) const {
  const KernelPlan& k = kernels[static_cast<size_t>(d.kernel)];
  if (streams_apart(reduce, k)) return true;
  const double others = k.crowding, own = crowding(reduce);
  return others > 0 && own > 0 &&
         others + own > kLaunch + largest_numel(reduce->shape->span()) * (kStore + kLoad);
}

/// Whether a reduction is so little work beside the loops of who wants it that a kernel of its own
/// costs nothing, unlike loops around it in another order than that of memory.
bool Planner::is_small_beside(NodeRef reduce, const Use& d) const {
  const double evaluated = iterations(d.scope);
  return evaluated >= kManyElements &&
         largest_numel(reduce->src(0)->shape->span()) * kSmallBeside <= evaluated;
}

}  // namespace weft
