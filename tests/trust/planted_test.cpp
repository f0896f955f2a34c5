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

void expect_found(const test::PlantedRule& wrong) {
  SCOPED_TRACE(wrong.rule->name);
  const Repro repro = parse_repro(wrong.repro, wrong.rule->name);
  Graph graph;
  Case failing{program_of(graph, repro), options_of(repro, {}), {}};
  EXPECT_TRUE(run_program(failing.program, failing.options).passed());
  const test::Planted planted(*wrong.rule);
  failing.outcome = run_program(failing.program, failing.options);
  ASSERT_FALSE(failing.outcome.passed()) << "the program does not show it";
  const Bisection found = bisected(failing);
  ASSERT_EQ(found.culprits.size(), 1u) << failing.outcome.text();
  EXPECT_EQ(found.culprits[0].name, wrong.rule->name);
  EXPECT_EQ(kind_name(found.culprits[0].kind), "rule");
  const Case small = reduced(graph, failing, {}, &found.without);
  EXPECT_LE(lines_of(small.program), kMostLines) << print_graph(small.program.roots);
  EXPECT_TRUE(small.outcome.like(failing.outcome)) << small.outcome.text();
  ::testing::Test::RecordProperty(wrong.rule->name, static_cast<int>(lines_of(small.program)));
}

TEST(Planted, NothingFailsWithoutThem) { EXPECT_FALSE(first_failure(60)); }

TEST(Planted, OneIsFoundAndReduced) { expect_found(test::planted_rules()[2]); }

TEST(Planted, SlowAllAreFoundAndReduced) {
  EXPECT_GE(test::planted_rules().size(), 20u);
  for (const test::PlantedRule& wrong : test::planted_rules()) expect_found(wrong);
}

/// The fuzzer comes by them by itself.
TEST(Planted, SlowFuzzingFindsOne) {
  const test::Planted planted(*test::planted_rules()[7].rule);
  EXPECT_TRUE(first_failure(2000));
}

}  // namespace
}  // namespace weft::trust
