// Several queues in one run: what is independent goes side by side, and nothing goes before what it
// depends on.
#include <set>

#include "tests/run/fixture.h"
#include "weft/run/queue_plan.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

class QueuesTest : public RunTest {
 protected:
  QueuesTest() : RunTest("SIM:INTERP") {}
  Device& device = context.get<DeviceTable>().default_device();

  std::vector<uint64_t> points() {
    std::vector<uint64_t> all;
    for (int q = 0; q < device.queues(); ++q) all.push_back(device.timeline(q).value());
    return all;
  }
};

TEST_F(QueuesTest, IndependentKernelsGoToBothQueues) {
  StorageRef a = from({1, 2, 3}), b = from({1, 2, 3, 4, 5});
  for (int i = 0; i < 3; ++i) {
    const auto before = points();
    StorageRef x = lazy([&] { return g.add(a->value(), num(i)); });
    StorageRef y = lazy([&] { return g.mul(b->value(), num(i)); });
    run({x, y});
    const auto after = points();
    for (size_t q = 0; q < before.size(); ++q) EXPECT_EQ(after[q], before[q] + 1) << q;
    const float f = static_cast<float>(i);
    EXPECT_EQ(read(x), (Floats{1 + f, 2 + f, 3 + f}));
    EXPECT_EQ(read(y), (Floats{f, 2 * f, 3 * f, 4 * f, 5 * f}));
  }
}

TEST_F(QueuesTest, AChainStaysOnItsQueue) {
  StorageRef a = from({1, 2, 3});
  StorageRef x = lazy([&] { return g.add(a->value(), num(1)); });
  run({x});
  const auto before = points();
  StorageRef y = lazy([&] { return sum(x->value()); });
  StorageRef z = lazy([&] { return g.mul(sum(g.mul(x->value(), y->value())), num(2)); });
  run({y, z});
  const auto after = points();
  EXPECT_EQ(after[0] - before[0] + after[1] - before[1], 1u) << "one submission";
  EXPECT_EQ(read(z), (Floats{162}));
}

/// Whether every pair of commands that must not overlap is in order, by the queues and by the waits
/// of a plan.
class PlanChecker {
 public:
  PlanChecker(Device& device, std::span<const Command> commands) : commands_(commands) {
    QueuePlan plan(device);
    std::vector<int> newest(static_cast<size_t>(device.queues()), -1);
    for (size_t i = 0; i < commands.size(); ++i) {
      const QueuePlan::Place place = plan.add(i, commands[i]);
      int& last = newest[static_cast<size_t>(place.queue)];
      before_.emplace_back(commands.size());
      if (last >= 0) comes_after(i, static_cast<size_t>(last));
      for (const size_t other : place.after) comes_after(i, other);
      last = static_cast<int>(i);
      used_.insert(place.queue);
    }
  }
  /// The first that is out of order, or "".
  std::string problem() const {
    for (size_t i = 0; i < commands_.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (conflict(commands_[i], commands_[k]) && !before_[i][k])
          return strformat("{} need not wait for {}", i, k);
    return "";
  }
  size_t queues_used() const { return used_.size(); }

 private:
  void comes_after(size_t i, size_t other) {
    before_[i][other] = true;
    for (size_t k = 0; k < other; ++k)
      if (before_[other][k]) before_[i][k] = true;
  }
  static bool overlap(BufferSlice a, int64_t a_bytes, BufferSlice b, int64_t b_bytes) {
    return a.buffer == b.buffer && a.offset < b.offset + b_bytes && b.offset < a.offset + a_bytes;
  }
  static bool conflict(const Command& a, const Command& b) {
    return overlap(a.to, a.bytes, b.to, b.bytes) || overlap(a.to, a.bytes, b.from, b.bytes) ||
           overlap(a.from, a.bytes, b.to, b.bytes);
  }

  std::span<const Command> commands_;
  std::vector<std::vector<bool>> before_;
  std::set<int> used_;
};

TEST_F(QueuesTest, WhateverSharesBytesIsOrdered) {
  const std::vector<std::shared_ptr<Buffer>> buffers{device.allocate(64), device.allocate(64)};
  size_t side_by_side = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    std::vector<Command> commands;
    const auto slice = [&](int64_t bytes) {
      return BufferSlice{buffers[static_cast<size_t>(random.below(2))].get(),
                         random.between(0, 64 - bytes), 0};
    };
    for (int64_t n = random.between(2, 30); n > 0; --n) {
      const int64_t bytes = random.between(1, 16);
      const BufferSlice source = slice(bytes), target = slice(bytes);
      commands.push_back(Command::copy(source, target, bytes));
    }
    const PlanChecker checker(device, commands);
    EXPECT_EQ(checker.problem(), "") << seed;
    side_by_side += checker.queues_used() > 1;
  }
  EXPECT_GT(side_by_side, 200u);
}

TEST_F(QueuesTest, ABarrierWaitsForEverything) {
  const auto a = device.allocate(8), b = device.allocate(8), c = device.allocate(8);
  const auto fill = [](const std::shared_ptr<Buffer>& x) {
    return Command::copy({x.get(), 0}, {x.get(), 4}, 4);
  };
  QueuePlan plan(device);
  EXPECT_EQ(plan.add(0, fill(a)).queue, 0);
  EXPECT_EQ(plan.add(1, fill(b)).queue, 1);
  plan.add_barrier();
  const QueuePlan::Place place = plan.add(2, fill(c));
  ASSERT_EQ(place.after.size(), 1u);
  EXPECT_EQ(place.after[0], place.queue == 0 ? 1u : 0u);
  EXPECT_EQ(plan.add(3, fill(c)).after.size(), 0u) << "it has waited";
}

}  // namespace
}  // namespace weft
