// Miscompiles on purpose: each has to be found, named and reduced to a few lines.
#include <gtest/gtest.h>

#include "tests/trust/planted_rules.h"
#include "weft/base/context.h"
#include "weft/graph/print.h"
#include "weft/trust/fuzz.h"
#include "weft/trust/small.h"

namespace weft::trust {
namespace {

constexpr size_t kMostLines = 10;

/// What the fuzzer finds within so many programs.
std::optional<FuzzFailure> first_failure(int64_t programs) {
  FuzzPlan plan;
  plan.count = programs;
  plan.failures = 1;
  plan.devices = {"CPU:INTERP", "CPU:X86"};
  plan.options = Options::from_environment();
  std::optional<FuzzFailure> out;
  fuzz(plan, [&out](const FuzzFailure& f) { out = f; });
  return out;
}

Bisection bisected(const Case& failing) {
  return bisect(failing.options, [&](const Settings& settings) {
    const Outcome now = run_program(failing.program, with_settings(failing.options, settings));
    if (now.passed()) return Verdict::Passes;
    return now.like(failing.outcome) ? Verdict::Fails : Verdict::Unclear;
  });
}

void expect_found(const Rule& rule, int64_t programs) {
  SCOPED_TRACE(rule.name);
  const test::Planted planted(rule);
  const std::optional<FuzzFailure> failure = first_failure(programs);
  ASSERT_TRUE(failure) << "no program of " << programs << " shows it";
  Graph graph;
  const Case failing{fuzz_program(graph, failure->seed), failure->options, failure->outcome};
  const Bisection found = bisected(failing);
  ASSERT_EQ(found.culprits.size(), 1u) << failure->outcome.text();
  EXPECT_EQ(found.culprits[0].name, rule.name);
  EXPECT_EQ(kind_name(found.culprits[0].kind), "rule");
  const Case small = reduced(graph, failing, {}, &found.without);
  EXPECT_LE(lines_of(small.program), kMostLines) << print_graph(small.program.roots);
  EXPECT_TRUE(small.outcome.like(failure->outcome)) << small.outcome.text();
  ::testing::Test::RecordProperty(rule.name, static_cast<int>(lines_of(small.program)));
}

TEST(Planted, NothingFailsWithoutThem) { EXPECT_FALSE(first_failure(200)); }

TEST(Planted, FewAreFoundAndReduced) {
  for (size_t i : {0, 7, 16}) expect_found(test::planted_rules()[i], 2000);
}

TEST(Planted, SlowAllAreFoundAndReduced) {
  EXPECT_GE(test::planted_rules().size(), 20u);
  for (const Rule& rule : test::planted_rules()) expect_found(rule, 50000);
}

}  // namespace
}  // namespace weft::trust
