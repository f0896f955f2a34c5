// What the scheduler does about inputs that no run changes.
#include "weft/schedule/constants.h"

#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

class ConstantsTest : public ScheduleTest {
 protected:
  const Target cpu = make_target("x86", CpuFeatures(), 2);

  /// x w, or x w^T.
  NodeRef product(int64_t rows, bool turned, DType dtype = DType::F32) {
    NodeRef x = b_.param(0, {rows, 64}, dtype);
    NodeRef w = turned ? b_.param(1, {96, 64}, dtype) : b_.param(1, {64, 96}, dtype);
    return b_.matmul(x, turned ? b_.permute(w, {1, 0}) : w);
  }
  size_t steps(NodeRef value, std::vector<bool> constants) {
    ScheduleOptions options;
    options.constants = std::move(constants);
    const ScheduleOutput out[] = {{value}};
    return make_schedule(out, cpu, options).steps.size();
  }
};

TEST_F(ConstantsTest, AreWhatDependsOnConstantInputsAlone) {
  NodeRef w = b_.param(1, {4, 4}), x = b_.param(0, {4, 4});
  NodeRef made = g_.mul(w, g_.constant(Value::of(DType::F32, 3)));
  const ConstantValues constants({false, true});
  EXPECT_TRUE(constants.contain(w) && constants.contain(made));
  EXPECT_TRUE(constants.contain(b_.permute(made, {1, 0})));
  EXPECT_FALSE(constants.contain(x) || constants.contain(g_.add(made, x)));
  EXPECT_FALSE(constants.contain(b_.param(2, {4, 4}))) << "beyond what is known";
  EXPECT_FALSE(ConstantValues({}).contain(g_.constant(Value::of(DType::F32, 3))));
}

TEST_F(ConstantsTest, ArePackedForFewRows) {
  for (const bool turned : {false, true}) {
    EXPECT_EQ(steps(product(2, turned), {}), 1U);
    EXPECT_EQ(steps(product(2, turned), {false, true}), 2U);
    EXPECT_EQ(steps(product(2, turned), {true, false}), 1U);
  }
  EXPECT_EQ(steps(product(1, true), {false, true}), 1U) << "read once, packing gains nothing";
}

}  // namespace
}  // namespace weft
