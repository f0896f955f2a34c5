#include <cmath>
#include <random>

#include "tests/run/fixture.h"
#include "weft/run/memory_plan.h"

namespace weft {
namespace {

bool meet(const Lifetime& a, const Lifetime& b) { return a.first <= b.last && b.first <= a.last; }

TEST(MemoryPlan, ReusesWhatIsDead) {
  const Lifetime lives[] = {{100, 0, 1}, {100, 1, 2}, {100, 2, 3}, {100, 3, 4}};
  const MemoryPlan plan = plan_memory(lives);
  EXPECT_EQ(plan.bytes, 256);
  EXPECT_EQ(plan.least, 256);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
}

TEST(MemoryPlan, EmptyBuffersAndNone) {
  EXPECT_EQ(plan_memory({}).bytes, 0);
  const Lifetime lives[] = {{0, 0, 5}, {1, 2, 3}};
  EXPECT_EQ(plan_memory(lives).bytes, 64);
}

TEST(MemoryPlan, RandomLivesNeverOverlapAndStayNearTheLeast) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> lives;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(random() % 100);
      lives.push_back({static_cast<int64_t>(1 + random() % 5000), first,
                       first + static_cast<int>(random() % 20)});
    }
    const MemoryPlan plan = plan_memory(lives);
    for (size_t i = 0; i < lives.size(); ++i) {
      ASSERT_EQ(plan.offsets[i] % 64, 0);
      ASSERT_LE(plan.offsets[i] + lives[i].bytes, plan.bytes);
      for (size_t j = 0; j < i; ++j)
        if (meet(lives[i], lives[j])) {
          ASSERT_TRUE(plan.offsets[i] + lives[i].bytes <= plan.offsets[j] ||
                      plan.offsets[j] + lives[j].bytes <= plan.offsets[i]);
        }
    }
    ASSERT_LE(static_cast<double>(plan.bytes), 1.35 * static_cast<double>(plan.least));
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
      EXPECT_EQ(*static_cast<float*>(context.get<BufferTable>().find(1)->data()), 1);
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
  EXPECT_EQ(*static_cast<float*>(broken.get<BufferTable>().find(1)->data()), 1);
}

}  // namespace
}  // namespace weft
