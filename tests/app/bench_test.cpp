// The benchmarks run and count; how fast is never asserted here.
#include <gtest/gtest.h>

#include "weft/app/bench.h"
#include "weft/base/context.h"

namespace weft {
namespace {

double value_of(const BenchRows& rows, const std::string& name) {
  for (const BenchRow& row : rows) {
    if (row.name == name) return row.value;
  }
  ADD_FAILURE() << "no row is called " << name;
  return 0;
}

BenchRows scheduled(const std::string& model) {
  Context context;
  const Session session{context, stdout, stderr};
  return bench_schedule(session, {.what = "schedule", .model = model, .repeats = 1});
}

TEST(Bench, MedianOfAFew) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({}), 0);
  int calls = 0;
  EXPECT_GE(median_seconds(3, [&] { ++calls; }), 0);
  EXPECT_EQ(calls, 4);
}

// tinygrad captures 127 kernels for this step and 1115 for GPT-2's; half of that is the goal.
TEST(Bench, AnMnistStepTakesFewKernels) {
  const double kernels = value_of(scheduled("mnist"), "mnist kernels");
  EXPECT_GT(kernels, 10);
  EXPECT_LE(kernels, 63);
}

TEST(Bench, SlowAGpt2StepTakesFewKernels) {
  const double kernels = value_of(scheduled("gpt2"), "gpt2 kernels");
  EXPECT_GT(kernels, 100);
  EXPECT_LE(kernels, 557);
}

}  // namespace
}  // namespace weft
