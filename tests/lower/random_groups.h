// Random kernels of work groups over integers: grids and groups of one to three axes, loops, copies
// of the code, staged values in layouts of their own, reductions across a group.
#pragma once
#include <random>

#include "tests/lower/kernels.h"

namespace weft::test {

class RandomGroups : public KernelBuilder {
 public:
  explicit RandomGroups(uint32_t seed) : random_(seed) {
    for (size_t axis = 0, axes = pick(1, 2); axis < axes; ++axis)
      open_.push_back(new_range(Binding::Grid, axis, pick(1, 3)));
    for (size_t axis = 0, axes = pick(1, 3); axis < axes; ++axis) {
      group_sizes_.push_back(pick(1, axis ? 3 : 6));
      open_.push_back(new_range(Binding::Group, axis, group_sizes_[axis]));
    }
    if (pick(0, 1)) open_.push_back(new_range(Binding::Loop, 0, pick(1, 3)));
    if (pick(0, 1)) open_.push_back(new_range(Binding::Unroll, 0, pick(1, 3)));
    buffers_.push_back({});  // the output
    NodeRef value = random_value(open_, 3, true);
    std::vector<NodeRef> stored;
    for (NodeRef r : open_)
      if (uses(value, r) || pick(0, 2)) stored.push_back(r);
    const auto [at, size] = position(stored);
    buffers_[0] = zeros(DType::I32, size);
    store(param(0, DType::I32, size), at, value);
  }
  const Buffers& buffers() const { return buffers_; }

 private:
  int64_t pick(int64_t lo, int64_t hi) {
    return lo + static_cast<int64_t>(random_() % static_cast<uint32_t>(hi - lo + 1));
  }
  NodeRef new_range(Binding binding, size_t axis, int64_t size) {
    return g.range(g.index(size), next_id_++, binding, axis);
  }
  static bool uses(NodeRef value, NodeRef range) {
    for (NodeRef n : Toposort(value))
      if (n == range) return true;
    return false;
  }
  std::pair<NodeRef, int64_t> position(const std::vector<NodeRef>& ranges) {
    NodeRef at = index(0);
    int64_t size = 1;
    for (NodeRef r : ranges) {
      at = g.add(g.mul(at, r->src(0)), r);
      size *= r->src(0)->vmin;
    }
    return {at, size};
  }

  NodeRef random_load(const std::vector<NodeRef>& ranges) {
    NodeRef at = index(pick(0, 3)), valid = nullptr;
    for (NodeRef r : ranges)
      if (pick(0, 3)) at = g.add(at, g.mul(r, index(pick(-2, 5))));
    at = g.add(at, index(-at->vmin));
    int64_t size = at->vmax + 1;
    if (pick(0, 2) == 0) {
      size = pick(1, size);
      valid = g.lt(at, index(size));
    }
    const auto slot = static_cast<int64_t>(buffers_.size());
    buffers_.push_back(numbers(DType::I32, size, slot + 1));
    return load(param(slot, DType::I32, size), at, valid);
  }

  /// `folds`: whether reductions across the group may be in it, which staged values have none of.
  NodeRef random_value(const std::vector<NodeRef>& ranges, int depth, bool folds) {
    switch (depth <= 0 ? 0 : pick(0, 5)) {
      case 0: return random_load(ranges);
      case 1: {
        NodeRef a = random_value(ranges, depth - 1, folds);
        return g.add(a, random_value(ranges, depth - 1, folds));
      }
      case 2: return random_stage(ranges, depth);
      default: return random_reduce(ranges, depth, folds);
    }
  }

  NodeRef random_stage(const std::vector<NodeRef>& ranges, int depth) {
    if (staging_) return random_load(ranges);
    staging_ = true;
    NodeRef value = random_value(ranges, depth - 1, false);
    staging_ = false;
    std::vector<NodeRef> over;
    for (NodeRef r : ranges)
      if (range_binding(r) != Binding::Grid && pick(0, 2)) over.push_back(r);
    std::shuffle(over.begin(), over.end(), random_);
    std::vector<int64_t> strides;
    if (pick(0, 1)) {
      int64_t step = pick(1, 2);
      for (size_t i = over.size(); i-- > 0;) {
        strides.insert(strides.begin(), step);
        step *= over[i]->src(0)->vmin + pick(0, 1);
      }
    }
    return stage(value, over, strides, pick(1, 2));
  }

  NodeRef random_reduce(const std::vector<NodeRef>& ranges, int depth, bool folds) {
    std::vector<NodeRef> inside, own;
    for (NodeRef r : ranges) {
      const bool grouped = range_binding(r) == Binding::Group;
      if (grouped && folds && pick(0, 1)) {
        const size_t axis = range_axis(r);
        own.push_back(new_range(Binding::Group, axis, group_sizes_[axis]));
      } else if (pick(0, 3)) {
        inside.push_back(r);
      }
    }
    if (own.empty() || pick(0, 1)) own.push_back(new_range(Binding::Loop, 0, pick(1, 4)));
    if (pick(0, 3) == 0) own.push_back(new_range(Binding::Unroll, 0, pick(1, 2)));
    inside.insert(inside.end(), own.begin(), own.end());
    NodeRef value = random_value(inside, depth - 1, folds);
    constexpr Fold kFolds[] = {Fold::Add, Fold::Max, Fold::Min};
    return reduce(kFolds[pick(0, 2)], value, own);
  }

  std::mt19937 random_;
  std::vector<NodeRef> open_;
  std::vector<int64_t> group_sizes_;
  Buffers buffers_;
  int64_t next_id_ = 0;
  bool staging_ = false;
};

}  // namespace weft::test
