// Kernels on machines that bind few buffers.
#include "tests/device/programs.h"
#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

/// Most buffers of one kernel.
size_t most_bound(const Schedule& s) {
  size_t most = 0;
  for (const ScheduleStep& step : s.steps) most = std::max(most, step.buffers.size());
  return most;
}

TEST_F(ScheduleTest, KernelsTakeNoMoreBuffersThanTheMachineBinds) {
  Target few = kTarget;
  few.most_buffers = 8;
  testing::RunOptions options;
  options.target = &few;
  NodeRef sum = b_.constant(0), product = nullptr;
  std::vector<NodeRef> parts;
  for (int64_t i = 0; i < 40; ++i) {
    NodeRef x = b_.param(i, {6, 5});
    parts.push_back(g_.mul(x, b_.constant(2)));
    sum = g_.add(sum, g_.mul(x, x));
    product = product ? g_.mul(product, x) : x;
  }
  const int64_t axis[] = {0};
  NodeRef joined = g_.make({Op::Cat, DType::F32, parts, axis});
  NodeRef inner = b_.matmul(b_.permute(sum, {1, 0}), sum);
  const std::vector<std::vector<ScheduleOutput>> cases = {
      {{sum}}, {{sum}, {product}}, {{joined}}, {{b_.reduce(sum, Fold::Add, {0, 1})}}, {{inner}}};
  for (const std::vector<ScheduleOutput>& outputs : cases) {
    SCOPED_TRACE(&outputs - cases.data());
    EXPECT_GT(most_bound(make_schedule(outputs, kTarget)), 8u) << "without a limit";
    EXPECT_LE(most_bound(make_schedule(outputs, few)), 8u);
    check(outputs, 1e-5, options);
  }
  NodeRef chain = g_.add(g_.mul(b_.param(0, {6, 5}), b_.param(1, {6, 5})), b_.param(2, {6, 5}));
  EXPECT_EQ(make_schedule(std::vector<ScheduleOutput>{{chain}}, few).steps.size(), 1u);
}

class FewBuffers : public ScheduleTest, public ::testing::WithParamInterface<const char*> {};

// An adapter of WebGPU says how many it binds; CUDA has room for so many parameters.
TEST_P(FewBuffers, TakesMoreInputsThanAKernel) {
  const char* device = GetParam();
  if (const std::string why = testing::missing(device); !why.empty()) GTEST_SKIP() << why;
  const testing::OpenedDevice opened(context_, device);
  const int64_t most = static_cast<Device&>(opened).target().most_buffers;
  ASSERT_LT(most, 100'000);
  NodeRef sum = b_.constant(0);
  for (int64_t i = 0; i < most + 100; ++i) sum = g_.add(sum, b_.param(i, {6, 5}));
  testing::RunOptions options;
  options.device = device;
  check({{sum}}, 1e-5, options);
}
INSTANTIATE_TEST_SUITE_P(Devices, FewBuffers, ::testing::Values("WEBGPU", "PTX"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace weft
