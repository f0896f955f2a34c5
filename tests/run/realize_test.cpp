#include "weft/run/realize.h"

#include "tests/run/fixture.h"
#include "tests/support/small_stack.h"

namespace weft {
namespace {

class Realize : public RunTest {};

TEST_F(Realize, AChainOfOperations) {
  StorageRef a = from({1, 2, 3}), b = from({10, 20, 30});
  StorageRef c = lazy([&] { return g.mul(g.add(a->value(), b->value()), num(2)); });
  EXPECT_FALSE(c->realized());
  EXPECT_EQ(read(c), (Floats{22, 44, 66}));
  EXPECT_TRUE(c->realized());
  EXPECT_EQ(read(a), (Floats{1, 2, 3}));
}

TEST_F(Realize, TheSumOfTheFrontPage) {
  StorageRef a = from({1, 2, 3}), b = from({10, 20, 30});
  StorageRef s = lazy([&] { return sum(g.add(a->value(), b->value())); });
  EXPECT_EQ(read(s), (Floats{66}));
  EXPECT_EQ(run_stats(context).kernels, 1);
}

TEST_F(Realize, SeveralOutputsDuplicatesAndRealizedOnes) {
  StorageRef a = from({1, 2});
  auto twice = [&] { return g.add(a->value(), a->value()); };
  StorageRef b = lazy(twice), c = lazy(twice),
             d = lazy([&] { return g.alu(Op::Neg, {a->value()}); });
  run({b, a, c, d, b});
  EXPECT_EQ(b->value(), c->value()) << "equal values share a buffer";
  EXPECT_EQ(read(c), (Floats{2, 4}));
  EXPECT_EQ(read(d), (Floats{-1, -2}));
  assign(b, [&] { return g.add(b->value(), num(1)); });
  EXPECT_EQ(read(b), (Floats{3, 5}));
  EXPECT_EQ(read(c), (Floats{2, 4})) << "writing one must not be seen through the other";
}

TEST_F(Realize, ConstantsViewsAndEmptyTensors) {
  StorageRef a = from({1, 2, 3, 4});
  StorageRef constant = lazy([&] {
    const NodeRef src[] = {num(7)};
    return g.make({Op::Contiguous, DType::F32, src});
  });
  StorageRef view = lazy([&] { return shrink(a->value(), g.index(1), g.index(2)); });
  StorageRef empty = lazy([&] { return shrink(a->value(), g.index(1), g.index(0)); });
  StorageRef scalar = lazy([&] { return num(3); });
  StorageRef of_empty = lazy([&] { return sum(empty->value()); });
  run({constant, view, empty, scalar, of_empty});
  EXPECT_EQ(read(constant), (Floats{7}));
  EXPECT_EQ(read(view), (Floats{2, 3}));
  EXPECT_EQ(read(empty), (Floats{}));
  EXPECT_EQ(read(scalar), (Floats{3}));
  EXPECT_EQ(read(of_empty), (Floats{0}));
}

TEST_F(Realize, UpdatesStayInPlaceWhenNobodyElseLooks) {
  StorageRef p = from({1, 2, 3});
  void* memory_before = p->buffer()->block();
  for (int step = 1; step <= 3; ++step) {
    assign(p, [&] { return g.add(p->value(), num(1)); });
    run({p});
    EXPECT_EQ(p->buffer()->block(), memory_before);
    EXPECT_EQ(read(p), (Floats{1.f + step, 2.f + step, 3.f + step}));
  }
}

TEST_F(Realize, AWholeWriteThatForgetsTheOldValueKeepsItsMemory) {
  StorageRef p = from({1, 2, 3}), q = from({4, 5, 6});
  void* memory_before = p->buffer()->block();
  assign(p, [&] { return g.mul(q->value(), num(2)); });
  run({p});
  EXPECT_EQ(p->buffer()->block(), memory_before);
  EXPECT_EQ(read(p), (Floats{8, 10, 12}));
}

TEST_F(Realize, AReaderOfTheOldValueForcesACopy) {
  StorageRef p = from({1, 2, 3});
  StorageRef before = lazy([&] { return g.mul(p->value(), num(10)); });
  void* memory_before = p->buffer()->block();
  assign(p, [&] { return g.add(p->value(), num(1)); });
  run({p});
  EXPECT_NE(p->buffer()->block(), memory_before);
  EXPECT_EQ(read(p), (Floats{2, 3, 4}));
  EXPECT_EQ(read(before), (Floats{10, 20, 30}));
}

TEST_F(Realize, ReaderAndWriterInOneRealizationAreOrdered) {
  StorageRef p = from({1, 2, 3});
  StorageRef before = lazy([&] { return g.mul(p->value(), num(10)); });
  assign(p, [&] { return g.add(p->value(), num(1)); });
  run({p, before});
  EXPECT_EQ(read(p), (Floats{2, 3, 4}));
  EXPECT_EQ(read(before), (Floats{10, 20, 30}));
}

TEST_F(Realize, AssignThroughAViewThatReadsItself) {
  StorageRef p = from({1, 2, 3, 4});
  // p[1:] = p[:3] + p[3]
  assign(p, [&] {
    NodeRef old = p->value();
    NodeRef last = g.make(Op::Reshape, DType::F32, {shrink(old, g.index(3), g.index(1))});
    NodeRef value = g.add(shrink(old, g.index(0), g.index(3)), last);
    const NodeRef src[] = {old, shrink(old, g.index(1), g.index(3)), value};
    return g.make({Op::Assign, DType::F32, src});
  });
  EXPECT_EQ(read(p), (Floats{1, 5, 6, 7}));
}

TEST_F(Realize, TwoTensorsSwap) {
  StorageRef a = from({1, 2}), b = from({3, 4});
  {
    Graph::Building building(g);
    NodeRef old_a = a->value();
    a->set_value(g.add(b->value(), num(0.5)));
    b->set_value(g.add(old_a, num(0.5)));
  }
  run({a, b});
  EXPECT_EQ(read(a), (Floats{3.5, 4.5}));
  EXPECT_EQ(read(b), (Floats{1.5, 2.5}));
}

TEST_F(Realize, TheSecondEqualStepCompilesAndSchedulesNothing) {
  StorageRef p = from({1, 2, 3}), x = from({1, 1, 1});
  auto step = [&] {
    assign(p, [&] { return g.add(p->value(), g.mul(x->value(), num(2))); });
    run({p});
  };
  step();
  const RunStats first = run_stats(context);
  step();
  x = from({5, 5, 5});
  step();
  const RunStats last = run_stats(context);
  EXPECT_EQ(last.schedules.misses, first.schedules.misses);
  EXPECT_EQ(last.kernel_cache.misses, first.kernel_cache.misses);
  EXPECT_EQ(last.schedules.hits, first.schedules.hits + 2);
  EXPECT_EQ(read(p), (Floats{15, 16, 17}));
}

TEST_F(Realize, AThousandLengthsAreCompiledOnce) {
  StorageRef x = from(Floats(1000, 1.f));
  for (int64_t n = 1; n <= 1000; ++n) {
    StorageRef s = lazy([&] {
      NodeRef v = g.variable("n", 1, 1000);
      const NodeRef bind[] = {v, g.index(n)};
      NodeRef length = g.intern({Op::Bind, DType::Index, bind});
      return sum(g.add(shrink(x->value(), g.index(0), length), num(1)));
    });
    ASSERT_EQ(read(s), Floats{2.f * static_cast<float>(n)});
  }
  EXPECT_EQ(run_stats(context).schedules.misses, 1);
}

TEST_F(Realize, OneNameWithTwoValuesIsTwoVariables) {
  StorageRef x = from({1, 2, 3, 4});
  auto total = [&](int64_t n) {
    const NodeRef bind[] = {g.variable("n", 1, 4), g.index(n)};
    return sum(shrink(x->value(), g.index(0), g.intern({Op::Bind, DType::Index, bind})));
  };
  StorageRef both = lazy([&] { return g.sub(total(4), total(2)); });
  EXPECT_EQ(read(both), (Floats{7}));
}

TEST_F(Realize, AVariableWithoutValueIsAnError) {
  StorageRef x = from({1, 2, 3, 4});
  StorageRef s = lazy([&] { return sum(shrink(x->value(), g.index(0), g.variable("n", 1, 4))); });
  try {
    run({s});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("variable n is unbound, it has no value"),
              std::string::npos)
        << e.what();
  }
}

TEST_F(Realize, MemoryOfDeadTensorsComesBackAtOnce) {
  const int64_t before = memory().stats().live_bytes;
  for (int i = 0; i < 100; ++i) from(Floats(1000, 1.f));
  collect_garbage(context);
  EXPECT_EQ(memory().stats().live_bytes, before);
  StorageRef x = from(Floats(1000, 1.f));
  for (int i = 0; i < 100; ++i) {
    StorageRef y = lazy([&] { return g.add(x->value(), num(i)); });
    run({y});
  }
  EXPECT_LE(memory().stats().live_bytes, before + 3 * 4000);
}

class DeepRealize : public RunTest {
 protected:
  /// Builds, realizes and frees a chain of `depth` operations on a stack of 256 KiB.
  void chain(int64_t depth) {
    on_small_stack([&] {
      const ContextScope in(context);
      StorageRef x = from({1, 2, 3, 4}),
                 y = lazy([&] {
                   NodeRef n = x->value();
                   for (int64_t i = 0; i < depth; i += 2)
                     n = g.add(g.mul(n, num(0.5)), num(static_cast<double>(i % 7)));
                   return n;
                 });
      Floats wanted{1, 2, 3, 4};
      for (int64_t i = 0; i < depth; i += 2)
        for (float& w : wanted) w = w * 0.5f + static_cast<float>(i % 7);
      EXPECT_EQ(read(y), wanted);
    });
    collect_garbage(context);
    EXPECT_LT(g.live_nodes(), 1000u);
  }
};

TEST_F(DeepRealize, OnASmallStack) { chain(40'000); }
TEST_F(DeepRealize, SlowAMillionOperationsOnASmallStack) { chain(1'000'000); }

}  // namespace
}  // namespace weft
