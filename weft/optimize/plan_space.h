// PlanSpace: which plans there are for a kernel's loops, what the cost model thinks of each, and
// the ones next to it.
#pragma once
#include "weft/optimize/cost.h"
#include "weft/optimize/loop_plan.h"
#include "weft/optimize/tile_product.h"

namespace weft::optimize {

class PlanSpace {
 public:
  /// They must outlive it.
  PlanSpace(const KernelInfo& info, const Target& target);

  /// Whether a plan is for these loops, and cuts each in a way that keeps the kernel's values.
  bool legal(const LoopPlan& plan) const;
  /// The one that is taken without a search.
  LoopPlan analytic() const;
  /// Of all iterations, by the cost model of one core; 0 for a matrix unit, which it does not know.
  double cycles(const LoopPlan& plan) const;

  /// Legal plans that differ in one decision, or in one range's copies given to another.
  std::vector<LoopPlan> neighbours(const LoopPlan& plan) const;
  /// One for each range that may be vectors, with the copies that the model likes best.
  std::vector<LoopPlan> starts() const;

  Tiling tiling(const LoopPlan& plan) const;
  const std::optional<TileProduct>& tiles() const { return tiles_; }

 private:
  bool legal_lanes(const LoopPlan& plan) const;
  bool may_have_lanes(RangeMask vectors) const;
  int64_t most_lanes(size_t range) const;
  bool too_long(const LoopPlan& plan) const;
  void add(LoopPlan plan, std::vector<LoopPlan>& out) const;
  void add_copies(const LoopPlan& plan, std::vector<LoopPlan>& out) const;
  void add_lanes(const LoopPlan& plan, std::vector<LoopPlan>& out) const;
  void add_orders(const LoopPlan& plan, std::vector<LoopPlan>& out) const;
  LoopPlan with_copies(LoopPlan plan, size_t range, bool more) const;
  LoopPlan best_near(LoopPlan plan) const;

  const KernelInfo& info_;
  const Target& target_;
  std::optional<TileProduct> tiles_;
  CostModel model_;
  RangeMask cut_ = 0;      // ranges that some body's loops run over
  RangeMask reduced_ = 0;  // of these, what a body's reductions close
};

}  // namespace weft::optimize
