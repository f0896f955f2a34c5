#include "weft/eval/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/array_printer.h"
#include "weft/base/error.h"
#include "weft/graph/parse.h"
#include "weft/graph/verify.h"

namespace weft::eval {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Array f32(Extents extents, std::vector<double> v) {
  return Array::of(DType::F32, std::move(extents), v);
}
Array i32(Extents extents, std::vector<int64_t> v) {
  return Array::of_ints(DType::I32, std::move(extents), v);
}
Array counting(Extents extents) {
  std::vector<double> v(static_cast<size_t>(count_of(extents)));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
  return f32(std::move(extents), v);
}

/// The value of the last node of `text`, whose params are `params`.
Array run(std::string_view text, std::vector<Array> params = {},
          std::map<std::string, int64_t> variables = {}) {
  Graph graph;
  const auto roots = parse_graph(graph, text);
  verify_tensor_graph(roots, "parse");
  return evaluate(roots[0], {std::move(params), {}, std::move(variables)});
}

TEST(Eval, ElementwiseBroadcastsScalars) {
  const Array x = f32({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(run("%0 = param f32 2 2 slot=0\n%1 = mul f32 %0 0.5:f32\n%2 = add f32 %1 %0", {x}),
            f32({2, 2}, {1.5, 3, 4.5, 6}));
  EXPECT_EQ(
      run("%0 = param f32 2 2 slot=0\n%1 = lt bool %0 2.5:f32\n%2 = where f32 %1 %0 -1:f32", {x}),
      f32({2, 2}, {1, 2, -1, -1}));
}

TEST(Eval, HalfPrecisionRoundsAfterEveryOp) {
  // 2048 + 1 is a tie that rounds to 2048 each time; in f32 the sum would be 2050.
  const Array x = Array::of(DType::F16, {1}, std::vector<double>{2048});
  EXPECT_EQ(run("%0 = param f16 1 slot=0\n%1 = add f16 %0 1:f16\n%2 = add f16 %1 1:f16", {x}), x);
}

TEST(Eval, MovementFollowsItsIndexMaps) {
  const Array x = counting({2, 3});
  const std::string p = "%0 = param f32 2 3 slot=0\n";
  EXPECT_EQ(run(p + "%1 = reshape f32 %0 3 2", {x}), counting({3, 2}));
  EXPECT_EQ(run(p + "%1 = permute f32 %0 axes=1,0", {x}), f32({3, 2}, {0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(run(p + "%1 = flip f32 %0 axes=1", {x}), f32({2, 3}, {2, 1, 0, 5, 4, 3}));
  EXPECT_EQ(run(p + "%1 = shrink f32 %0 0 0 2 2 steps=1,2", {x}), f32({2, 2}, {0, 2, 3, 5}));
  EXPECT_EQ(run(p + "%1 = pad f32 %0 0 1 0 1 interior=0,1", {x}),
            f32({2, 7}, {0, 0, 0, 1, 0, 2, 0, 0, 3, 0, 4, 0, 5, 0}));
  EXPECT_EQ(run("%0 = param f32 1 3 slot=0\n%1 = expand f32 %0 2 3", {counting({1, 3})}),
            f32({2, 3}, {0, 1, 2, 0, 1, 2}));
}

TEST(Eval, WindowAndItsAdjoint) {
  EXPECT_EQ(run("%0 = param f32 7 slot=0\n%1 = window f32 %0 axis=0 size=2 stride=2 dilation=3",
                {counting({7})}),
            f32({2, 2}, {0, 3, 2, 5}));
  // <window(x), y> = <x, sum_k unwindow(y)> for x = counting, y = counting.
  EXPECT_EQ(run("%0 = param f32 2 2 slot=0\n"
                "%1 = unwindow f32 %0 7 axis=0 size=2 stride=2 dilation=3\n"
                "%2 = reduce.add f32 %1 axes=1",
                {counting({2, 2})}),
            f32({7}, {0, 0, 2, 1, 0, 3, 0}));
}

TEST(Eval, GatherReadsZeroOutside) {
  EXPECT_EQ(run("%0 = param f32 2 3 slot=0\n%1 = param i32 2 2 slot=1\n"
                "%2 = gather f32 %0 %1 axis=1",
                {counting({2, 3}), i32({2, 2}, {2, -1, 0, 3})}),
            f32({2, 2}, {2, 0, 3, 0}));
}

TEST(Eval, ReduceFoldsInRowMajorOrder) {
  const Array x = f32({2, 3}, {1, 2, 3, 4, NAN, 6});
  const std::string p = "%0 = param f32 2 3 slot=0\n";
  EXPECT_EQ(run(p + "%1 = reduce.max f32 %0 axes=1", {x}), f32({2}, {3, NAN}));
  EXPECT_EQ(run(p + "%1 = reduce.add f32 %0 axes=0,1", {x}), f32({}, {NAN}));
  // (1e8 + 1) - 1e8 is 0 in f32; any other order gives 1.
  EXPECT_EQ(
      run("%0 = param f32 3 slot=0\n%1 = reduce.add f32 %0 axes=0", {f32({3}, {1e8, 1, -1e8})}),
      f32({}, {0}));
  const Array empty = f32({0, 2}, {});
  const std::string e = "%0 = param f32 0 2 slot=0\n";
  EXPECT_EQ(run(e + "%1 = reduce.max f32 %0 axes=0", {empty}), f32({2}, {-kInf, -kInf}));
  EXPECT_EQ(run(e + "%1 = reduce.mul f32 %0 axes=0", {empty}), f32({2}, {1, 1}));
}

TEST(Eval, ScanIsInclusive) {
  EXPECT_EQ(run("%0 = param f32 2 3 slot=0\n%1 = scan.add f32 %0 axis=1", {counting({2, 3})}),
            f32({2, 3}, {0, 1, 3, 3, 7, 12}));
}

TEST(Eval, LoopComputesArgmax) {
  const std::string text =
      "%0 = param f32 2 3 slot=0\n"
      "%1 = iota i32 2 3 axis=1\n"
      "%2 = elem f32 k=0 loop=7\n%3 = elem i32 k=1 loop=7\n"
      "%4 = carry f32 k=0 loop=7\n%5 = carry i32 k=1 loop=7\n"
      "%6 = lt bool %4 %2\n%7 = where f32 %6 %2 %4\n%8 = where i32 %6 %3 %5\n"
      "%9 = loop f32 %0 %1 -inf:f32 0:i32 %7 %8 loop=7 elems=2 carries=2 stacked=";
  const Array x = f32({2, 3}, {1, 5, 5, 9, 2, 8});
  EXPECT_EQ(run(text + "0 axes=1\n%10 = get i32 %9 k=1", {x}), i32({2}, {1, 0}));
  EXPECT_EQ(run(text + "0 axes=0,1\n%10 = get f32 %9 k=0", {x}), f32({}, {9}));
  EXPECT_EQ(run(text + "1 axes=1\n%10 = get i32 %9 k=1", {x}), i32({2, 3}, {0, 1, 1, 0, 0, 0}));
}

TEST(Eval, ScatterAppliesInOrderAndDropsOutside) {
  const std::string text =
      "%0 = param f32 3 slot=0\n%1 = param i32 4 slot=1\n%2 = param f32 4 slot=2\n"
      "%3 = scatter f32 %0 %1 %2 axis=0 combine=";
  const std::vector<Array> params = {f32({3}, {10, 20, 30}), i32({4}, {1, 1, 3, 0}),
                                     f32({4}, {1, 2, 3, 4})};
  EXPECT_EQ(run(text + "set unique=0", params), f32({3}, {4, 2, 30}));
  EXPECT_EQ(run(text + "add unique=0", params), f32({3}, {14, 23, 30}));
  EXPECT_EQ(run(text + "min unique=0", params), f32({3}, {4, 1, 30}));
}

TEST(Eval, AssignWritesThroughAChainOfViews) {
  EXPECT_EQ(run("%0 = param f32 2 3 slot=0\n%1 = param f32 2 2 slot=1\n"
                "%2 = permute f32 %0 axes=1,0\n%3 = flip f32 %2 axes=0\n"
                "%4 = shrink f32 %3 0 0 2 2 steps=2,1\n%5 = assign f32 %0 %4 %1",
                {counting({2, 3}), f32({2, 2}, {10, 11, 12, 13})}),
            f32({2, 3}, {12, 1, 10, 13, 4, 11}));
}

TEST(Eval, SymbolicSizesAreBound) {
  const std::string text =
      "%0 = variable index \"n\" min=1 max=8 multiple=1\n%1 = param f32 %0 slot=0\n"
      "%2 = add index %0 1\n%3 = pad f32 %1 1 0 interior=0\n%4 = shrink f32 %3 1 %0 steps=1\n"
      "%5 = reduce.add f32 %4 axes=0";
  EXPECT_EQ(run(text, {counting({4})}, {{"n", 4}}), f32({}, {6}));
  EXPECT_THROW(run(text, {counting({4})}, {{"n", 9}}), Error);
  EXPECT_THROW(run(text, {counting({4})}), Error);
  EXPECT_THROW(run(text, {counting({4})}, {{"n", 3}}), Error);
}

TEST(Eval, MissingParamNamesItsSlot) {
  try {
    run("%0 = param f32 2 slot=3");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "param 3 is not given");
  }
}

TEST(Eval, DeepChainsNeedNoStack) {
  Graph graph;
  const NodeRef dims[] = {graph.index(1)};
  NodeRef x = graph.param(0, DType::I32, dims);
  for (int i = 0; i < 20000; ++i) x = graph.add(x, graph.constant(Value::of(DType::I32, i % 3)));
  EXPECT_EQ(evaluate(x, {{i32({1}, {0})}, {}, {}}).at(0).as_int(), 19999);
}

}  // namespace
}  // namespace weft::eval
