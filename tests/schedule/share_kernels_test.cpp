// Kernels that are one but for numbers they compute with.
#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

class ShareKernelsTest : public ScheduleTest {
 protected:
  NodeRef like(double number, NodeRef x) {
    const int64_t size = x->dim(0)->vmin;
    return b_.expand(b_.reshape(b_.constant(number, x->dtype), {1}), {size});
  }
  NodeRef times(NodeRef x, double by) { return g_.mul(x, like(by, x)); }
  void check_all(std::span<const NodeRef> values) {
    std::vector<ScheduleOutput> outputs;
    for (NodeRef v : values) outputs.push_back({v});
    check(outputs);
  }

  Schedule scheduled(std::span<const NodeRef> values) {
    std::vector<ScheduleOutput> outputs;
    for (NodeRef v : values) outputs.push_back({v});
    return make_schedule(outputs, kTarget, {});
  }
};

TEST_F(ShareKernelsTest, NumbersBecomeVariables) {
  std::vector<NodeRef> values;
  for (int i = 0; i < 4; ++i) {
    NodeRef x = b_.param(i, {64});
    values.push_back(g_.add(times(x, 0.3 + i), like(7, x)));
  }
  const Schedule s = scheduled(values);
  ASSERT_EQ(s.steps.size(), 4U);
  EXPECT_EQ(s.kernels.size(), 1U);
  for (const ScheduleStep& step : s.steps)
    EXPECT_EQ(step.fixed.size(), 1U) << "what is added is 7 in all of them";
  EXPECT_TRUE(s.variables.empty()) << "nobody has to give them a value";
  check_all(values);
}

TEST_F(ShareKernelsTest, IntegersToo) {
  std::vector<NodeRef> values;
  int slot = 0;
  for (const DType dtype : {DType::I32, DType::U8, DType::U32})
    for (const int64_t by : {3, 117})
      values.push_back(times(b_.param(slot++, {16}, dtype), static_cast<double>(by)));
  EXPECT_EQ(scheduled(values).kernels.size(), 3U);
  check_all(values);
}

TEST_F(ShareKernelsTest, NotWhatCodeDependsOn) {
  NodeRef x = b_.param(0, {16}), y = b_.param(1, {16});
  const NodeRef signs[] = {times(x, 0.5), times(y, -1)};
  EXPECT_EQ(scheduled(signs).kernels.size(), 2U);
  const NodeRef quotients[] = {g_.alu(Op::Div, {x, like(3, x)}), g_.alu(Op::Div, {y, like(4, y)})};
  EXPECT_EQ(scheduled(quotients).kernels.size(), 2U);
}

}  // namespace
}  // namespace weft
