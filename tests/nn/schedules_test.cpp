#include "weft/nn/schedules.h"

#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/nn/pytorch.h"
#include "weft/nn/optim.h"

namespace weft::nn {
namespace {

struct Case {
  const char* name;
  Schedule schedule;
};

std::vector<Case> cases() {
  return {
      {"step_decay", step_decay(3, 0.5)},
      {"multi_step", multi_step({2, 3, 7}, 0.5)},
      {"exponential", exponential(0.9)},
      {"linear", linear(6, 0.25)},
      {"polynomial", polynomial(8, 2)},
      {"cosine", cosine(11, 0.1)},
      {"cosine_restarts", cosine_restarts(3, 2, 0.1)},
      {"one_cycle", one_cycle(2, 12)},
      {"one_cycle_linear",
       one_cycle(2, 12, {.rise = 0.5, .start_divisor = 10, .end_divisor = 100, .cosine = false})},
      {"in_sequence", warmup(4, cosine(8), 0.1)},
      {"in_sequence", in_sequence({linear(4, 0.1), cosine(8)}, {4})},
  };
}

TEST(Schedules, LikePyTorch) {
  for (const Case& c : cases()) {
    const std::vector<double>& wanted = pytorch_values(c.name);
    for (size_t step = 0; step < wanted.size(); ++step) {
      EXPECT_NEAR(c.schedule(0.5, static_cast<int64_t>(step)), wanted[step], 1e-6)
          << c.name << " at step " << step;
    }
  }
}

TEST(Schedules, StayAfterTheirEnd) {
  EXPECT_EQ(constant()(0.5, 100), 0.5);
  EXPECT_EQ(cosine(10, 0.125)(0.5, 100), 0.125);
  EXPECT_EQ(linear(10, 0, 2)(0.5, 100), 1);
  EXPECT_EQ(polynomial(10)(0.5, 100), 0);
  EXPECT_NEAR(one_cycle(2, 10)(0.5, 100), 2 / 25.0 / 1e4, 1e-12);
  EXPECT_NEAR(cosine_restarts(4)(0.5, 4000), 0.5, 1e-12);
}

TEST(Schedules, SchedulerSetsEachRateByItsOwnFirst) {
  Tensor p = some_input({2}), q = some_input({2});
  OptimizerGroup group(SGD({p}, {.lr = 0.5}), SGD({q}, {.lr = 0.25}));
  LrScheduler scheduler(group, linear(4, 0.5));
  EXPECT_EQ(scheduler.rates(), (std::vector<double>{0.25, 0.125}));
  for (int step = 0; step < 2; ++step) scheduler.step();
  EXPECT_EQ(scheduler.rates(), (std::vector<double>{0.375, 0.1875}));
  EXPECT_EQ(group[1].lr(), 0.1875);
}

TEST(Schedules, ResumesFromSavedState) {
  Tensor p = some_input({2});
  SGD first({p}, {.lr = 0.5}), second({p}, {.lr = 0.5});
  LrScheduler a(first, exponential(0.5)), b(second, exponential(0.5));
  a.step();
  load_state_dict(b, state_dict(a));
  a.step();
  b.step();
  EXPECT_EQ(a.steps(), 2);
  EXPECT_EQ(second.lr(), first.lr());
}

TEST(Schedules, ReduceOnPlateau) {
  Tensor p = some_input({2});
  SGD sgd({p}, {.lr = 0.5});
  ReduceOnPlateau plateau(
      sgd, {.factor = 0.5, .patience = 1, .threshold = 0.1, .cooldown = 1, .least = 0.1});
  std::vector<double> rates;
  for (const double loss :
       {3.0, 2.0, 1.95, 1.9, 1.85, 1.84, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5, 1.5}) {
    plateau.step(loss);
    rates.push_back(sgd.lr());
  }
  const std::vector<double>& wanted = pytorch_values("plateau");
  ASSERT_EQ(rates.size(), wanted.size());
  for (size_t i = 0; i < rates.size(); ++i) EXPECT_NEAR(rates[i], wanted[i], 1e-7) << i;
}

TEST(Schedules, PlateauOfWhatShouldGrow) {
  Tensor p = some_input({2});
  SGD sgd({p}, {.lr = 0.5});
  ReduceOnPlateau plateau(sgd, {.factor = 0.5, .patience = 0, .larger_is_better = true});
  for (const double accuracy : {0.1, 0.2, 0.3}) plateau.step(accuracy);
  EXPECT_EQ(sgd.lr(), 0.5);
  plateau.step(0.25);
  EXPECT_EQ(sgd.lr(), 0.25);
}

TEST(Schedules, ErrorsSayWhatIsWrong) {
  EXPECT_ERROR(step_decay(0), "the number of steps must be at least 1, not 0");
  EXPECT_ERROR(exponential(-1), "factors must not be below 0, got -1");
  EXPECT_ERROR(multi_step({3, 2}), "the steps must ascend");
  EXPECT_ERROR(one_cycle(1, 1), "a cycle must be of 2 steps at least, not 1");
  EXPECT_ERROR(one_cycle(1, 9, {.rise = 1}), "within (0, 1), not 1");
  EXPECT_ERROR(in_sequence({constant()}, {1}), "1 schedules need 0 milestones, got 1");
  EXPECT_ERROR(in_sequence({constant(), constant(), constant()}, {2, 1}), "must ascend");
}

}  // namespace
}  // namespace weft::nn
