#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"

namespace weft::onnx {
namespace {

// Wanted numbers: ONNX Runtime 1.31.

TEST(ReductionOperators, AxesOfAllOpsets) {
  const std::vector<NodeCase> cases = {
      {"ReduceSum",
       1,
       {attr("axes", ints{0, 2}), attr("keepdims", 0)},
       {ramp({2, 3, 2})},
       {{{3}, {-1.375, 1.125, 0.75}}}},
      {"ReduceSum",
       13,
       {attr("keepdims", 0)},
       {ramp({2, 3}), known(ints{1})},
       {{{2}, {-0.5, 0.875}}}},
      {"ReduceMax",
       11,
       {attr("axes", ints{-1}), attr("keepdims", 0)},
       {ramp({2, 3}, DType::I64)},
       {{{2}, {0, 1}}}},
      {"ReduceMean",
       11,
       {attr("axes", ints{1}), attr("keepdims", 1)},
       {ramp({2, 3}, DType::I32, 5)},
       {{{2, 1}, {0, 0}}}},
      {"ReduceL1",
       11,
       {attr("axes", ints{1}), attr("keepdims", 0)},
       {ramp({2, 3})},
       {{{2}, {1.75, 1.875}}}},
      {"ReduceL2",
       13,
       {attr("axes", ints{0}), attr("keepdims", 0)},
       {ramp({2, 3})},
       {{{3}, {0.5, 1.681703, 0.6373774}}}},
      {"ReduceLogSumExp",
       1,
       {attr("axes", ints{1}), attr("keepdims", 0)},
       {ramp({2, 3})},
       {{{2}, {1.160929, 1.654415}}}},
      {"ReduceSumSquare", 18, {attr("keepdims", 0)}, {ramp({2, 3})}, {{{}, {3.484375}}}},
      {"ReduceProd",
       18,
       {attr("keepdims", 0)},
       {ramp({2, 3}), known(ints{-1})},
       {{{2}, {-0, -0.078125}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(ReductionOperators, OfNothing) {
  const std::vector<NodeCase> cases = {
      {"ReduceSum",
       13,
       {attr("noop_with_empty_axes", 1)},
       {ramp({2, 2})},
       {{{2, 2}, {0, -1.125, 0.625, -0.5}}}},
      {"ReduceSumSquare",
       18,
       {attr("noop_with_empty_axes", 1)},
       {ramp({2, 2})},
       {{{2, 2}, {0, 1.265625, 0.390625, 0.25}}}},
      {"ReduceMax",
       18,
       {attr("keepdims", 0)},
       {ramp({2, 0, 2}), known(ints{1})},
       {{{2, 2}, {-INFINITY, -INFINITY, -INFINITY, -INFINITY}}}},
      {"ReduceMin",
       18,
       {attr("keepdims", 0)},
       {ramp({2, 0, 2}), known(ints{1})},
       {{{2, 2}, {INFINITY, INFINITY, INFINITY, INFINITY}}}},
      {"ReduceLogSum",
       18,
       {attr("keepdims", 0)},
       {ramp({2, 0, 2}), known(ints{1})},
       {{{2, 2}, {-INFINITY, -INFINITY, -INFINITY, -INFINITY}}}},
      {"ReduceProd", 18, {}, {ramp({0}), known(ints{0})}, {{{1}, {1}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(ReductionOperators, SoftmaxOfAllOpsets) {
  const std::vector<NodeCase> cases = {
      {"Softmax",
       11,
       {attr("axis", 1)},
       {ramp({2, 2, 2})},
       {{{2, 2, 2},
         {0.2631975, 0.0854477, 0.4917175, 0.1596373, 0.4910187, 0.1594104, 0.05175299,
          0.2978179}}}},
      {"Softmax",
       13,
       {attr("axis", 1)},
       {ramp({2, 2, 2})},
       {{{2, 2, 2},
         {0.3486452, 0.3486452, 0.6513549, 0.6513549, 0.9046505, 0.3486452, 0.09534947,
          0.6513549}}}},
      {"LogSoftmax",
       11,
       {attr("axis", 2)},
       {ramp({2, 2, 2})},
       {{{2, 2, 2},
         {-0.2811501, -1.40615, -0.2811501, -1.40615, -0.2811501, -1.40615, -1.910224,
          -0.1602242}}}},
      {"Softmax",
       11,
       {attr("axis", 0)},
       {ramp({4})},
       {{{4}, {0.2631975, 0.0854477, 0.4917175, 0.1596373}}}},
      {"Hardmax",
       11,
       {attr("axis", 1)},
       {ramp({2, 2, 2})},
       {{{2, 2, 2}, {0, 0, 1, 0, 1, 0, 0, 0}}}},
      {"Hardmax",
       13,
       {attr("axis", 0)},
       {ramp({2, 2, 2})},
       {{{2, 2, 2}, {0, 0, 1, 0, 1, 1, 0, 1}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(ReductionOperators, PositionsAndRunningSums) {
  const std::vector<NodeCase> cases = {
      {"ArgMax",
       12,
       {attr("axis", 1), attr("keepdims", 0), attr("select_last_index", 1)},
       {known({2, 3}, {1, 3, 3, 2, 2, 0})},
       {{{2}, {2, 1}}}},
      {"ArgMax",
       12,
       {attr("axis", 1), attr("keepdims", 0)},
       {known({2, 3}, {1, 3, 3, 2, 2, 0})},
       {{{2}, {1, 0}}}},
      {"ArgMin", 1, {}, {known({2, 3}, {1, 3, 3, 2, 2, 0})}, {{{1, 3}, {0, 1, 1}}}},
      {"CumSum",
       14,
       {attr("exclusive", 1), attr("reverse", 1)},
       {ramp({2, 3}), scalar(1)},
       {{{2, 3}, {-0.5, 0.625, 0, 1.375, 0.125, 0}}}},
      {"CumSum",
       14,
       {attr("exclusive", 1)},
       {ramp({2, 3}), scalar(-1)},
       {{{2, 3}, {0, 0, -1.125, 0, -0.5, 0.75}}}},
      {"CumSum",
       11,
       {attr("reverse", 1)},
       {ramp({4}, DType::I32), scalar(0)},
       {{{4}, {-1, -1, 0, 0}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

// CumProd: ONNX Runtime has none; by hand.
TEST(ReductionOperators, RunningProducts) {
  const Value x = known({3}, {2, 3, 4});
  expect_node({"CumProd", 26, {}, {x, scalar(0)}, {{{3}, {2, 6, 24}}}});
  expect_node({"CumProd", 26, {attr("exclusive", 1)}, {x, scalar(0)}, {{{3}, {1, 2, 6}}}});
  expect_node({"CumProd",
               26,
               {attr("exclusive", 1), attr("reverse", 1)},
               {x, scalar(0)},
               {{{3}, {12, 4, 1}}}});
}

TEST(ReductionOperators, Errors) {
  EXPECT_NE(refusal("ReduceSum", 13, {}, {ramp({2, 3}), known(ints{2})}).find("axis 2"),
            std::string::npos);
  EXPECT_NE(refusal("Softmax", 11, {attr("axis", 3)}, {ramp({2, 3})})
                .find("axis 3 of shape (2, 3): give 0 to 2"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::onnx
