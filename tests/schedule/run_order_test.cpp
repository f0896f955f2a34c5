// In which order kernels run, and what that means for memory.
#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

class RunOrder : public ScheduleTest {
 protected:
  static bool is_intermediate(const BufferSpec& b) { return b.input < 0 && b.output < 0; }

  /// Elements of the intermediates that are alive at once, at most.
  static int64_t most_alive(const Schedule& s) {
    std::vector<size_t> first(s.buffers.size(), s.steps.size()), last(s.buffers.size(), 0);
    for (size_t i = 0; i < s.steps.size(); ++i)
      for (int b : s.steps[i].buffers) {
        const auto k = static_cast<size_t>(b);
        first[k] = std::min(first[k], i), last[k] = i;
      }
    int64_t most = 0;
    for (size_t i = 0; i < s.steps.size(); ++i) {
      int64_t alive = 0;
      for (size_t b = 0; b < s.buffers.size(); ++b)
        if (is_intermediate(s.buffers[b]) && first[b] <= i && i <= last[b])
          alive += s.buffers[b].numel->vmax;
      most = std::max(most, alive);
    }
    return most;
  }
};

/// A network's activations and their gradients: the outputs are listed as parameters are, the first
/// layer's first.
TEST_F(RunOrder, GradientsOfWeightsComeBeforeThoseOfEarlierLayers) {
  constexpr int64_t kRows = 32, kWide = 16;
  constexpr int kLayers = 6;
  std::vector<NodeRef> weights, activations{b_.param(0, {kRows, kWide})};
  for (int i = 0; i < kLayers; ++i) {
    weights.push_back(b_.param(i + 1, {kWide, kWide}));
    activations.push_back(b_.matmul(activations.back(), weights.back()));
  }
  NodeRef gradient = g_.mul(activations.back(), activations.back());
  std::vector<ScheduleOutput> outputs(kLayers);
  for (int i = kLayers; i-- > 0;) {
    const auto at = static_cast<size_t>(i);
    outputs[at].value = b_.matmul(b_.permute(activations[at], {1, 0}), gradient);
    gradient = b_.matmul(gradient, b_.permute(weights[at], {1, 0}));
  }
  const Schedule schedule = make_schedule(outputs, kTarget);
  // All activations but the first, and of the gradients the one that is made, what it is made of
  // and copies of either for the products.
  EXPECT_LE(most_alive(schedule), (kLayers + 4) * kRows * kWide);
  check(outputs, 1e-5);
}

/// And what needs that alone, as a decoded weight its scales.
TEST_F(RunOrder, WhatNeedsNothingComesWhenItIsRead) {
  for (const size_t links : {1, 2}) {
    NodeRef early = b_.param(0, {7, 13});
    for (size_t i = 0; i < links; ++i)
      early = g_.make(Op::Contiguous, DType::F32, {g_.mul(early, b_.constant(2))});
    NodeRef x = b_.param(1, {7, 13});
    for (int i = 2; i < 8; i += 2) {  // what is before a layer is read after it, too
      NodeRef inside = b_.matmul(x, b_.param(i, {13, 13}));
      x = g_.add(x, b_.matmul(inside, b_.param(i + 1, {13, 13})));
    }
    NodeRef last = b_.matmul(b_.permute(x, {1, 0}), early);
    const Schedule schedule = make_schedule(std::vector<ScheduleOutput>{{last}}, kTarget);
    size_t reads_first = schedule.steps.size();
    for (size_t i = 0; i < schedule.steps.size() && reads_first == schedule.steps.size(); ++i)
      for (int b : schedule.steps[i].buffers)
        if (schedule.buffers[static_cast<size_t>(b)].input == 0) reads_first = i;
    EXPECT_GE(reads_first + links + 1, schedule.steps.size());
    check({{last}}, 1e-5);
  }
}

/// A function of much work, wanted now and after more than the cache holds has come by.
TEST_F(RunOrder, ValuesThatLeaveTheCacheAreComputedAgain) {
  NodeRef x = b_.param(0, {64, 64});
  NodeRef small = g_.alu(Op::Exp2, {g_.sub(b_.constant(0), g_.mul(x, x))});
  NodeRef f = g_.alu(Op::Div, {b_.constant(1), g_.add(b_.constant(1), g_.alu(Op::Exp2, {small}))});
  NodeRef y = b_.matmul(g_.mul(f, x), b_.param(1, {64, 64}));
  for (int i = 2; i < 7; ++i) y = b_.matmul(y, b_.param(i, {64, 64}));
  NodeRef z = g_.mul(y, f);
  const auto stored = [&](int64_t l3) {
    Target target = kTarget;
    target.machine.caches[2].bytes = l3;
    int64_t elements = 0;
    for (const BufferSpec& b : make_schedule(std::vector<ScheduleOutput>{{z}}, target).buffers)
      if (is_intermediate(b)) elements += b.numel->vmax;
    return elements;
  };
  EXPECT_EQ(stored(32 << 20), stored(64 << 10) + 64 * 64);
  check({{z}}, 1e-4);
}

}  // namespace
}  // namespace weft
