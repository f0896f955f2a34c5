#include <gtest/gtest.h>

#include "tests/onnx/one_node.h"
#include "weft/base/error.h"

namespace weft::onnx {
namespace {

std::string refused(const std::string& op, const std::string& domain, int64_t opset,
                    std::vector<Attribute> attributes, const Values& inputs) {
  try {
    realize({run_node(op, opset, std::move(attributes), inputs, 1, domain)[0].tensor()});
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

TEST(LossOperators, Refusals) {
  const Value x = ramp({2, 3});
  EXPECT_EQ(
      refused("NegativeLogLikelihoodLoss", "", 13, {attr("reduction", "median")},
              {x, known(ints{0, 1})}),
      "NegativeLogLikelihoodLoss node that makes 'y0': reduction 'median': none, mean or sum");
  EXPECT_NE(refused("NegativeLogLikelihoodLoss", "", 13, {}, {x, known(ints{0, 3})}), "no error");
  const std::string training = "ai.onnx.preview.training";
  EXPECT_EQ(refused("Adam", training, 1, {}, {known({}, {0.1}), scalar(0), x, x, x}),
            "ai.onnx.preview.training.Adam node that makes 'y0': 5 inputs: a rate, a count, and 4 "
            "tensors for each that is optimised");
  EXPECT_EQ(refused("Momentum", training, 1,
                    {attr("alpha", 0.1), attr("beta", 0.1), attr("norm_coefficient", 0.0),
                     attr("mode", "heavy")},
                    {known({}, {0.1}), scalar(0), x, x, x}),
            "ai.onnx.preview.training.Momentum node that makes 'y0': mode 'heavy': standard or "
            "nesterov");
  EXPECT_EQ(
      refused("Gradient", training, 1, {attr("xs", texts{"w"}), attr("y", "z")}, {x}),
      "ai.onnx.preview.training.Gradient node that makes 'y0': input 0 is 'x0': only gradients "
      "at the values of xs ('w') are supported");
  EXPECT_EQ(refused("Gradient", training, 1, {attr("xs", texts{"x0"}), attr("y", "z")}, {x}),
            "ai.onnx.preview.training.Gradient node that makes 'y0': 'z' is no tensor that is made "
            "before it");
}

}  // namespace
}  // namespace weft::onnx
