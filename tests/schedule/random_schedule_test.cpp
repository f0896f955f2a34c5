// Random tensor graphs through schedule, lower and the interpreter give the oracle's bits.
#include <gtest/gtest.h>

#include "tests/support/array_printer.h"
#include "tests/support/compiler/schedule_runner.h"
#include "tests/support/random_graph.h"
#include "weft/base/context.h"
#include "weft/base/error.h"

namespace weft {
namespace {

struct Outcome {
  std::vector<eval::Array> got, expected;
  std::string error;
  bool wrong() const { return !error.empty() || got != expected; }
};

Outcome compare(Context& context, const RandomGraph& r, const testing::RunOptions& options) {
  Outcome out;
  out.expected = eval::evaluate(r.roots, r.inputs);
  std::vector<ScheduleOutput> outputs;
  for (NodeRef n : r.roots) outputs.push_back({n});
  try {
    std::vector<eval::Array> params = r.inputs.params;
    out.got = testing::run_graph(context, outputs, params, {}, options);
  } catch (const Error& error) {
    out.error = error.what();
  }
  return out;
}

/// Compares `count` graphs; the first one that differs is shrunk and shown.
void expect_equal(uint64_t count, const RandomGraphOptions& graphs,
                  const testing::RunOptions& options) {
  Context context;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Graph g;
    RandomGraph r = random_graph(g, seed, graphs);
    if (!compare(context, r, options).wrong()) continue;
    r = shrink(g, r, [&](const RandomGraph& x) { return compare(context, x, options).wrong(); });
    const Outcome o = compare(context, r, options);
    FAIL() << "seed " << seed << "\n"
           << describe(r) << "expected " << ::testing::PrintToString(o.expected) << "\ngot      "
           << ::testing::PrintToString(o.got) << "\n"
           << o.error;
  }
}

RandomGraphOptions pinned() {
  RandomGraphOptions graphs;
  graphs.transcendental = false;
  graphs.float_sums = false;
  return graphs;
}

TEST(RandomSchedule, FusedKernelsGiveTheOraclesBits) {
  testing::RunOptions options;
  options.optimize = false;
  expect_equal(400, pinned(), options);
}

TEST(RandomSchedule, EveryStepByItselfGivesTheOraclesBits) {
  testing::RunOptions options;
  options.optimize = false;
  options.schedule.fuse = false;
  expect_equal(200, pinned(), options);
}

TEST(RandomSchedule, OptimizedKernelsAreExactOnSmallIntegers) {
  RandomGraphOptions graphs;
  graphs.exact = true;
  expect_equal(400, graphs, {});
}

}  // namespace
}  // namespace weft
