// Reductions beside what reads them: what finishes one, as an activation does, is stored in its
// place; a small one leaves the loops of a large reader alone.
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

}  // namespace

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

/// Whether a kernel that sums products already loses more by the sums of another one than by
/// reading them.
bool Planner::crowds(NodeRef reduce, const Use& d) const {
  const double others = kernels[static_cast<size_t>(d.kernel)].crowding, own = crowding(reduce);
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
