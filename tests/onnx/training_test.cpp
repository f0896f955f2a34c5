// Models that are trained: initialisers as leaves.
#include <gtest/gtest.h>

#include "tests/onnx/one_node.h"
#include "tests/onnx/written.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"
#include "weft/onnx/export.h"
#include "weft/onnx/runner.h"
#include "weft/tensor/jit.h"

namespace weft::onnx {

namespace {

struct Net {
  nn::Linear first{4, 8}, second{8, 2};
  Tensor operator()(const Tensor& x) const { return second(first(x).tanh()); }
  void visit(StateVisitor& v) { v("first", first), v("second", second); }
};

Model model_of(Net& net) {
  return export_onnx([&](const Tensors& in) { return Tensors{net(in[0])}; },
                     {ramp({3, 4}).tensor()},
                     {.input_names = {"x"}, .output_names = {"y"}, .state = state_dict(net)});
}

TEST(OnnxTraining, GradientsAreThoseOfTheFunction) {
  Net net;
  OnnxRunner runner(model_of(net));
  const Tensor x = ramp({3, 4}).tensor();
  const std::vector<Tensor> found = runner.parameters();
  ASSERT_EQ(found.size(), 4u);
  runner({{"x", Value(x)}})["y"].tensor().square().sum().backward();
  net(x).square().sum().backward();
  for (const NamedTensor& own : runner.state_dict())
    for (const NamedTensor& wanted : state_dict(net)) {
      if (own.name != wanted.name) continue;
      const auto a = own.tensor.grad().to_vector<float>(),
                 b = wanted.tensor.grad().to_vector<float>();
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << own.name;
    }
}

TEST(OnnxTraining, AnOptimizerTrainsAndTheFileStays) {
  Net net;
  const Model model = model_of(net);
  const std::vector<std::byte> before = onnx_bytes(model);
  OnnxRunner runner(parse_onnx(before, "m"));
  const Tensor x = ramp({3, 4}).tensor();
  nn::SGD optimizer(runner.parameters(), {.lr = 0.05});
  float first = 0, last = 0;
  for (int i = 0; i < 20; ++i) {
    optimizer.zero_grad();
    Tensor loss = (runner({{"x", Value(x)}})["y"].tensor() - 1).square().mean();
    loss.backward();
    optimizer.step();
    last = loss.item<float>();
    if (i == 0) first = last;
  }
  EXPECT_LT(last, first / 2);
  EXPECT_EQ(onnx_bytes(model), before);
  // What was trained is written, and read again gives the same.
  OnnxRunner again(written_and_read(runner.trained()));
  const auto a = again({{"x", Value(x)}})["y"].tensor().to_vector<float>();
  const auto b = runner({{"x", Value(x)}})["y"].tensor().to_vector<float>();
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
}

TEST(OnnxTraining, WithoutGradientsCallsAreCaptured) {
  Net net;
  OnnxRunner runner(model_of(net));
  for (Tensor& t : runner.parameters()) t.requires_grad_(false);
  const Tensor x = ramp({3, 4}).tensor();
  const auto y = runner({{"x", Value(x)}})["y"].tensor().to_vector<float>();
  EXPECT_GT(runner.kernels(), 0u);
  // Captures read the tensors as they are.
  for (NamedTensor t : runner.state_dict()) t.tensor.assign(t.tensor * 0);
  EXPECT_EQ(runner({{"x", Value(x)}})["y"].tensor().to_vector<float>(),
            std::vector<float>(y.size(), 0.0f));
}

TEST(OnnxTraining, SettingsAndStatisticsAreNotTrained) {
  nn::BatchNorm norm(3);
  const Model m = export_onnx([&](const Tensors& in) { return Tensors{norm(in[0])}; },
                              {ramp({2, 3, 4}).tensor()}, {.state = state_dict(norm)});
  OnnxRunner runner(m);
  EXPECT_EQ(runner.state_dict().size(), 4u);
  EXPECT_EQ(runner.parameters().size(), 2u);
}

}  // namespace

}  // namespace weft::onnx
