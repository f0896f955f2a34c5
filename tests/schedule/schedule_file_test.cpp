// Schedules as bytes: what is read is what was written, and what is damaged is refused.
#include "weft/schedule/schedule_file.h"

#include "tests/schedule/schedule_test.h"
#include "weft/graph/tuple.h"

namespace weft {
namespace {

constexpr int64_t kSumOfRows[] = {static_cast<int64_t>(Fold::Add), 1};

/// Two kernels at least, a size that is a symbol, and an output in place.
Schedule example() {
  Graph g;
  NodeRef n = g.variable("n", 1, 64);
  const NodeRef wide[] = {n, g.index(48)};
  NodeRef x = g.param(0, DType::F32, wide), y = g.param(1, DType::F32, wide);
  NodeRef sums = g.make({Op::Reduce, DType::F32, {&x, 1}, kSumOfRows});
  const NodeRef tall[] = {sums, n, g.index(1)};
  NodeRef column = g.make({Op::Reshape, DType::F32, tall});
  const NodeRef spread[] = {column, n, g.index(48)};
  NodeRef sum = g.add(y, g.make({Op::Expand, DType::F32, spread}));
  return make_schedule(std::vector<ScheduleOutput>{{sums, -1}, {sum, 1}}, kTarget);
}

/// Nine rounds, of which some may be left out.
Schedule ending_early() {
  Graph g;
  NodeRef size = g.index(48);
  NodeRef x = g.param(0, DType::F32, {&size, 1}), done = g.param(1, DType::I32, {});
  NodeRef next = g.param(kInnerSlots, DType::F32, {&size, 1}),
          next_done = g.param(kInnerSlots + 1, DType::I32, {});
  const NodeRef src[] = {x, done, g.add(next, next),
                         g.add(next_done, g.constant(Value::of(DType::I32, 1)))};
  const int64_t ints[] = {9, 0, 0, 0, 2, kInnerSlots, 1};
  NodeRef repeat = g.make({Op::Repeat, DType::F32, src, ints});
  return make_schedule(
      std::vector<ScheduleOutput>{{get_result(g, repeat, 0), -1}, {get_result(g, repeat, 1), -1}},
      kTarget);
}

TEST(ScheduleFile, GivesLoopsThatEndEarly) {
  const Schedule made = ending_early();
  EXPECT_EQ(made.loops, 1);
  const auto asking = [](const Schedule& s) {
    return std::ranges::count_if(s.steps, [](const ScheduleStep& step) { return step.asks >= 0; });
  };
  EXPECT_EQ(asking(made), 4);  // before rounds 1, 3, 5, 7, counted from 0
  const std::optional<Schedule> read = read_schedule(write_schedule(made), {2, 2});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->loops, 1);
  EXPECT_EQ(asking(*read), 4);
}

TEST(ScheduleFile, GivesWhatWasWritten) {
  const Schedule made = example();
  const std::string data = write_schedule(made);
  const std::optional<Schedule> read = read_schedule(data, {2, 2});
  ASSERT_TRUE(read);
  EXPECT_EQ(write_schedule(*read), data);
  ASSERT_EQ(read->kernels.size(), made.kernels.size());
  for (size_t i = 0; i < made.kernels.size(); ++i) {
    EXPECT_EQ(print_graph(read->kernels[i].sink), print_graph(made.kernels[i].sink));
    EXPECT_EQ(read->kernels[i].name, made.kernels[i].name);
  }
  ASSERT_EQ(read->steps.size(), made.steps.size());
  for (size_t i = 0; i < made.steps.size(); ++i) {
    EXPECT_EQ(read->steps[i].buffers, made.steps[i].buffers);
    EXPECT_EQ(read->steps[i].origins, made.steps[i].origins);
  }
  EXPECT_EQ(read->outputs, made.outputs);
}

TEST(ScheduleFile, RefusesOtherPrograms) {
  const std::string data = write_schedule(example());
  EXPECT_FALSE(read_schedule(data, {1, 2})) << "it has an input more";
  EXPECT_FALSE(read_schedule(data, {2, 1}));
  EXPECT_FALSE(read_schedule(data, {2, 3}));
}

TEST(ScheduleFile, RefusesWhatIsCutOff) {
  const std::string data = write_schedule(example());
  for (size_t n = 0; n < data.size(); ++n)
    ASSERT_FALSE(read_schedule(data.substr(0, n), {2, 2})) << n;
  EXPECT_FALSE(read_schedule(data + "more", {2, 2}));
}

/// Every way to damage one part of a schedule.
bool is_refused(Schedule s, void (*damage)(Schedule&)) {
  damage(s);
  return !read_schedule(write_schedule(s), {2, 2});
}

TEST(ScheduleFile, RefusesLoopsThatDoNotFit) {
  const auto refused = [](auto damage) { return is_refused(ending_early(), damage); };
  EXPECT_FALSE(refused([](Schedule&) {}));
  EXPECT_TRUE(refused([](Schedule& s) { s.loops = 0; })) << "steps are of one";
  EXPECT_TRUE(refused([](Schedule& s) { s.loops = -1; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.loops = 1 << 30; })) << "more than steps";
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].loop = 1; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].loop = -2; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].asks = 99; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].asks = -2; }));
  EXPECT_TRUE(refused([](Schedule& s) {
    for (ScheduleStep& step : s.steps) step.loop = -1;
  })) << "asks of no loop";
  EXPECT_TRUE(refused([](Schedule& s) {
    for (BufferSpec& b : s.buffers) b.dtype = DType::F32;
  })) << "looks at floats";
}

TEST(ScheduleFile, RefusesStepsThatDoNotFit) {
  const auto refused = [](auto damage) { return is_refused(example(), damage); };
  EXPECT_FALSE(refused([](Schedule&) {}));
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].kernel = 99; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].kernel = -1; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].buffers.clear(); }));
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].buffers[0] = -1; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].buffers[0] = 99; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].kind = ScheduleStep::Kind::Copy; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.steps[0].kind = static_cast<ScheduleStep::Kind>(9); }));
  EXPECT_TRUE(refused([](Schedule& s) { s.variables.clear(); })) << "kernels take it";
  EXPECT_TRUE(refused([](Schedule& s) { s.variables[0] = s.graph->index(4); }));
  EXPECT_TRUE(refused([](Schedule& s) { s.outputs[1] = 99; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.buffers[0].input = 2; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.buffers[0].output = -2; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.buffers[0].dtype = static_cast<DType>(250); }));
  EXPECT_TRUE(refused([](Schedule& s) { s.buffers[0].numel = s.kernels[0].sink; }));
  EXPECT_TRUE(refused([](Schedule& s) { s.kernels[0].sink = s.buffers[0].numel; }));
}

}  // namespace
}  // namespace weft
