// Operands in the order in which vectors read them.
#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

class PackOperands : public ScheduleTest {
 protected:
  static Target cpu(bool wide) {
    CpuFeatures features;
    features.set(CpuFeature::Avx2, true);
    features.set(CpuFeature::Fma, true);
    for (const CpuFeature f :
         {CpuFeature::Avx512f, CpuFeature::Avx512bw, CpuFeature::Avx512dq, CpuFeature::Avx512vl})
      features.set(f, wide);
    return make_target("x86", features, 2);
  }

  /// The gradient of depthwise weights of 3 x 3, zeros around images of `size` x `size`: rows are
  /// too short for vectors, and each element is read nine times.
  NodeRef depthwise_gradient(int64_t size, int64_t stride = 1) {
    const int64_t n = 2, c = 64, places = (size + 2 - 3) / stride + 1;
    NodeRef x = b_.pad(b_.param(0, {n, c, size, size}), {0, 0, 1, 1}, {0, 0, 1, 1});
    x = b_.window(b_.window(x, 2, 3, stride, 1), 3, 3, stride, 1);
    const GraphBuilder::Ints all{n, c, places, places, 3, 3};
    NodeRef g = b_.param(1, {n, c, places, places});
    return b_.reduce(g_.mul(x, b_.broadcast(g, {n, c, places, places, 1, 1}, all)), Fold::Add,
                     {0, 2, 3});
  }

  int64_t copying_kernels(NodeRef y, const Target& target) {
    const ScheduleOutput out[] = {{y}};
    const Schedule s = make_schedule(out, target);
    return std::ranges::count_if(s.kernels,
                                 [](const Kernel& k) { return k.name.starts_with("each"); });
  }
};

TEST_F(PackOperands, TransposesInRegistersPayWhereElementsAreReadAFewTimes) {
  EXPECT_EQ(copying_kernels(depthwise_gradient(7), cpu(true)), 1)
      << "of both operands, by one kernel";
  EXPECT_EQ(copying_kernels(depthwise_gradient(7), cpu(false)), 0) << "one element at a time";
  EXPECT_EQ(copying_kernels(depthwise_gradient(7, 2), cpu(true)), 0) << "read twice";
}

TEST_F(PackOperands, KeepValues) {
  for (const bool wide : {false, true}) {
    const Target target = cpu(wide);
    for (const int64_t size : {7, 9, 14})
      check({{depthwise_gradient(size)}}, 1e-5, {.schedule = {}, .target = &target});
  }
}

}  // namespace
}  // namespace weft
