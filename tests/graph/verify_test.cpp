// Each row: a text that breaks one rule of docs/design/ir.md, and what the error says about it.
#include "weft/graph/verify.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/graph/parse.h"

namespace weft {
namespace {

std::string problem_in(std::string_view text, bool kernel) {
  Graph graph;
  try {
    const auto roots = parse_graph(graph, text);
    if (kernel)
      check_kernel(roots[0], "case");
    else
      check_tensor_graph(roots, "case");
  } catch (const InternalError& error) {
    return std::string("internal: ") + error.what();
  } catch (const Error& error) {
    return error.message();
  }
  return "valid";
}

struct Case {
  const char* text;
  const char* message;
};

#define X "%0 = param f32 2 3 slot=0\n"
#define I "%1 = param i32 2 3 slot=1\n"

constexpr Case kTensorCases[] = {
    {X "%1 = add f32 %0 %0", "valid"},
    {X "%1 = add f32 %0", "another number of sources"},
    {X I "%2 = add f32 %0 %1", "different dtypes"},
    {X "%1 = param f32 3 2 slot=1\n%2 = add f32 %0 %1", "different shapes"},
    {X "%1 = lt f32 %0 %0", "another dtype"},
    {X "%1 = and f32 %0 %0", "does not take this dtype"},
    {X I "%2 = sqrt i32 %1", "does not take this dtype"},
    {X "%1 = where f32 %0 %0 %0", "condition is not bool"},
    {X "%1 = cast index %0", "toindex only"},
    {X "%1 = bitcast f64 %0", "widths differ"},
    {X "%1 = addx4 f32 %0 %0", "unknown op"},
    {X "%1 = add f32x4 %0 %0", "different lanes"},
    {X "%1 = reshape f32 %0 5", "number of elements"},
    {X "%1 = reshape f32 %0 -6 -1", "at least 0"},
    {X "%1 = expand f32 %0 2 6", "not 1"},
    {X "%1 = permute f32 %0 axes=0,0", "listed twice"},
    {X "%1 = permute f32 %0 axes=0", "every axis"},
    {X "%1 = pad f32 %0 1 1 interior=0,0", "needs before"},
    {X "%1 = pad f32 %0 -1 1 0 0 interior=0,0", "at least 0"},
    {X "%1 = shrink f32 %0 0 2 2 2 steps=1,1", "past its source"},
    {X "%1 = shrink f32 %0 0 0 2 2 steps=1,0", "at least 1"},
    {X "%1 = flip f32 %0 axes=2", "out of range"},
    {X "%1 = window f32 %0 axis=1 size=4 stride=1 dilation=1", "larger than the axis"},
    {X "%1 = window f32 %0 axis=1 size=0 stride=1 dilation=1", "at least 1"},
    {X "%1 = unwindow f32 %0 5 axis=0 size=2 stride=1 dilation=1", "not the window"},
    {X "%1 = gather f32 %0 %0 axis=0", "indices are integers"},
    {X "%1 = param i32 3 3 slot=1\n%2 = gather f32 %0 %1 axis=1", "larger than its source"},
    {X "%1 = reduce.add f32 %0 axes=0,2", "out of range"},
    {X "%1 = reduce.set f32 %0 axes=0", "no fold"},
    {X "%1 = reduce.or f32 %0 axes=0", "bit by bit"},
    {X "%1 = reduce.add f64 %0 axes=0", "changes the dtype"},
    {X "%1 = scan.add f32 %0 axis=2", "axis is out of range"},
    {X "%1 = elem f32 k=0 loop=1\n%2 = neg f32 %1", "outside its loop"},
    {X "%1 = elem f32 k=0 loop=1\n%2 = add f32 %0 %1", "outside its body"},
    {X "%1 = elem f32 k=1 loop=1\n"
       "%2 = loop void %0 0:f32 %1 loop=1 elems=1 carries=1 stacked=0 axes=0",
     "fewer of these"},
    {X "%1 = elem f32 k=0 loop=2\n"
       "%2 = loop void %0 0:f32 %1 loop=1 elems=1 carries=1 stacked=0 axes=0",
     "another loop"},
    {X "%1 = elem i32 k=0 loop=1\n"
       "%2 = loop void %0 0:i32 %1 loop=1 elems=1 carries=1 stacked=0 axes=0",
     "another dtype"},
    {X "%1 = elem f32 k=0 loop=1\n"
       "%2 = loop void %0 0:i32 %1 loop=1 elems=1 carries=1 stacked=0 axes=0",
     "than its carry"},
    {X "%1 = elem f32 k=0 loop=1\n"
       "%2 = loop void %0 0:f32 %1 loop=1 elems=1 carries=1 stacked=0 axes=0\n"
       "%3 = get f32 %2 k=1",
     "fewer results"},
    {X "%1 = neg f32 %0\n%2 = assign f32 %0 %1 %0", "no chain of views"},
    {X "%1 = param f32 2 slot=1\n%2 = assign f32 %0 %0 %1", "different shapes"},
    {X I "%2 = scatter f32 %0 %1 %0 axis=0 combine=set unique=3", "unique is 0, 1 or 2"},
    {X I "%2 = scatter f32 %0 %1 %0 axis=0 combine=add unique=2", "permutes nothing"},
    {X I "%2 = cumcount f32 %0 %1 axis=0", "counts are integers"},
    {X I "%2 = cumcount i32 %1 %1 axis=2", "axis is out of range"},
    {X I "%2 = param i32 1 3 slot=2\n%3 = cumcount i32 %2 %1 axis=1", "larger than its source"},
    {X "%1 = range index 4 id=0 binding=loop", "does not belong"},
    {X "%1 = load f32 %0 3", "does not belong"},
    {"%0 = param index 2 slot=0", "cannot live in a buffer"},
    {"%0 = param f32 99999999999 99999999999 slot=0", "too many elements"},
    {"%0 = variable index \"n\" min=4 max=2 multiple=1", "min is above max"},
    {"%0 = variable index \"n\" min=0 max=9 multiple=3\n%1 = bind index %0 4", "not allowed"},
    {"%0 = iota i32 3 axis=1", "axis is out of range"},
};

#define P "%0 = param f32 64 slot=0\n%1 = param f32 64 slot=1\n%2 = range index 64 id=0 binding="

constexpr Case kKernelCases[] = {
    {P "core\n%3 = load f32 %0 %2\n%4 = store void %1 %2 %3 combine=set unique=1\n"
       "%5 = sink void %4",
     "valid"},
    {P "loop\n%3 = load f32 %0 %2\n%4 = reduce.add f32 %3 %2\n"
       "%5 = store void %1 0 %4 combine=set unique=1\n%6 = sink void %5",
     "valid"},
    {P "loop\n%3 = load f32 %0 %2\n%4 = reduce.add f32 %3 %2\n"
       "%5 = store void %1 %2 %4 combine=set unique=1\n%6 = sink void %5",
     "a reduce has closed"},
    {P "loop\n%3 = load f32 %0 %2", "ends in a sink"},
    {P "loop\n%3 = sink void %2", "takes stores"},
    {P "loop\n%3 = load f32 %0 %2\n%4 = store void %1 %2 1:f64 combine=set unique=1\n"
       "%5 = sink void %4",
     "another dtype than the param"},
    {P "loop\n%3 = range index 8 id=0 binding=loop\n%4 = load f32 %0 %3\n"
       "%5 = store void %1 %2 %4 combine=set unique=1\n%6 = sink void %5",
     "two ranges have its id"},
    {P "core\n%3 = range index 8 id=1 binding=core\n%4 = load f32 %0 %3\n"
       "%5 = store void %1 %2 %4 combine=set unique=1\n%6 = sink void %5",
     "second core range"},
    {P "loop\n%3 = add f32 %0 %0\n%4 = store void %1 %2 0:f32 combine=set unique=1\n"
       "%5 = sink void %4 %3",
     "takes stores"},
    {P "loop\n%3 = load f32 %0 %2 %2\n%4 = store void %1 %2 %3 combine=set unique=1\n"
       "%5 = sink void %4",
     "valid is not bool"},
    {P "loop\n%3 = load f32 %0 %2\n%4 = store void %1 %2 %3 combine=set unique=1\n"
       "%5 = get f32 %4 k=0\n%6 = store void %1 %2 %5 combine=set unique=1\n%7 = sink void %6",
     "takes what a store that adds or multiplies found"},
};

/// A running sum along the axes `folded` (ranges 2 and 3) of what has both; ids say which range
/// lies outside.
std::string running_fold(const char* first_range, const char* second_range, const char* fold) {
  return std::string("%0 = param f32 32 slot=0\n%1 = param f32 32 slot=1\n") +
         "%2 = range index 8 id=" + first_range + "\n%3 = range index 4 id=" + second_range +
         "\n%4 = mul index %2 4\n%5 = add index %4 %3\n%6 = load f32 %0 %5\n" + fold +
         "\n%10 = store void %1 %5 %9 combine=set unique=1\n%11 = sink void %10";
}

void expect_messages(std::span<const Case> cases, bool kernel) {
  for (const Case& c : cases) {
    const std::string message = problem_in(c.text, kernel);
    EXPECT_NE(message.find(c.message), std::string::npos)
        << c.text << "\ngave: " << message << "\nnot:  " << c.message;
  }
}

TEST(Verify, TensorGraphs) { expect_messages(kTensorCases, false); }
TEST(Verify, Kernels) { expect_messages(kKernelCases, true); }

TEST(Verify, RunningFoldsLieInsideOfWhatTheyDependOn) {
  const char* scan = "%9 = scan.add f32 %6 %3";
  const char* loop =
      "%7 = carry f32 k=0 loop=1\n%8 = add f32 %7 %6\n"
      "%12 = loop void 0:f32 %8 %3 loop=1 elems=0 carries=1 stacked=1\n%9 = get f32 %12 k=0";
  const char* both =
      "%7 = carry f32 k=0 loop=1\n%8 = add f32 %7 %6\n"
      "%12 = loop void 0:f32 %8 %2 %3 loop=1 elems=0 carries=1 stacked=1\n%9 = get f32 %12 k=0";
  const char* alone =
      "%7 = cast i32 %3\n%13 = cast f32 %7\n%8 = scan.add f32 %13 %3\n%9 = add f32 %8 %6";
  const char* shared = "one state for all iterations";
  const struct {
    const char *first, *second, *fold, *message;
  } cases[] = {
      {"0 binding=loop", "1 binding=loop", scan, "valid"},
      {"5 binding=core", "1 binding=loop", scan, "valid"},
      {"5 binding=vector", "1 binding=loop", scan, "valid"},
      {"1 binding=loop", "0 binding=loop", scan, shared},
      {"0 binding=loop", "1 binding=core", scan, "no plain loop"},
      {"0 binding=loop", "1 binding=unroll", scan, "no plain loop"},
      {"0 binding=loop", "1 binding=loop", loop, "valid"},
      {"1 binding=loop", "0 binding=loop", loop, shared},
      {"0 binding=loop", "1 binding=loop", both, "valid"},
      {"1 binding=loop", "0 binding=loop", both, "in another order"},
      {"1 binding=loop", "0 binding=loop", alone, "valid"},
  };
  for (const auto& c : cases) {
    const std::string text = running_fold(c.first, c.second, c.fold);
    EXPECT_NE(problem_in(text, true).find(c.message), std::string::npos)
        << text << "\ngave: " << problem_in(text, true) << "\nnot:  " << c.message;
  }
}

TEST(Verify, OurOwnMistakesNameStepAndNode) {
  Graph g;
  NodeRef range = g.range(4, 0);
  try {
    verify_tensor_graph({&range, 1}, "fold");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("after fold: range index"), std::string::npos);
  }
}

// ---- linear programs

class Programs : public testing::Test {
 protected:
  Programs() {
    program.graph = std::make_shared<Graph>();
    program.params = {{DType::F32, true, true}};
    const NodeRef dims[] = {g.index(8)};
    param = g.param(0, DType::F32, dims);
    const NodeRef eight[] = {g.constant(Value::of(DType::I32, 8))};
    const int64_t ints[] = {0, 0};
    range = g.intern({Op::Range, DType::I32, eight, ints});
    load = g.make(Op::Load, DType::F32, {param, range});
    store = g.make(Op::Store, DType::Void, {param, range, g.add(load, load)}, {0, 1});
    end = g.make(Op::EndRange, DType::Void, {range});
  }
  std::string problem(std::vector<NodeRef> code) {
    program.code = std::move(code);
    const auto found = find_program_problem(program);
    return found ? found->what : "valid";
  }

  LinearProgram program;
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  Graph& g = *graph_;
  NodeRef param, range, load, store, end;
};

TEST_F(Programs, BracketsAndOrder) {
  NodeRef sum = g.add(load, load);
  EXPECT_EQ(problem({param, range, load, sum, store, end}), "valid");
  EXPECT_EQ(problem({param, range, sum, load, store, end}),
            "uses a value before or outside its block");
  EXPECT_EQ(problem({param, range, load, sum, end, store}),
            "uses a value before or outside its block");
  EXPECT_EQ(problem({param, range, load, sum, store}), "is never closed");
  EXPECT_EQ(problem({param, end}), "uses a value before or outside its block");
  EXPECT_EQ(problem({param, range, load, load, sum, store, end}), "is listed twice in a block");
  const NodeRef nine[] = {g.constant(Value::of(DType::I32, 9))};
  const int64_t same_id[] = {0, 0};
  NodeRef again = g.intern({Op::Range, DType::I32, nine, same_id});
  EXPECT_EQ(problem({param, range, again}), "a range runs inside itself");
}

TEST_F(Programs, NothingOfEarlierFormsRemains) {
  EXPECT_EQ(problem({g.range(4, 1)}), "an index must have a width by now");
  NodeRef i = g.constant(Value::of(DType::I32, 3));
  EXPECT_EQ(problem({range, g.idiv(range, i)}), "division must be cdiv or cmod by now");
  NodeRef half = g.cast(load, DType::F16);
  EXPECT_EQ(problem({param, range, load, half, g.add(half, half)}), "arithmetic on f16 or bf16");
  program.params[0].dtype = DType::F64;
  EXPECT_EQ(problem({param}), "the program declares another dtype");
}

}  // namespace
}  // namespace weft
