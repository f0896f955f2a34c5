// Random kernels over integers, so that the order of a sum does not matter.
#pragma once
#include <random>

#include "tests/lower/kernels.h"

namespace weft::test {

class RandomKernel : public KernelBuilder {
 public:
  /// `bound`: small ranges with random bindings, for lower/. Else loops, large enough to be tiled.
  explicit RandomKernel(uint32_t seed, bool bound = true) : random_(seed), bound_(bound) {
    const int open = pick(1, 3);
    for (int i = 0; i < open; ++i) open_.push_back(new_range(true));
    const int outputs = pick(1, 2);
    for (int i = 0; i < outputs; ++i) add_output();
  }
  const Buffers& buffers() const { return buffers_; }

 private:
  static constexpr int64_t kSizes[] = {1, 2, 3, 4, 6, 8};
  static constexpr int64_t kLargeSizes[] = {1, 2, 3, 5, 12, 17};
  static constexpr double kMostSteps = 2e5;  // of run_kernel: some 20 ms

  int pick(int lo, int hi) {
    return lo + static_cast<int>(random_() % static_cast<uint32_t>(hi - lo + 1));
  }

  NodeRef new_range(bool is_open) {
    if (!bound_) return range(kLargeSizes[pick(0, 5)], next_id_++);
    Binding b = Binding::Loop;
    const int which = pick(0, 5);
    const bool vector_free = is_open ? !open_vector_ : !open_vector_ && !reduce_vector_;
    if (which == 0) b = Binding::Unroll;
    if (which == 1 && vector_free) b = Binding::Vector;
    if (which == 2 && is_open && open_.empty()) b = Binding::Core;
    if (b == Binding::Vector) (is_open ? open_vector_ : reduce_vector_) = true;
    const int64_t size = b == Binding::Vector ? (pick(0, 1) ? 4 : 2) : kSizes[pick(0, 5)];
    return range(size, next_id_++, b);
  }

  /// Row-major position over all `ranges`: different everywhere.
  NodeRef position(const std::vector<NodeRef>& ranges, int64_t& size) {
    NodeRef at = index(0);
    size = 1;
    for (NodeRef r : ranges) {
      at = g.add(g.mul(at, r->src(0)), r);
      size *= r->src(0)->vmin;
    }
    return at;
  }

  NodeRef random_index(const std::vector<NodeRef>& ranges) {
    NodeRef at = index(pick(0, 3));
    for (NodeRef r : ranges)
      if (pick(0, 3)) at = g.add(at, g.mul(r, index(pick(-2, 5))));
    if (pick(0, 4) == 0) at = g.idiv(at, index(pick(2, 4)));
    return at;
  }

  NodeRef random_load(const std::vector<NodeRef>& ranges) {
    const auto slot = static_cast<int64_t>(buffers_.size());
    NodeRef at = random_index(ranges), valid = nullptr;
    if (pick(0, 2) == 0) {
      const int64_t size = pick(1, 20);
      buffers_.push_back(numbers(DType::I32, size, slot + 1));
      valid = g.logical_and(g.le(index(0), at), g.lt(at, index(size)));
      return load(param(slot, DType::I32, size), at, valid);
    }
    if (pick(0, 3) == 0) {  // through data
      const int64_t size = pick(1, 9);
      NodeRef data = g.alu(Op::ToIndex, {random_load(ranges), index(size)});
      const auto table = static_cast<int64_t>(buffers_.size());
      buffers_.push_back(numbers(DType::I32, size, table + 1));
      return load(param(table, DType::I32, size), data);
    }
    at = g.add(at, index(-at->vmin));
    buffers_.push_back(numbers(DType::I32, at->vmax + 1, slot + 1));
    return load(param(slot, DType::I32, at->vmax + 1), at);
  }

  NodeRef random_value(const std::vector<NodeRef>& ranges, int depth) {
    if (!values_.empty() && pick(0, 4) == 0) {
      // Something made before, if what it depends on is open here.
      const auto& [value, needs] =
          values_[static_cast<size_t>(pick(0, static_cast<int>(values_.size()) - 1))];
      bool fits = true;
      for (NodeRef r : needs)
        fits = fits && std::find(ranges.begin(), ranges.end(), r) != ranges.end();
      if (fits) return value;
    }
    NodeRef made = make_value(ranges, depth);
    values_.push_back({made, ranges});
    return made;
  }

  NodeRef make_value(const std::vector<NodeRef>& ranges, int depth) {
    switch (depth <= 0 ? 0 : pick(0, 6)) {
      case 0: return random_load(ranges);
      case 1: return random_binary(Op::Add, ranges, depth);
      case 2: return random_binary(Op::Mul, ranges, depth);
      case 3: {
        NodeRef condition = random_binary(Op::Lt, ranges, depth);
        NodeRef value = random_value(ranges, depth - 1);
        return g.where(condition, value, g.cast(random_index(ranges), DType::I32));
      }
      case 4: return random_binary(pick(0, 1) ? Op::Max : Op::Mod, ranges, depth);
      default: return random_reduce(ranges, depth);
    }
  }

  NodeRef random_binary(Op op, const std::vector<NodeRef>& ranges, int depth) {
    NodeRef a = random_value(ranges, depth - 1);
    return g.alu(op, {a, random_value(ranges, depth - 1)});
  }

  NodeRef random_reduce(const std::vector<NodeRef>& ranges, int depth) {
    std::vector<NodeRef> own, inside;
    for (NodeRef r : ranges)
      if (pick(0, 3)) inside.push_back(r);
    const bool outer_vector = reduce_vector_;
    if (!shared_.empty() && pick(0, 2) == 0)
      own = shared_;
    else
      for (int i = pick(1, 2); i > 0; --i) own.push_back(new_range(false));
    bool open = false;  // a range that is already running cannot be reduced again
    for (NodeRef r : own) open = open || std::find(ranges.begin(), ranges.end(), r) != ranges.end();
    // Nor may two vector ranges meet.
    bool vector = false;
    for (NodeRef r : own) vector = vector || range_binding(r) == Binding::Vector;
    if (open || (vector && (outer_vector || open_vector_))) {
      reduce_vector_ = outer_vector;
      return random_load(ranges);
    }
    reduce_vector_ = outer_vector || vector;
    shared_ = own;
    inside.insert(inside.end(), own.begin(), own.end());
    constexpr Fold kFolds[] = {Fold::Add, Fold::Max, Fold::Min, Fold::Mul};
    // Mentioning every range makes sure it is closed where it is used.
    NodeRef value = random_value(inside, depth - 1);
    reduce_vector_ = outer_vector;
    return reduce(kFolds[pick(0, 3)], value, own);
  }

  /// A value for each of `points` that run_kernel evaluates in bounded time.
  NodeRef bounded_value(int64_t points) {
    for (int depth = 4;; --depth) {
      NodeRef value = random_value(open_, depth);
      if (evaluation_steps(value) * static_cast<double>(points) < kMostSteps) return value;
      values_.clear();  // what is too much is not used again
    }
  }

  void add_output() {
    int64_t size = 1;
    NodeRef at = position(open_, size);
    NodeRef value = bounded_value(size);
    const auto slot = static_cast<int64_t>(buffers_.size());
    buffers_.push_back(numbers(DType::I32, size, slot + 1));
    NodeRef valid = pick(0, 3) == 0 ? g.lt(at, index(pick(1, static_cast<int>(size)))) : nullptr;
    store(param(slot, DType::I32, size), at, value, valid, pick(0, 2) == 0 ? Fold::Add : Fold::Set);
  }

  std::mt19937 random_;
  bool bound_;
  std::vector<NodeRef> open_, shared_;
  std::vector<std::pair<NodeRef, std::vector<NodeRef>>> values_;
  Buffers buffers_;
  int64_t next_id_ = 0;
  bool open_vector_ = false, reduce_vector_ = false;
};

}  // namespace weft::test
