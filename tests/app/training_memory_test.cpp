// Memory of training steps: as much as the printed plan says, and no more after many steps.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "tests/nn/close.h"
#include "weft/app/bench_models.h"
#include "weft/base/context.h"
#include "weft/base/log.h"
#include "weft/base/sanitizers.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"
#include "weft/run/realize.h"
#include "weft/run/stats.h"
#include "weft/tensor/jit.h"

namespace weft {
namespace {

struct Plan {
  long long bytes = 0, inputs = 0;
};

/// The last memory plan that was logged.
void note_plan(void* user, std::string_view text) {
  const size_t at = text.rfind("plan: ");
  Plan plan;
  if (at == std::string_view::npos) return;
  if (std::sscanf(std::string(text.substr(at)).c_str(), "plan: %lld bytes = %lld inputs",
                  &plan.bytes, &plan.inputs) == 2)
    *static_cast<Plan*>(user) = plan;
}

void expect_peak_as_planned(const char* name) {
  Options options = Options::from_environment();
  options.dev = "NULL";
  Plan plan;
  Context context(options);
  const ContextScope scope(context);
  const auto model = make_bench_model(name);
  const std::vector<Tensor> changed = model->step();
  collect_garbage(context);
  reset_run_stats(context);
  const int64_t before = run_stats(context).memory_live;
  context.log_sink() = {note_plan, &plan};
  context.mutable_options().debug = 2;
  realize(changed);
  ASSERT_GT(plan.bytes, 100'000'000) << name;
  const auto others = static_cast<double>(before - plan.inputs);
  const double measured = static_cast<double>(run_stats(context).memory_peak) - others;
  EXPECT_NEAR(measured, static_cast<double>(plan.bytes), 0.05 * static_cast<double>(plan.bytes))
      << name;
}

TEST(TrainingMemory, TheMeasuredPeakIsThePrintedPlan) { expect_peak_as_planned("mnist"); }
TEST(TrainingMemory, SlowTheMeasuredPeakOfGpt2IsThePrintedPlan) { expect_peak_as_planned("gpt2"); }

/// Bytes of this process that are in memory; 0 where sanitizers keep freed memory from reuse.
int64_t resident() {
  if (kSanitized) return 0;
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, in_memory = 0;
  file >> pages >> in_memory;
  return in_memory * ::sysconf(_SC_PAGESIZE);
}

/// Trains a small network with new data in every step and looks at memory after a tenth of them.
void expect_flat(int64_t steps, bool captured) {
  Options options = Options::from_environment();
  options.dev = "CPU:INTERP";
  Context context(options);
  const ContextScope scope(context);
  Tensor::manual_seed(1);
  nn::Linear first(6, 8), second(8, 3);
  nn::Adam adam({first.weight, first.bias, second.weight, second.bias}, {.lr = 0.001});
  const auto step = [&](const Tensor& x, const Tensor& y) {
    const TrainingScope training;
    adam.zero_grad();
    const Tensor loss = second(first(x).relu().dropout(0.1)).sparse_categorical_crossentropy(y);
    loss.backward();
    std::vector<Tensor> changed = adam.schedule_step();
    adam.zero_grad();
    changed.push_back(loss);
    realize(changed);
    return loss;
  };
  auto jitted = jit(step);
  const auto run = [&](int64_t i) {
    const Tensor x = some_tensor({4, 6}, static_cast<unsigned>(i)), y = Tensor::of({0, 1, 2, 1});
    return (captured ? jitted(x, y) : step(x, y)).item<float>();
  };
  int64_t done = 0;
  for (; done < steps / 10; ++done) ASSERT_TRUE(std::isfinite(run(done)));
  collect_garbage(context);
  const int64_t live = run_stats(context).memory_live, process = resident();
  const size_t nodes = tensor_graph(context).bytes();
  for (; done < steps; ++done) ASSERT_TRUE(std::isfinite(run(done)));
  collect_garbage(context);
  EXPECT_EQ(run_stats(context).memory_live, live);
  // Garbage may gather up to what is worth a sweep.
  EXPECT_LE(tensor_graph(context).bytes(), nodes + (size_t{4} << 20));
  EXPECT_LE(resident(), process + (int64_t{8} << 20)) << "after " << steps << " steps";
}

TEST(TrainingMemory, TenThousandStepsAreFlat) {
  expect_flat(10'000, true);
  expect_flat(1'000, false);
}
TEST(TrainingMemory, SlowAMillionStepsAreFlat) {
  expect_flat(1'000'000, true);
  expect_flat(100'000, false);
}

}  // namespace
}  // namespace weft
