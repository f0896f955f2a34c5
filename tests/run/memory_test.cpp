#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/run/fixture.h"
#include "tests/support/compiler/buffer_bytes.h"
#include "weft/run/bind.h"

namespace weft {
namespace {

float first_float(Context& context) {
  return *reinterpret_cast<const float*>(
      testing::bytes_of(context.get<BufferTable>().find(1)).data());
}

TEST(MemoryPlan, ReusesWhatIsDead) {
  const Lifetime lives[] = {{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 4}};
  const MemoryPlan plan = plan_memory(lives, 64);
  EXPECT_EQ(plan.bytes, 256);
  EXPECT_EQ(plan.least, 256);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
}

TEST(MemoryPlan, EmptyBuffersAndNone) {
  EXPECT_EQ(plan_memory({}, 64).bytes, 0);
  const Lifetime lives[] = {{0, 0, 5}, {1, 2, 3}};
  EXPECT_EQ(plan_memory(lives, 64).bytes, 64);
}

TEST(MemoryPlan, DevicesAlignAsTheyLike) {
  const Lifetime lives[] = {{100, 0, 1}, {300, 0, 1}, {1, 1, 2}};
  const MemoryPlan plan = plan_memory(lives, 256);
  EXPECT_EQ(plan.bytes, 1024);
  for (const int64_t offset : plan.offsets) EXPECT_EQ(offset % 256, 0);
}

/// Lives in a program of that many steps, up to a fifth of it long, `equal` of them of one size.
std::vector<Lifetime> random_lives(uint32_t seed, int count, int steps, int equal) {
  std::mt19937 random(seed);
  std::vector<Lifetime> lives;
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(random() % static_cast<uint32_t>(steps));
    lives.push_back({static_cast<int64_t>(i < equal ? 1000 : random() % 5000), first,
                     first + static_cast<int>(random() % static_cast<uint32_t>(steps / 5))});
  }
  return lives;
}

/// At no step do two that live then share a byte; the arena is little more than it has to be.
void expect_good(const std::vector<Lifetime>& lives, double most) {
  const MemoryPlan plan = plan_memory(lives, 64);
  std::map<int, std::vector<size_t>> begin, end;
  for (size_t i = 0; i < lives.size(); ++i) {
    ASSERT_EQ(plan.offsets[i] % 64, 0);
    ASSERT_LE(plan.offsets[i] + lives[i].bytes, plan.bytes);
    begin[lives[i].first].push_back(i);
    end[lives[i].last + 1].push_back(i);
  }
  std::map<int64_t, int64_t> live;  // by begin
  for (const auto& [step, born] : begin) {
    for (auto at = end.begin(); at != end.end() && at->first <= step; at = end.erase(at))
      for (size_t i : at->second)
        if (lives[i].bytes > 0) live.erase(plan.offsets[i]);
    for (size_t i : born) {
      if (lives[i].bytes == 0) continue;
      const auto [at, fresh] = live.try_emplace(plan.offsets[i], lives[i].bytes);
      ASSERT_TRUE(fresh);
      if (at != live.begin()) {
        ASSERT_LE(std::prev(at)->first + std::prev(at)->second, at->first);
      }
      if (std::next(at) != live.end()) {
        ASSERT_LE(at->first + at->second, std::next(at)->first);
      }
    }
  }
  ASSERT_LE(static_cast<double>(plan.bytes), most * static_cast<double>(plan.least));
}

TEST(MemoryPlan, RandomLivesNeverOverlapAndStayNearTheLeast) {
  for (uint32_t seed = 0; seed < 50; ++seed) expect_good(random_lives(seed, 60, 100, 0), 1.35);
}

/// Nothing is allocated: what matters is what the device says.
TEST(MemoryPlan, ArenasAreNoLargerThanAnAllocation) {
  Context context(Options::from_environment());
  Device& device = context.get<DeviceTable>().open("SIM:INTERP");
  const int64_t most = device.most_bytes();
  CompiledSchedule schedule;
  const auto add = [&](int64_t bytes) {
    schedule.steps[0].buffers.push_back(static_cast<int>(schedule.buffers.size()));
    schedule.buffers.push_back({DType::U8, &device, IndexProgram(bytes), -1, -1});
  };
  schedule.steps.push_back({ScheduleStep::Kind::Run, nullptr, {}, {}, &device, {}});
  for (int i = 0; i < 5; ++i) add(most * 2 / 5);
  std::vector<int> placed;
  for (const ArenaPlan& arena : plan_arenas(schedule, {}).arenas) {
    EXPECT_LE(arena.memory.bytes, most);
    EXPECT_EQ(arena.memory.offsets.size(), arena.buffers.size());
    placed.insert(placed.end(), arena.buffers.begin(), arena.buffers.end());
  }
  std::sort(placed.begin(), placed.end());
  EXPECT_EQ(placed, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(plan_arenas(schedule, {}).arenas.size(), 3U) << "two in each";
  add(2 * most);
  const std::vector<ArenaPlan> larger = plan_arenas(schedule, {}).arenas;
  EXPECT_EQ(larger[0].buffers, std::vector<int>{5}) << "no arena can hold it";
  EXPECT_EQ(larger.size(), 4U);
}

/// Placed one after the other in time, not each compared with all.
TEST(MemoryPlan, VeryManyLives) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    expect_good(random_lives(seed, 20000, 10000, 0), 1.35);
    expect_good(random_lives(seed, 20000, 10000, 20000), 1.0);
    expect_good(random_lives(seed, 20000, 10000, 10000), 1.35);
  }
}

class Memory : public RunTest {
 protected:
  /// A chain of sums over shifted halves: every step needs the one before.
  StorageRef staged_chain(const StorageRef& x, int steps) {
    return lazy([&] {
      NodeRef n = x->value();
      for (int i = 0; i < steps; ++i) {
        const NodeRef src[] = {g.add(n, num(i + 1))};
        n = g.make({Op::Contiguous, DType::F32, src});
      }
      return n;
    });
  }
};

/// Copies along a chain of buffers: an input, two intermediates, an output.
class Bound : public RunTest {
 protected:
  Bound() {
    Device& device = context.get<DeviceTable>().default_device();
    for (int b = 0; b < 4; ++b) {
      schedule.buffers.push_back(
          {DType::F32, &device, IndexProgram(1000), b == 0 ? 0 : -1, b == 3 ? 0 : -1});
      own.push_back(device.allocate(4000, "a buffer"));
      memory.push_back({own.back().get(), 0});
    }
    for (int b = 0; b < 3; ++b)
      schedule.steps.push_back({ScheduleStep::Kind::Copy, nullptr, {b, b + 1}, {}, &device, {}});
  }

  const char* misplaced(const PlannedMemory& plan) { return plan_passes()[0].problem(plan); }
  const char* unbound() {
    CommandList list(schedule);
    BindState state{list, memory, {}};
    bind_passes()[0].run(state);
    return bind_passes()[0].problem(state);
  }

  CompiledSchedule schedule;
  std::vector<std::shared_ptr<Buffer>> own;
  std::vector<BufferSlice> memory;
};

TEST_F(Bound, ThePlanIsCheckedAlongTheSteps) {
  PlannedMemory plan = plan_arenas(schedule, {});
  ASSERT_EQ(plan.arenas.size(), 1u);
  EXPECT_EQ(plan.arenas[0].buffers, (std::vector<int>{1, 2}));
  EXPECT_EQ(misplaced(plan), nullptr);
  MemoryPlan& places = plan.arenas[0].memory;
  const std::vector<int64_t> good = places.offsets;
  const int64_t step = plan.arenas[0].device->alignment();
  for (const int64_t apart : {int64_t{0}, step, -step}) {
    places.offsets = {8192, 8192 + apart};
    places.bytes = 16384;
    EXPECT_STREQ(misplaced(plan), "intermediates that live together and share bytes") << apart;
  }
  for (const int64_t outside : {-8192, 4, 16384}) {
    places.offsets = {good[0], outside};
    EXPECT_STREQ(misplaced(plan), "an intermediate that is not aligned or not inside of its arena");
  }
}

TEST_F(Bound, WhatDiesMakesRoom) {
  schedule.buffers[3].output = -1;
  PlannedMemory plan = plan_arenas(schedule, {});
  MemoryPlan& places = plan.arenas[0].memory;
  EXPECT_EQ(places.offsets[0], places.offsets[2]) << "the first is dead when the third is made";
  EXPECT_EQ(misplaced(plan), nullptr);
  schedule.steps.push_back(schedule.steps[0]);
  EXPECT_STREQ(misplaced(plan), "intermediates that live together and share bytes")
      << "the first is used once more";
}

TEST_F(Bound, EverySlotHasMemory) {
  EXPECT_EQ(unbound(), nullptr);
  memory[1].offset = 4;
  EXPECT_STREQ(unbound(), "a slot whose buffer does not fit into its memory");
  memory[1] = {};
  EXPECT_STREQ(unbound(), "a slot without memory");
  Device& other = context.get<DeviceTable>().open("NULL");
  const std::shared_ptr<Buffer> there = other.allocate(4000, "elsewhere");
  memory[1] = {there.get(), 0};
  EXPECT_STREQ(unbound(), "a slot with memory of another device");
}

TEST_F(Memory, MeasuredPeakIsThePlan) {
  constexpr int64_t kCount = 100000;
  StorageRef x = from(Floats(kCount, 1));
  StorageRef y = staged_chain(x, 6);
  reset_run_stats(context);
  const int64_t before = run_stats(context).memory_live;
  run({y});
  const int64_t peak = run_stats(context).memory_peak;
  // One new output and two intermediates that take turns.
  const auto planned = static_cast<double>(before + 3 * kCount * 4);
  EXPECT_NEAR(static_cast<double>(peak), planned, 0.05 * planned);
  EXPECT_EQ(run_stats(context).memory_live, before + kCount * 4) << "only the result stays";
  EXPECT_EQ(read(y), Floats(kCount, 22));
}

TEST_F(Memory, WhatASweepFoundInUseGoesWhenItsReadersDid) {
  constexpr int64_t kCount = 1 << 20;
  const auto lazy = [&](const std::function<NodeRef()>& value) {
    Graph::Building building(g);
    return std::make_shared<Storage>(context, value());
  };
  StorageRef small = from(Floats(4, 1)), large = from(Floats(kCount, 1));
  StorageRef reader = lazy([&] { return g.add(large->value(), large->value()); });
  large.reset();
  const int64_t before = run_stats(context).memory_live;
  run({lazy([&] { return g.add(small->value(), small->value()); })});
  EXPECT_GE(run_stats(context).memory_live, kCount * 4) << "a lazy value reads it";
  reader.reset();
  // A step's worth of new nodes; a walk for each operation would cost more than it frees.
  StorageRef chain = lazy([&] {
    NodeRef sum = small->value();
    for (int i = 0; i < 1000; ++i) sum = g.add(sum, small->value());
    return sum;
  });
  run({chain});
  EXPECT_LE(run_stats(context).memory_live, before - kCount * 4 + 64);
}

TEST_F(Memory, TheCapNamesTheLargestBuffers) {
  Options options = options_for("CPU:INTERP");
  options.memory_cap = 10000;
  Context small(options);
  ContextScope in_small(small);
  Graph& graph = tensor_graph(small);
  const Floats data(2000, 1);
  const NodeRef dims[] = {graph.index(2000)};
  StorageRef x = storage_from_bytes(small, std::as_bytes(std::span(data)), DType::F32, dims, 0,
                                    "embedding.weight");
  StorageRef y;
  {
    Graph::Building building(graph);
    y = std::make_shared<Storage>(small, graph.add(x->value(), x->value()));
  }
  const StorageRef both[] = {y};
  try {
    realize(small, both);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Memory);
    EXPECT_NE(std::string(e.what()).find("embedding.weight 7.8 KiB"), std::string::npos)
        << e.what();
  }
  EXPECT_FALSE(y->realized());
}

TEST_F(Memory, DeadTensorsMakeRoomUnderTheCap) {
  Options options = options_for("CPU:INTERP");
  options.memory_cap = 20000;
  Context small(options);
  ContextScope in_small(small);
  Graph& graph = tensor_graph(small);
  const Floats data(2000, 1);
  const NodeRef dims[] = {graph.index(2000)};
  StorageRef x = storage_from_bytes(small, std::as_bytes(std::span(data)), DType::F32, dims);
  for (int i = 0; i < 10; ++i) {
    // Garbage that reads x's result keeps nothing alive.
    Graph::Building building(graph);
    auto y = std::make_shared<Storage>(small, graph.add(x->value(), x->value()));
    graph.add(y->value(), y->value());
  }
  StorageRef last;
  for (int i = 0; i < 10; ++i) {
    {
      Graph::Building building(graph);
      NodeRef term = graph.constant(Value::of(DType::F32, i));
      last = std::make_shared<Storage>(small, graph.add(x->value(), term));
    }
    realize(small, {&last, 1});
    Graph::Building building(graph);
    graph.add(last->value(), last->value());
  }
  EXPECT_TRUE(last->realized());
}

/// Fails the first, second, ... allocation of a step until it goes through: each time everything is
/// as before.
TEST_F(Memory, NoFailedAllocationChangesAnything) {
  StorageRef p = from(Floats(100, 1)), q = from(Floats(100, 2));
  StorageRef half = staged_chain(p, 3);
  assign(p, [&] { return g.add(p->value(), q->value()); });
  assign(q, [&] { return g.mul(q->value(), num(3)); });
  const std::vector<NodeRef> before = {p->value(), q->value(), half->value()};
  int failures = 0;
  for (;; ++failures) {
    ASSERT_LT(failures, 20);
    collect_garbage(context);
    memory().fail_after(failures);
    try {
      run({p, q, half});
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Memory) << e.what();
      EXPECT_EQ((std::vector<NodeRef>{p->value(), q->value(), half->value()}), before);
      EXPECT_EQ(first_float(context), 1);
      continue;
    }
    break;
  }
  memory().fail_after(-1);
  EXPECT_GE(failures, 2) << "a fresh result and an arena at least";
  EXPECT_EQ(read(p), Floats(100, 3));
  EXPECT_EQ(read(q), Floats(100, 6));
  EXPECT_EQ(read(half), Floats(100, 7));
}

TEST_F(Memory, AFailedCompileChangesNothing) {
  Options options = options_for("CPU:C");
  options.cc = "/bin/false";
  options.cache = false;
  Context broken(options);
  ContextScope in_broken(broken);
  Graph& graph = tensor_graph(broken);
  const Floats data(4, 1);
  const NodeRef dims[] = {graph.index(4)};
  StorageRef p = storage_from_bytes(broken, std::as_bytes(std::span(data)), DType::F32, dims);
  {
    Graph::Building building(graph);
    p->set_value(graph.add(p->value(), p->value()));
  }
  const NodeRef before = p->value();
  EXPECT_THROW(realize(broken, {&p, 1}), DeviceError);
  EXPECT_EQ(p->value(), before);
  EXPECT_EQ(first_float(broken), 1);
}

}  // namespace
}  // namespace weft
