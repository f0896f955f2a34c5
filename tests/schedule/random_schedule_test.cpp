// Random tensor graphs through schedule, lower and the interpreter give the oracle's bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/array_printer.h"
#include "tests/support/compiler/isa_levels.h"
#include "tests/support/compiler/schedule_runner.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/graph/parse.h"
#include "weft/trust/random.h"
#include "weft/trust/random_graph.h"

namespace weft {
namespace {

struct Outcome {
  std::vector<eval::Array> got, expected;
  std::string error;
  bool wrong() const { return !error.empty() || got != expected; }
};

Outcome compare(Context& context, const RandomGraph& r, const testing::RunOptions& options) {
  Outcome out;
  out.expected = r.evaluate();
  std::vector<ScheduleOutput> outputs;
  for (NodeRef n : r.roots) outputs.push_back({n});
  try {
    for (const eval::Inputs& binding : r.bindings) {
      std::vector<eval::Array> params = binding.params;
      for (eval::Array& value :
           testing::run_graph(context, outputs, params, binding.variables, options))
        out.got.push_back(std::move(value));
    }
  } catch (const Error& error) {
    out.error = error.what();
  }
  return out;
}

/// Whether every sum of floats is of integers small enough for any order to give the same. A chain
/// of products may leave them, however small its operands are.
bool sums_are_exact(const RandomGraph& r) {
  std::vector<NodeRef> terms;
  for (NodeRef n : Toposort(r.roots))
    if ((n->op == Op::Reduce || n->op == Op::Scan) && is_float(n->dtype))
      terms.push_back(n->src(0));
  for (const eval::Array& values : r.evaluate(terms)) {
    double most = 0;
    for (double v : values.doubles()) most = std::max(most, std::fabs(v));
    const double exact_up_to = std::ldexp(1, float_digits(values.dtype()));
    if (most * static_cast<double>(values.count()) > exact_up_to) return false;
  }
  return true;
}

/// Compares `count` graphs; the first one that differs is shrunk and shown.
void expect_equal(uint64_t count, const RandomGraphOptions& graphs,
                  const testing::RunOptions& options, const std::string& isa_level = "") {
  Options context_options = Options::from_environment();
  if (!isa_level.empty()) context_options.isa = isa_level;
  Context context(context_options);
  for (uint64_t seed = 0; seed < count; ++seed) {
    Graph g;
    RandomGraph r = random_graph(g, seed, graphs);
    const auto fails = [&](const RandomGraph& x) {
      return compare(context, x, options).wrong() && (!graphs.exact || sums_are_exact(x));
    };
    if (!fails(r)) continue;
    r = shrink(g, r, fails);
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

/// Small integers for every param, so that sums are exact; variables at their least and largest.
RandomGraph with_inputs(Graph& g, const char* text) {
  RandomGraph r{parse_graph(g, text), std::vector<eval::Inputs>(2)};
  Random random(1);
  for (NodeRef n : Toposort(r.roots)) {
    if (n->op == Op::Variable) {
      r.bindings[0].variables[std::string(n->text())] = n->vmin;
      r.bindings[1].variables[std::string(n->text())] = n->vmax;
    }
    if (n->op != Op::Param) continue;
    for (eval::Inputs& binding : r.bindings) {
      eval::Extents extents;
      for (NodeRef d : n->shape->span())
        extents.push_back(eval::evaluate(d, {{}, {}, binding.variables}).at(0).as_int());
      eval::Array values(n->dtype, extents);
      for (int64_t i = 0; i < values.count(); ++i)
        values.set(i, Value::of(n->dtype, random.between(-1, 4)));
      const auto slot = static_cast<size_t>(param_slot(n));
      if (binding.params.size() <= slot) binding.params.resize(slot + 1);
      binding.params[slot] = std::move(values);
    }
  }
  return r;
}

// Each broke something when random graphs first met the compiler.
constexpr const char* kOnceFailed[] = {
    // A mask that leaves one value, 2, took every other 2 of the index for it.
    "%0 = param i32 2 1 4 slot=0\n%1 = pad i32 %0 0 2 0 0 0 1 interior=0,0,0",
    "%0 = param i16 1 3 slot=0\n%1 = unwindow i16 %0 4 axis=0 size=3 stride=1 dilation=1\n"
    "%2 = unwindow i16 %1 4 axis=0 size=3 stride=1 dilation=2\n%3 = flip i16 %2 axes=0",
    // Masked loads in the index of a masked load: narrowing did not end.
    "%0 = param f64 1 1 2 slot=0\n%1 = unwindow f64 %0 1 axis=1 size=2 stride=1 dilation=2\n"
    "%2 = param i32 1 1 4 slot=1\n%3 = gather f64 %1 %2 axis=2\n"
    "%4 = unwindow f64 %3 8 axis=1 size=4 stride=2 dilation=2",
    // An update's base was to be produced by the kernel that reads the update.
    "%0 = param i16 3 1 5 slot=0\n%1 = reduce.add i16 %0 axes=0,1\n%2 = reshape i16 %1 1 5\n"
    "%3 = param i16 1 5 slot=1\n%4 = assign i16 %1 %2 %3\n%5 = mulacc i16 %4 %1 2:i16",
    // A kernel with nothing to do was to compute a value for another.
    "%0 = param i64 slot=0\n%1 = shr i64 %0 1:i64\n%2 = reshape i64 %1 1\n"
    "%3 = shrink i64 %2 1 0 steps=2\nreturn %3 %1",
    // An element outside of an axis of size 1, wanted by nothing, was to be stored there.
    "%0 = iota index 1 1 1 axis=1\n%1 = cast i32 %0\n"
    "%2 = shrink i32 %1 1 0 1 0 1 0 steps=1,1,1\n%3 = reduce.min i32 %2 axes=0,2\n"
    "%4 = reshape i32 %1 1 1 1 1\nreturn %3 %4",
    // The running minimum of zeros does not depend on the elements.
    "%0 = param u16 2 slot=0\n%1 = shr u16 %0 65534:u16\n%2 = scan.min u16 %1 axis=0",
    // Clang calls fmaxf for the select, which f16 has no instruction for.
    "%0 = param f16 1 2 1 slot=0\n%1 = expand f16 %0 1 2 2\n%2 = permute f16 %1 axes=1,0,2\n"
    "%3 = iota i32 2 1 2 axis=0\n%4 = carry f16 k=0 loop=1\n%5 = elem f16 k=0 loop=1\n"
    "%6 = le bool %4 %5\n%7 = where f16 %6 %5 %4\n%8 = elem i32 k=1 loop=1\n"
    "%9 = carry i32 k=1 loop=1\n%10 = where i32 %6 %8 %9\n%11 = loop void %2 %3 3:f16 0:i32 %7 "
    "%10 loop=1 elems=2 carries=2 stacked=1 axes=0\n%12 = get i32 %11 k=1",
    // Every load is masked off.
    "%0 = param u16 3 3 4 slot=0\n%1 = min u16 %0 %0\n"
    "%2 = shrink u16 %1 2 0 1 1 3 3 steps=1,1,1\n%3 = pad u16 %2 0 0 2 1 2 2 interior=0,0,0\n"
    "%4 = reduce.min u16 %3 axes=1\n%5 = unwindow u16 %4 7 axis=0 size=7 stride=2 dilation=2",
    // A loop over an even number of elements was to be cut in two, which its check did not believe.
    "%0 = variable index \"n\" min=4 max=14 multiple=2\n%1 = param i32 %0 %0 slot=0\n"
    "%2 = reduce.max i32 %1 axes=0",
    // The mask says that n is 1 there, which made another loop of the one over n + 2*m.
    "%0 = variable index \"m\" min=2 max=4 multiple=1\n"
    "%1 = variable index \"n\" min=0 max=1 multiple=1\n%2 = param i32 %0 %1 slot=0\n"
    "%3 = pad i32 %2 %0 0 %1 0 interior=0,1",
    // A loop that runs once or not at all was left out, and its body run once.
    "%0 = param i32 3 3 slot=0\n%1 = variable index \"n\" min=0 max=1 multiple=1\n"
    "%2 = param i8 %1 3 slot=1\n%3 = param i32 %1 3 slot=2\n"
    "%4 = scatter i32 %0 %2 %3 axis=0 combine=set unique=0",
};

TEST(RandomSchedule, ForInputsThatAreConstant) {
  testing::RunOptions options;
  for (const std::vector<bool>& constants :
       {std::vector{true, false, true}, std::vector{false, true, true, true}}) {
    options.schedule.constants = constants;
    expect_equal(100, pinned(), options);
  }
}

TEST(RandomSchedule, OnAMachineThatBindsFewBuffers) {
  Target few = make_target("interp", CpuFeatures(), 2);
  few.most_buffers = 3;
  testing::RunOptions options;
  options.target = &few;
  expect_equal(150, pinned(), options);
}

TEST(RandomSchedule, GraphsThatOnceFailed) {
  Context context;
  for (const char* text : kOnceFailed) {
    for (const char* device : {"INTERP", "C"}) {
      Graph g;
      testing::RunOptions options;
      options.device = device;
      options.optimize = options.device == "C";
      const RandomGraph r = with_inputs(g, text);
      const Outcome o = compare(context, r, options);
      EXPECT_FALSE(o.wrong()) << text << "\nexpected " << ::testing::PrintToString(o.expected)
                              << "\ngot      " << ::testing::PrintToString(o.got) << o.error;
    }
  }
}

/// The carries of a loop see its elements in row-major order of the axes it lists: which of several
/// equal elements comes last shows it.
TEST(RandomSchedule, LoopsRunInTheOrderOfTheirAxes) {
  const std::string body =
      "%1 = iota i32 2 5 4 axis=2\n%2 = carry i32 k=0 loop=2\n%3 = elem i32 k=0 loop=2\n"
      "%4 = le bool %2 %3\n%5 = where i32 %4 %3 %2\n%6 = elem i32 k=1 loop=2\n"
      "%7 = carry i32 k=1 loop=2\n%8 = where i32 %4 %6 %7\n"
      "%9 = loop void %0 %1 1:i32 0:i32 %5 %8 loop=2 elems=2 carries=2 stacked=";
  Context context;
  for (const char* axes : {"0 axes=0,2", "1 axes=0,2", "1 axes=0,1", "0 axes=0,1,2", "0 axes=1"}) {
    Graph g;
    const std::string text =
        "%0 = param i32 2 5 4 slot=0\n" + body + axes + "\n%10 = get i32 %9 k=1";
    testing::RunOptions options;
    const Outcome o = compare(context, with_inputs(g, text.c_str()), options);
    EXPECT_FALSE(o.wrong()) << axes << "\nexpected " << ::testing::PrintToString(o.expected)
                            << "\ngot      " << ::testing::PrintToString(o.got) << o.error;
  }
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

/// What a running fold carries belongs to one iteration of every loop around it, and a reduction
/// that is computed outside of inner loops says which those are.
RandomGraphOptions folds_beside_reductions() {
  RandomGraphOptions graphs;
  graphs.exact = true;
  graphs.folds = true;
  return graphs;
}

/// Long chains of elementwise and movement ops over all dtypes, constants, NaN, infinities, both
/// zeros, subnormals and limits: each operation is rounded once, on every machine.
void expect_chains(uint64_t count, const char* device, const std::string& isa_level = "") {
  RandomGraphOptions graphs = pinned();
  graphs.elementwise = true;
  graphs.steps = 24;
  graphs.largest = 60;
  testing::RunOptions options;
  options.device = device;
  expect_equal(count, graphs, options, isa_level);
}

TEST(RandomSchedule, ChainsGiveTheOraclesBits) {
  expect_chains(600, "INTERP");
  expect_chains(25, "C");
  for (const std::string& level : testing::isa_levels()) expect_chains(600, "X86", level);
}
TEST(RandomSchedule, SlowChains) {
  expect_chains(100'000, "INTERP");
  for (const std::string& level : testing::isa_levels()) expect_chains(100'000, "X86", level);
}

RandomGraphOptions symbolic(RandomGraphOptions graphs) {
  graphs.variables = 2;
  return graphs;
}

TEST(RandomSchedule, SymbolicKernelsGiveTheOraclesBitsForEveryBinding) {
  testing::RunOptions options;
  options.optimize = false;
  expect_equal(300, symbolic(pinned()), options);
  options.schedule.fuse = false;
  expect_equal(100, symbolic(pinned()), options);
}

TEST(RandomSchedule, OptimizedSymbolicKernelsAreExactOnSmallIntegers) {
  RandomGraphOptions graphs;
  graphs.exact = true;
  expect_equal(300, symbolic(graphs), {});
}

TEST(RandomSchedule, RunningFoldsBesideReductionsAreExact) {
  expect_equal(1000, folds_beside_reductions(), {});
  testing::RunOptions plain;
  plain.optimize = false;
  expect_equal(500, symbolic(folds_beside_reductions()), plain);
}

TEST(RandomSchedule, CompiledKernelsAreExactOnSmallIntegers) {
  RandomGraphOptions graphs;
  graphs.exact = true;
  testing::RunOptions options;
  options.device = "C";
  expect_equal(25, graphs, options);
}

/// The texts of a GPU, without one: tests/support/compiler/ptx_machine.h.
TEST(RandomSchedule, PtxKernelsGiveTheOraclesBits) {
  testing::RunOptions options;
  options.device = "PTX";
  RandomGraphOptions graphs;
  graphs.exact = true;
  expect_equal(300, graphs, options);
  expect_equal(100, symbolic(graphs), options);
  expect_equal(100, folds_beside_reductions(), options);
  expect_chains(200, "PTX");
}
TEST(RandomSchedule, SlowPtxKernels) {
  testing::RunOptions options;
  options.device = "PTX";
  RandomGraphOptions graphs;
  graphs.exact = true;
  expect_equal(5000, graphs, options);
  expect_equal(2000, symbolic(folds_beside_reductions()), options);
  expect_chains(5000, "PTX");
}

/// A vector as long as the longest row is no tile of shorter ones; a loop that may have no
/// iterations is not shared out where others are beside it.
TEST(RandomSchedule, RowsOfOneVectorOrLess) {
  for (const char* text : {R"(
%0 = variable index "n" min=1 max=4 multiple=1
%1 = param f16 1 1 %0 %0 slot=0
%2 = expand f16 %1 2 1 %0 %0
%3 = param f16 2 1 %0 %0 slot=1
%4 = param f16 2 1 %0 %0 slot=2
%5 = cat f16 %2 %3 %4 axis=1
)",
                           R"(
%0 = param bool 1 2 4 slot=0
%1 = variable index "n" min=1 max=4 multiple=1
%2 = expand bool %0 %1 2 4
)"}) {
    Graph g;
    testing::RunOptions options;
    options.device = "X86";
    Context context{Options::from_environment()};
    const Outcome o = compare(context, with_inputs(g, text), options);
    EXPECT_FALSE(o.wrong()) << o.error << ::testing::PrintToString(o.got);
  }
}

/// At every level of instruction sets.
void expect_exact_machine_code(uint64_t count, uint64_t symbolic_count) {
  RandomGraphOptions graphs;
  graphs.exact = true;
  testing::RunOptions options;
  options.device = "X86";
  for (const std::string& level : testing::isa_levels()) {
    SCOPED_TRACE(level);
    expect_equal(count, graphs, options, level);
    expect_equal(symbolic_count, symbolic(graphs), options, level);
  }
}

TEST(RandomSchedule, MachineCodeIsExactOnSmallIntegers) { expect_exact_machine_code(250, 100); }
TEST(RandomSchedule, SlowMachineCode) { expect_exact_machine_code(20000, 20000); }

TEST(RandomSchedule, SlowHundredThousandGraphs) {
  testing::RunOptions options;
  options.optimize = false;
  expect_equal(50000, pinned(), options);
  RandomGraphOptions graphs;
  graphs.exact = true;
  expect_equal(50000, graphs, {});
  expect_equal(50000, folds_beside_reductions(), {});
}

TEST(RandomSchedule, SlowHundredThousandSymbolicGraphs) {
  testing::RunOptions options;
  options.optimize = false;
  expect_equal(50000, symbolic(pinned()), options);
  RandomGraphOptions graphs;
  graphs.exact = true;
  expect_equal(50000, symbolic(graphs), {});
}

}  // namespace
}  // namespace weft
