// The benchmarks run and count; how fast is never asserted here.
#include <gtest/gtest.h>

#include "weft/app/bench.h"
#include "weft/app/bench_models.h"
#include "weft/app/commands.h"
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

using Benchmark = void (*)(const Session&, const BenchOptions&, BenchReport);

BenchRows rows_of(Benchmark run, Context& context, const BenchOptions& options) {
  BenchRows rows;
  run({context, stdout, stderr}, options, [&](const BenchRow& row) { rows.push_back(row); });
  return rows;
}

BenchRows scheduled(const std::string& model, const char* device = "CPU", Options options = {}) {
  options.dev = device;
  Context context(options);
  return rows_of(bench_schedule, context, {.what = "schedule", .model = model, .repeats = 1});
}

TEST(Bench, MedianOfAFew) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({}), 0);
  int calls = 0;
  EXPECT_GE(median_seconds(3, [&] { ++calls; }), 0);
  EXPECT_EQ(calls, 4);
}

TEST(Bench, TheNullDeviceOfAMachine) {
  Context context(Options{});
  const auto null_device = [&](std::string_view device) {
    return weft::null_device(context, device);
  };
  EXPECT_EQ(null_device("CPU"), "NULL");
  EXPECT_EQ(null_device("null"), "NULL");
  EXPECT_EQ(null_device("x86"), "NULL:X86");
  EXPECT_EQ(null_device("NULL:X86"), "NULL:X86");
  EXPECT_EQ(null_device("cpu:c"), "NULL:C");
  EXPECT_EQ(null_device("cpu:c:1"), "NULL:C:1");
  EXPECT_EQ(null_device("ptx"), "NULL:PTX");
  EXPECT_EQ(null_device("SIM"), "NULL") << "it runs the CPU's kernels";
  EXPECT_EQ(null_device("opencl:1"), "OPENCL:1") << "nothing else has its kernels";
}

// The stages of the device that was asked for, and what a kernel takes.
TEST(Bench, MachineCodeIsTimedByStage) {
  const BenchRows rows = scheduled("mnist", "NULL:X86");
  EXPECT_GT(value_of(rows, "mnist median kernel"), 0);
  for (const char* stage :
       {"optimize", "lower", "codegen.select", "codegen.allocate", "codegen.encode", "load"})
    EXPECT_GT(value_of(rows, strformat("mnist span {}", stage)), 0) << stage;
}

// Captured once for every length, and beside functions of one length.
TEST(Bench, SlowLengthsAreCompiledOnce) {
  Context context(Options{});
  ContextScope scope(context);
  const BenchRows rows =
      rows_of(bench_lengths, context, {.what = "lengths", .repeats = 1, .quick = true});
  int functions = 0;
  for (const BenchRow& row : rows) {
    EXPECT_GT(row.value, 0) << row.name;
    if (row.unit != "compiled") continue;
    ++functions;
    EXPECT_EQ(row.note, "0 more for other lengths") << row.name;
  }
  EXPECT_EQ(functions, 13);
  EXPECT_EQ(rows.back().name, strformat("geometric mean of {} rows", 4 * functions));
}

// Nobody waits for the last row to see the first.
TEST(Bench, LengthsAreReportedAsTheyAreMeasured) {
  Context context(Options{});
  ContextScope scope(context);
  std::vector<int64_t> launched;
  bench_lengths(
      {context, stdout, stderr},
      {.what = "lengths", .repeats = 1, .which = "gelu", .size = 3, .quick = true},
      [&](const BenchRow&) { launched.push_back(context.tracer().value(Counter::Kernels)); });
  ASSERT_EQ(launched.size(), 3);  // kernels, one length, all of them
  EXPECT_GT(launched[0], 0);
  EXPECT_GT(launched[1], launched[0]);
}

// tinygrad captures 127 kernels for this step and 1115 for GPT-2's; half of that is the goal.
TEST(Bench, AnMnistStepTakesFewKernels) {
  Options options;
  options.deterministic = true;  // Winograd's transforms, where a machine gains by them, are more
  const double kernels = value_of(scheduled("mnist", "CPU", options), "mnist kernels");
  EXPECT_GT(kernels, 10);
  EXPECT_LE(kernels, 63);
}

TEST(Bench, SlowAGpt2StepTakesFewKernels) {
  const double kernels = value_of(scheduled("gpt2"), "gpt2 kernels");
  EXPECT_GT(kernels, 100);
  // The gradient of what goes into the last product reads the vocabulary's matrix in chunks of 64
  // rows, in two blocks of columns (schedule/row_products.h): rounds of one kernel.
  constexpr int kRounds = 2 * (50257 / 64);
  EXPECT_LE(kernels, 557 + kRounds);
}

}  // namespace
}  // namespace weft
