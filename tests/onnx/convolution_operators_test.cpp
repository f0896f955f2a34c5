#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"

namespace weft::onnx {
namespace {

// Wanted numbers: ONNX Runtime 1.31.

TEST(ConvolutionOperators, Convolutions) {
  const std::vector<NodeCase> cases = {
      {"Conv",
       1,
       {attr("auto_pad", "SAME_LOWER"), attr("strides", ints{2}), attr("kernel_shape", ints{2})},
       {ramp({1, 2, 5}), ramp({2, 2, 2}, DType::F32, 3)},
       {{{1, 2, 3}, {-0.015625, -1.984375, -1.671875, 0.140625, 3.1875, 3.03125}}}},
      {"Conv",
       11,
       {attr("auto_pad", "SAME_UPPER"), attr("group", 2)},
       {ramp({1, 2, 5}), ramp({2, 1, 3}, DType::F32, 3), ramp({2}, DType::F32, 9)},
       {{{1, 2, 5},
         {0, 2.59375, -0.265625, 2.984375, 0, -0.65625, 1.609375, -1, 1.0625, -1.671875}}}},
      {"Conv",
       22,
       {attr("dilations", ints{2}), attr("pads", ints{1, 0})},
       {ramp({1, 2, 5}), ramp({1, 2, 2}, DType::F32, 3)},
       {{{1, 1, 4}, {0.96875, -0.4375, -1, -0.125}}}},
      {"ConvTranspose",
       1,
       {attr("strides", ints{2}), attr("output_shape", ints{6})},
       {ramp({1, 1, 3}), ramp({1, 2, 3}, DType::F32, 3)},
       {{{1, 2, 6},
         {0, -0.421875, 0.84375, -0.890625, -0.46875, 0.625, 0, 0.140625, 1.40625, -0.640625,
          -0.78125, 0.3125}}}},
      {"ConvTranspose",
       11,
       {attr("strides", ints{2}), attr("output_shape", ints{6}), attr("auto_pad", "SAME_UPPER")},
       {ramp({1, 1, 3}), ramp({1, 1, 3}, DType::F32, 3)},
       {{{1, 1, 6}, {0, 0, -0.421875, 0.84375, -0.890625, -0.46875}}}},
      {"ConvTranspose",
       11,
       {attr("strides", ints{2}), attr("dilations", ints{2}), attr("pads", ints{1, 0}),
        attr("output_padding", ints{1})},
       {ramp({1, 1, 3}), ramp({1, 1, 2}, DType::F32, 3), ramp({1})},
       {{{1, 1, 7}, {0, -0.421875, 0, 1.078125, 0, -0.46875, 0}}}},
      {"ConvTranspose",
       22,
       {attr("group", 2), attr("auto_pad", "SAME_LOWER"), attr("strides", ints{2})},
       {ramp({1, 2, 2}), ramp({2, 1, 3}, DType::F32, 3)},
       {{{1, 2, 4}, {0, -0.421875, 0.84375, -1.125, -0.78125, 0.375, 0.625, -0.25}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(ConvolutionOperators, Pools) {
  const std::vector<NodeCase> cases = {
      {"MaxPool",
       8,
       {attr("kernel_shape", ints{2, 2}), attr("storage_order", 1)},
       {ramp({1, 1, 4, 3})},
       {{{1, 1, 3, 2}, {1.25, 1.25, 1.25, 1.25, 1.375, 0.75}}, {{1, 1, 3, 2}, {5, 5, 5, 5, 3, 6}}}},
      {"MaxPool",
       12,
       {attr("kernel_shape", ints{2, 2}), attr("pads", ints{1, 0, 0, 1}),
        attr("strides", ints{2, 2})},
       {ramp({1, 1, 4, 3})},
       {{{1, 1, 2, 2}, {0, 0.625, 1.25, 0.125}}, {{1, 1, 2, 2}, {0, 2, 4, 5}}}},
      {"MaxPool",
       10,
       {attr("kernel_shape", ints{2}), attr("strides", ints{2}), attr("dilations", ints{2}),
        attr("ceil_mode", 1)},
       {ramp({1, 1, 6})},
       {{{1, 1, 3}, {0.625, 1.25, 1.25}}}},
      {"MaxPool",
       12,
       {attr("kernel_shape", ints{3}), attr("pads", ints{1, 1})},
       {ramp({1, 1, 5}, DType::I8)},
       {{{1, 1, 5}, {0, 0, 0, 1, 1}}}},
      {"AveragePool",
       7,
       {attr("kernel_shape", ints{2, 2}), attr("pads", ints{1, 1, 1, 1}),
        attr("count_include_pad", 1), attr("strides", ints{2, 2})},
       {ramp({1, 1, 4, 3})},
       {{{1, 1, 3, 2}, {0, -0.125, -0.375, 0.4375, 0.34375, -0.15625}}}},
      {"AveragePool",
       7,
       {attr("kernel_shape", ints{2, 2}), attr("pads", ints{1, 1, 1, 1}),
        attr("strides", ints{2, 2})},
       {ramp({1, 1, 4, 3})},
       {{{1, 1, 3, 2}, {0, -0.25, -0.75, 0.4375, 1.375, -0.3125}}}},
      {"AveragePool",
       19,
       {attr("kernel_shape", ints{2}), attr("dilations", ints{3}), attr("ceil_mode", 1),
        attr("strides", ints{2}), attr("pads", ints{1, 1}), attr("count_include_pad", 1)},
       {ramp({1, 1, 6})},
       {{{1, 1, 3}, {0.3125, 0.0625, -0.25}}}},
      {"LpPool",
       11,
       {attr("kernel_shape", ints{2, 2}), attr("p", 3)},
       {ramp({1, 1, 4, 3})},
       {{{1, 1, 3, 2}, {1.518577, 1.535882, 1.518294, 1.344364, 1.592295, 1.050765}}}},
      {"GlobalLpPool", 2, {attr("p", 3)}, {ramp({1, 2, 3})}, {{{1, 2, 1}, {1.18594, 1.276517}}}},
      {"MaxUnpool",
       9,
       {attr("kernel_shape", ints{2}), attr("strides", ints{2})},
       {known({1, 1, 2}, {1, 2}), known({1, 1, 2}, {1, 3}, DType::I64)},
       {{{1, 1, 4}, {0, 1, 0, 2}}}},
      {"MaxRoiPool",
       1,
       {attr("pooled_shape", ints{2, 2})},
       {ramp({1, 1, 4, 4}), known({2, 5}, {0, 0, 0, 3, 1, 0, 1.5, 1, 2, 3})},
       {{{2, 1, 2, 2}, {0, 0.625, 1.25, 0.75, 0.25, 0.25, 0.25, 0.25}}}},
      {"Col2Im",
       18,
       {},
       {ramp({1, 4, 2}), known({2, 3}), known({2, 2})},
       {{{1, 1, 2, 3}, {0, -0.5, -0.5, 1.25, -0.875, 0.75}}}},
      {"DeformConv",
       19,
       {},
       {ramp({1, 1, 3, 3}), ramp({1, 1, 2, 2}, DType::F32, 3), ramp({1, 8, 2, 2}, DType::F32, 5),
        ramp({1}), ramp({1, 4, 2, 2}, DType::F32, 6)},
       {{{1, 1, 2, 2}, {0.3166504, 0.5853882, -0.3514709, -0.05444336}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

// Where ONNX Runtime and the specification differ, its formula: SAME counts the dilation.
TEST(ConvolutionOperators, DilatedPoolsOfSameSize) {
  const Values y = run_node("MaxPool", 12,
                            {attr("kernel_shape", ints{3}), attr("dilations", ints{2}),
                             attr("strides", ints{2}), attr("auto_pad", "SAME_UPPER")},
                            {ramp({1, 1, 7})});
  EXPECT_EQ(y[0].dims().text(), "(1, 1, 4)");
}

// Places are those of the pool that is undone, also where the result is larger.
TEST(ConvolutionOperators, UnpooledToAShape) {
  expect_node({"MaxUnpool",
               11,
               {attr("kernel_shape", ints{2}), attr("strides", ints{2})},
               {known({1, 1, 2}, {1, 2}), known({1, 1, 2}, {1, 3}, DType::I64), known({1, 1, 5})},
               {{{1, 1, 5}, {0, 1, 0, 2, 0}}}});
}

TEST(ConvolutionOperators, Errors) {
  const Value x = ramp({1, 2, 5});
  EXPECT_NE(refusal("Conv", 11, {attr("kernel_shape", ints{3})}, {x, ramp({1, 2, 2})})
                .find("kernel_shape (3,) is not the weight's (2,)"),
            std::string::npos);
  EXPECT_NE(refusal("MaxPool", 11, {}, {x}).find("kernel_shape is missing: give 1 numbers"),
            std::string::npos);
  EXPECT_NE(refusal("MaxPool", 11, {attr("kernel_shape", ints{2}), attr("strides", ints{0})}, {x})
                .find("strides 0 must be at least 1"),
            std::string::npos);
  EXPECT_NE(refusal("MaxPool", 11, {attr("kernel_shape", ints{2}), attr("pads", ints{1})}, {x})
                .find("pads has 1 numbers for 2 spatial axes"),
            std::string::npos);
  EXPECT_NE(refusal("Conv", 11, {attr("auto_pad", "SAME")}, {x, ramp({1, 2, 2})})
                .find("auto_pad is 'SAME': give NOTSET, VALID, SAME_UPPER or SAME_LOWER"),
            std::string::npos);
  EXPECT_NE(refusal("GlobalMaxPool", 1, {}, {ramp({2, 3, 0})}), "no error");
}

}  // namespace
}  // namespace weft::onnx
