#include <gtest/gtest.h>

#include "tests/onnx/one_node.h"

// Numbers: tools/onnx_runtime_cases compares with ONNX Runtime.

namespace weft::onnx {
namespace {

TEST(RemovedOperators, Elements) {
  const Value x = known({3}, {-1, 0, 2});
  expect_node(
      {"Affine", 7, {attr("alpha", 2.0), attr("beta", 0.5)}, {x}, {{{3}, {-1.5, 0.5, 4.5}}}});
  expect_node({"Scale", 1, {attr("scale", 0.5)}, {x}, {{{3}, {-0.5, 0, 1}}}});
  expect_node({"ScaledTanh",
               1,
               {attr("alpha", 2.0), attr("beta", 0.5)},
               {x},
               {{{3}, {-0.92423431, 0, 1.52318831}}}});
  expect_node({"ParametricSoftplus",
               1,
               {attr("alpha", 0.5), attr("beta", 1.0)},
               {x},
               {{{3}, {0.15663085, 0.34657359, 1.06346400}}}});
  expect_node({"ImageScaler",
               1,
               {attr("scale", 2.0), attr("bias", doubles{1, -1})},
               {known({1, 2, 1, 2}, {1, 2, 3, 4})},
               {{{1, 2, 1, 2}, {3, 5, 5, 7}}}});
}

TEST(RemovedOperators, Crop) {
  const Value x = known({1, 1, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  expect_node({"Crop", 1, {attr("border", ints{1, 0, 2, 1})}, {x}, {{{1, 1, 2, 1}, {1, 5}}}});
  expect_node({"Crop",
               1,
               {attr("border", ints{1, 1, 0, 0}), attr("scale", ints{1, 2})},
               {x},
               {{{1, 1, 1, 2}, {5, 6}}}});
  const auto refused = [&](ints border, ints scale) {
    const std::string text = refusal(
        "Crop", 1, {attr("border", std::move(border)), attr("scale", std::move(scale))}, {x});
    return text.substr(text.find("': ") + 3);
  };
  EXPECT_EQ(refused({1, 1}, {}),
            "input (1, 1, 3, 4), 2 borders, 0 scales: (n, c, h, w), 4 and 0 or 2");
  EXPECT_EQ(refused({1, 1, 0, 0}, {3, 2}),
            "3 rows from 1 on and 2 columns from 1 on of (1, 1, 3, 4): inside of the picture");
  const std::string text = refusal("ImageScaler", 1, {attr("bias", doubles{1, 2})}, {x});
  EXPECT_EQ(text.substr(text.find("': ") + 3),
            "2 biases for (1, 1, 3, 4): one for each channel of (n, c, h, w)");
}

}  // namespace
}  // namespace weft::onnx
