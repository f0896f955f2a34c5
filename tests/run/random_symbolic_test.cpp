// Random graphs with symbolic sizes, realized for several values of their variables: the oracle's
// values each time, and one schedule for all of them.
#include "tests/run/fixture.h"
#include "tests/support/array_printer.h"
#include "weft/base/format.h"
#include "weft/graph/print.h"
#include "weft/trust/random_storages.h"

namespace weft {
namespace {

class RandomSymbolic : public ::testing::Test {
 protected:
  void use(std::string_view device) {
    Options options = Options::from_environment();
    options.dev = testing::device_here(device);
    context_ = std::make_unique<Context>(options);
  }

  /// Graphs of these seeds, `at_once` of them in one realization.
  void expect_equal(uint64_t first, uint64_t count, uint64_t at_once) {
    RandomGraphOptions options;
    options.variables = 2;
    expect_equal(first, count, at_once, options);
  }
  void expect_equal(uint64_t first, uint64_t count, uint64_t at_once, RandomGraphOptions options) {
    options.exact = true;
    for (uint64_t seed = first; seed < first + count; seed += at_once) {
      Graph g;
      std::vector<RandomGraph> graphs;
      for (uint64_t s = seed; s < seed + at_once; ++s)
        graphs.push_back(random_graph(g, s, options));
      if (problem(graphs).empty()) continue;
      std::string text;
      for (const RandomGraph& r : graphs) text += smallest(g, r);
      FAIL() << "seeds from " << seed << "\n" << problem(graphs) << "\n" << text;
    }
  }

 private:
  std::string problem(std::span<const RandomGraph> graphs) {
    const ContextScope scope(*context_);
    clear_run_caches(*context_);
    const int64_t before = run_stats(*context_).schedules.misses;
    for (size_t k = 0; k < graphs[0].bindings.size(); ++k) {
      std::vector<eval::Array> got, wanted;
      try {
        got = values(graphs, k);
      } catch (const Error& error) {
        return error.what();
      }
      for (const RandomGraph& r : graphs)
        for (eval::Array& a : eval::evaluate(r.roots, r.bindings[k]))
          wanted.push_back(std::move(a));
      for (size_t i = 0; i < got.size(); ++i)
        if (got[i] != wanted[i])
          return strformat("binding {}: got {}, expected {}", k, got[i].text(), wanted[i].text());
    }
    const int64_t schedules = run_stats(*context_).schedules.misses - before;
    // Graphs that name the same variable are free to bind it to one value or to several.
    return schedules <= 1 || graphs.size() > 1 ? "" : strformat("{} schedules", schedules);
  }
  std::vector<eval::Array> values(std::span<const RandomGraph> graphs, size_t binding) {
    std::vector<StorageRef> results;
    for (const RandomGraph& r : graphs)
      for (StorageRef& s : storages_of(*context_, r, r.bindings[binding]))
        results.push_back(std::move(s));
    realize(*context_, results);
    std::vector<eval::Array> values;
    for (const StorageRef& s : results) values.push_back(array_of(*s));
    return values;
  }
  std::string smallest(Graph& g, const RandomGraph& r) {
    const auto fails = [this](const RandomGraph& x) { return !problem({&x, 1}).empty(); };
    if (!fails(r)) return "";
    const RandomGraph small = shrink(g, r, fails);
    return describe(small) + problem({&small, 1}) + "\n";
  }

  std::unique_ptr<Context> context_;
};

TEST_F(RandomSymbolic, InterpretedForEveryBinding) {
  use("CPU:INTERP");
  expect_equal(0, 300, 1);
}

TEST_F(RandomSymbolic, MachineCodeForEveryBinding) {
  use("CPU:X86");
  expect_equal(0, 150, 1);
}

/// Of lengths that fill vectors and of shorter ones, which have versions of their own.
TEST_F(RandomSymbolic, LengthsOfSeveralVersions) {
  RandomGraphOptions options;
  options.variables = 1;
  options.longest = 40;
  use("CPU:X86");
  expect_equal(0, 1000, 1, options);
}

TEST_F(RandomSymbolic, CompiledForEveryBinding) {
  use("CPU:C");
  expect_equal(0, 30, 30);
}

TEST_F(RandomSymbolic, SlowManyGraphs) {
  use("CPU:INTERP");
  expect_equal(1000, 50000, 1);
  use("CPU:C");
  if (!HasFailure()) expect_equal(1000, 1000, 50);
}

}  // namespace
}  // namespace weft
