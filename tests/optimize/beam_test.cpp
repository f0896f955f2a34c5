// Beam search with a fake machine: planted times, planted errors, a clock that moves by itself.
#include "weft/optimize/beam.h"

#include <functional>

#include "tests/optimize/kernels.h"
#include "weft/base/hash.h"
#include "weft/optimize/passes.h"
#include "weft/optimize/plan_space.h"

namespace weft {
namespace {

using namespace test;

struct Stopped {};

class FakeTrials final : public BeamTrials {
 public:
  explicit FakeTrials(std::function<double(const LoopPlan&)> seconds)
      : seconds_(std::move(seconds)) {}

  std::vector<Made> compile(std::span<const LoopPlan> plans) override {
    std::vector<Made> made;
    for (const LoopPlan& p : plans) {
      plans_.push_back(p);
      made.push_back({!broken(p), code ? code(p) : plans_.size(), spilled(p)});
    }
    return made;
  }
  double sample(size_t plan, double) override {
    if (stop_after >= 0 && samples++ >= stop_after) throw Stopped();
    now += step;
    return seconds_(plans_[plan]);
  }
  bool verify(size_t plan) override { return !wrong(plans_[plan]); }
  double elapsed() override { return now; }

  std::function<bool(const LoopPlan&)> broken = [](const LoopPlan&) { return false; };
  std::function<bool(const LoopPlan&)> wrong = broken;
  std::function<int64_t(const LoopPlan&)> spilled = [](const LoopPlan&) { return 0; };
  std::function<uint64_t(const LoopPlan&)> code;
  int64_t stop_after = -1, samples = 0;
  double now = 0, step = 0;
  size_t compiled() const { return plans_.size(); }

 private:
  std::function<double(const LoopPlan&)> seconds_;
  std::vector<LoopPlan> plans_;
};

const Target& wide() {
  static const Target target = target_with_bits(512);
  return target;
}
Kernel product() { return matmul_kernel(96, 96, 96, false, false); }

BeamResult search(FakeTrials& trials, const BeamOptions& options = {}) {
  BeamResult result;
  beam_search(product(), wide(), options, trials, result);
  return result;
}

/// Slower by each step that separates a plan's first range from four copies.
double valley(const LoopPlan& plan) {
  return 1e-3 * (10 + static_cast<double>(std::abs(plan.ranges[0].unroll - 3)));
}

TEST(Beam, finds_the_planted_plan) {
  FakeTrials trials(valley);
  const BeamResult r = search(trials);
  EXPECT_TRUE(r.searched && r.finished);
  EXPECT_NE(r.analytic.ranges[0].unroll, 3);
  EXPECT_EQ(r.best.ranges[0].unroll, 3) << text(r.best);
  EXPECT_LT(r.best_seconds, r.analytic_seconds);
  EXPECT_EQ(r.refused, 0);
}

TEST(Beam, the_same_times_give_the_same_plan) {
  FakeTrials one(valley), two(valley);
  EXPECT_EQ(search(one).best, search(two).best);
  EXPECT_EQ(one.compiled(), two.compiled());
}

TEST(Beam, what_is_not_faster_changes_nothing) {
  FakeTrials trials([](const LoopPlan&) { return 1e-3; });
  const BeamResult r = search(trials);
  EXPECT_EQ(r.best, r.analytic);
  EXPECT_EQ(r.best_seconds, r.analytic_seconds);
  EXPECT_GT(r.timed, 0);
}

TEST(Beam, noise_that_wins_half_of_the_time_changes_nothing) {
  uint64_t seed = 1;
  FakeTrials trials(
      [&](const LoopPlan&) { return 1e-3 + 1e-5 * static_cast<double>(hash_mix(seed++) % 100); });
  const BeamResult r = search(trials);
  EXPECT_EQ(r.best, r.analytic) << text(r.best);
}

// Of plans that take the same, but for noise, two searches choose one.
TEST(Beam, two_searches_agree) {
  const auto noisy = [](uint64_t seed) {
    return [seed](const LoopPlan& p) mutable {
      return valley(p) * (1 + 1e-4 * static_cast<double>(hash_mix(seed++) % 100));
    };
  };
  FakeTrials first(noisy(0));
  const BeamResult expected = search(first);
  EXPECT_EQ(expected.best.ranges[0].unroll, 3);
  for (uint64_t seed = 1; seed < 8; ++seed) {
    FakeTrials trials(noisy(seed * 1000000));
    const BeamResult r = search(trials);
    EXPECT_EQ(text(r.best), text(expected.best)) << seed;
    EXPECT_NEAR(r.best_seconds, expected.best_seconds, 0.01 * expected.best_seconds);
  }
}

// In each family of equal code the plan that is kept is the one nearest to the analytic.
TEST(Beam, equal_kernels_are_one_plan) {
  FakeTrials trials(valley);
  trials.code = [](const LoopPlan& p) {
    return hash_mix(static_cast<uint64_t>(p.ranges[0].unroll));
  };
  const BeamResult r = search(trials);
  LoopPlan nearest = r.analytic;
  nearest.ranges[0].unroll = 3;
  EXPECT_EQ(text(r.best), text(nearest));
}

TEST(Beam, a_plan_that_computes_something_else_is_refused) {
  FakeTrials trials(valley);
  trials.wrong = [](const LoopPlan& p) { return p.ranges[0].unroll == 3; };
  const BeamResult r = search(trials);
  EXPECT_GT(r.refused, 0);
  EXPECT_NE(r.best.ranges[0].unroll, 3);
}

TEST(Beam, plans_that_do_not_compile_or_spill_are_not_timed) {
  for (const bool spills : {false, true}) {
    FakeTrials trials([](const LoopPlan& p) {
      EXPECT_NE(p.ranges[0].unroll, 3);
      return valley(p);
    });
    const auto planted = [](const LoopPlan& p) { return p.ranges[0].unroll == 3; };
    if (spills)
      trials.spilled = [=](const LoopPlan& p) { return planted(p) ? 100 : 0; };
    else
      trials.broken = planted;
    EXPECT_NE(search(trials).best.ranges[0].unroll, 3);
  }
}

TEST(Beam, ends_when_its_time_is_over) {
  FakeTrials trials(valley);
  trials.step = 0.25;
  BeamOptions options;
  options.seconds = 5;
  const BeamResult r = search(trials, options);
  EXPECT_TRUE(r.finished);
  // What has begun is brought to an end: a duel's fewest pairs, once more at the end.
  EXPECT_LE(trials.now, options.seconds + 0.25 * 2 * 12 * 2);
}

// Wherever it is ended, the best so far has won a duel and computes the right values.
TEST(Beam, what_was_found_survives_the_end_of_a_search) {
  int64_t found = 0;
  for (int64_t after = 0; after < 200; after += 7) {
    FakeTrials trials(valley);
    trials.stop_after = after;
    BeamResult r;
    try {
      beam_search(product(), wide(), {}, trials, r);
    } catch (const Stopped&) {
      EXPECT_FALSE(r.finished);
    }
    EXPECT_TRUE(r.searched);
    EXPECT_TRUE(r.best == r.analytic || valley(r.best) < valley(r.analytic));
    found += r.best != r.analytic;
  }
  EXPECT_GT(found, 0);
}

TEST(Beam, starts_from_what_was_found_before) {
  FakeTrials first(valley);
  BeamOptions options;
  options.known.push_back(search(first).best);
  options.width = 1;
  FakeTrials second(valley);
  EXPECT_EQ(search(second, options).best, options.known[0]);
}

// Every plan near the analytic one keeps the kernel's values.
TEST(LoopPlan, neighbours_keep_values) {
  for (const Kernel& k :
       {matmul_kernel(13, 21, 18, false, false), matmul_kernel(7, 32, 9, true, true),
        conv_kernel({2, 3, 8, 9, 4, 3}, false, ConvPart::Forward),
        conv_kernel({2, 3, 8, 9, 4, 3}, false, ConvPart::Input)}) {
    auto state = optimize::open_kernel(k, wide(), {});
    ASSERT_TRUE(state && optimize::prepare_choice(*state));
    const optimize::PlanSpace space(state->info, wide());
    std::vector<LoopPlan> plans = space.starts();
    for (LoopPlan& near : space.neighbours(space.analytic())) plans.push_back(std::move(near));
    EXPECT_GT(plans.size(), 5u);
    const Buffers buffers = buffers_for(k), expected = run_kernel(k.sink, buffers, {});
    for (size_t i = 0; i < plans.size(); i += 3) {
      OptimizeReport report;
      const Kernel made = optimize_kernel(k, wide(), {true, &report, &plans[i]});
      EXPECT_FALSE(report.foreign) << text(plans[i]);
      verify_kernel(made, "optimize");
      const Buffers got = run_kernel(made.sink, buffers, {});
      for (size_t e = 0; e < expected[0].size(); ++e)
        ASSERT_EQ(expected[0][e], got[0][e]) << text(plans[i]) << " at " << e;
    }
  }
}

TEST(LoopPlan, the_analytic_plan_gives_the_analytic_kernel) {
  const Kernel k = product();
  auto state = optimize::open_kernel(k, wide(), {});
  ASSERT_TRUE(state && optimize::prepare_choice(*state));
  const LoopPlan plan = optimize::PlanSpace(state->info, wide()).analytic();
  EXPECT_EQ(print_graph(optimize_kernel(k, wide(), {}).sink),
            print_graph(optimize_kernel(k, wide(), {true, nullptr, &plan}).sink));
}

TEST(LoopPlan, foreign_and_impossible_plans_are_ignored) {
  const Kernel k = product();
  auto state = optimize::open_kernel(k, wide(), {});
  ASSERT_TRUE(state && optimize::prepare_choice(*state));
  const LoopPlan good = optimize::PlanSpace(state->info, wide()).analytic();
  std::vector<LoopPlan> bad(9, good);
  bad[0].loops ^= 1;
  bad[1].ranges.pop_back();
  bad[2].ranges.clear();  // there is no matrix unit
  bad[3].ranges[0].unroll = 97;
  bad[4].ranges[1].lanes = 3;
  bad[5].ranges[0] = bad[5].ranges[1] = {16, 1};
  bad[6].innermost = 40;
  bad[7].ranges[2].lanes = 0;
  bad[8].ranges[0].unroll = -1;
  const std::string analytic = print_graph(optimize_kernel(k, wide(), {}).sink);
  for (const LoopPlan& plan : bad) {
    OptimizeReport report;
    const Kernel made = optimize_kernel(k, wide(), {true, &report, &plan});
    EXPECT_TRUE(report.foreign) << text(plan);
    EXPECT_EQ(print_graph(made.sink), analytic) << text(plan);
  }
}

TEST(LoopPlan, text_reads_back) {
  LoopPlan plan;
  plan.loops = 0xfedcba9876543210;
  plan.ranges = {{1, 4}, {16, 2}};
  plan.innermost = 1;
  plan.stream = -3;
  plan.borders = false;
  EXPECT_EQ(text(plan), "loops=fedcba9876543210 tiles=1x4,16x2 innermost=1 stream=-3 borders=0");
  EXPECT_EQ(parse_loop_plan(text(plan)), plan);
  plan.ranges.clear();
  EXPECT_EQ(parse_loop_plan(text(plan)), plan);
}

TEST(LoopPlan, what_is_no_plan_is_not_read) {
  const std::string good = "loops=fedcba9876543210 tiles=1x4,16x2 innermost=1 stream=-3 borders=0";
  ASSERT_TRUE(parse_loop_plan(good));
  for (size_t i = 0; i < good.size(); ++i) {
    EXPECT_FALSE(parse_loop_plan(good.substr(0, i))) << i;
    EXPECT_FALSE(parse_loop_plan(good.substr(0, i) + "\xff" + good.substr(i + 1))) << i;
  }
  for (const char* bad :
       {"", " ", "loops=0 tiles=1x1 innermost=0 stream=0 borders=1",
        "loops=fedcba9876543210 tiles= innermost=1 stream=0 borders=0",
        "loops=fedcba9876543210 tiles=1x4,,16x2 innermost=1 stream=0 borders=0",
        "loops=fedcba9876543210 tiles=0x4 innermost=1 stream=0 borders=0",
        "loops=fedcba9876543210 tiles=1x99999999999999999999 innermost=1 stream=0 borders=0",
        "loops=fedcba9876543210 tiles=1x4 innermost=-2 stream=0 borders=0",
        "loops=fedcba9876543210 tiles=1x4 innermost=01 stream=0 borders=0",
        "loops=fedcba9876543210 tiles=1x4 innermost=1 stream=9999 borders=0",
        "loops=fedcba9876543210 tiles=1x4 innermost=1 stream=0 borders=2",
        "loops=fedcba9876543210 tiles=1x4 innermost=1 stream=0 borders=0 "})
    EXPECT_FALSE(parse_loop_plan(bad)) << bad;
  std::string many = "loops=fedcba9876543210 tiles=1x1";
  for (int i = 0; i < 100; ++i) many += ",1x1";
  EXPECT_FALSE(parse_loop_plan(many + " innermost=1 stream=0 borders=0"));
}

}  // namespace
}  // namespace weft
