// Functions as ONNX models: what is written, and what OnnxRunner makes of it.
#include "weft/onnx/export.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/onnx/one_node.h"
#include "tests/onnx/written.h"
#include "weft/base/error.h"
#include "weft/nn/layers.h"
#include "weft/onnx/runner.h"
#include "weft/tensor/jit.h"

namespace weft::onnx {

namespace {

Tensor ramp_tensor(const Dims& shape, DType dtype = DType::F32, int64_t seed = 0) {
  return ramp(shape, dtype, seed).tensor();
}

std::string operators_of(const Model& m) {
  std::string all;
  for (const Node& n : m.graph.nodes) all += (all.empty() ? "" : " ") + n.op;
  return all;
}

/// Writes the model, reads it again and compares what it gives with what f gives.
void expect_same(const TensorFunction& f, const Tensors& inputs, const ExportOptions& options = {},
                 double tolerance = 1e-5) {
  const Model model = export_onnx(f, inputs, options);
  SCOPED_TRACE(operators_of(model));
  OnnxRunner runner(written_and_read(model));
  NamedValues given;
  for (size_t i = 0; i < inputs.size(); ++i)
    given.emplace(model.graph.inputs[i].name, Value(inputs[i]));
  const NamedValues found = runner(given);
  const Tensors wanted = f(inputs);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Tensor y = found.at(model.graph.outputs[i].name).tensor();
    ASSERT_EQ(y.dims().text(), wanted[i].dims().text());
    ASSERT_EQ(y.dtype(), wanted[i].dtype());
    const auto a = y.to_vector<double>(), b = wanted[i].to_vector<double>();
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_NEAR(a[k], b[k], tolerance * (1 + std::abs(b[k]))) << "element " << k;
  }
}

TEST(OnnxExport, LinearIsGemmWithItsNames) {
  nn::Linear layer(5, 3);
  const auto f = [&](const Tensors& in) { return Tensors{layer(in[0]).relu()}; };
  const ExportOptions options{
      .input_names = {"x"}, .output_names = {"y"}, .state = state_dict(layer)};
  const Model m = export_onnx(f, {ramp_tensor({2, 5})}, options);
  EXPECT_EQ(operators_of(m), "Gemm Relu");
  ASSERT_EQ(m.graph.initialisers.size(), 2u);
  EXPECT_EQ(m.graph.initialisers[0].name, "bias");  // in the order in which they are met
  EXPECT_EQ(m.graph.initialisers[1].name, "weight");
  EXPECT_EQ(m.graph.inputs[0].name, "x");
  EXPECT_EQ(m.graph.outputs[0].name, "y");
  expect_same(f, {ramp_tensor({2, 5})}, options);
}

TEST(OnnxExport, Products) {
  const Tensor a = ramp_tensor({2, 3, 4}), b = ramp_tensor({4, 5}, DType::F32, 3),
               c = ramp_tensor({2, 4, 6}, DType::F32, 5), v = ramp_tensor({4}, DType::F32, 7);
  const auto product = [](const Tensors& in) { return Tensors{in[0].matmul(in[1])}; };
  for (const Tensor& y : {b, c, v}) expect_same(product, {a, y});
  EXPECT_EQ(operators_of(export_onnx(product, {a, b})), "MatMul");
  EXPECT_EQ(operators_of(export_onnx(product, {a, c})), "MatMul");
  expect_same(product, {v, b});
  expect_same(product, {v, v});
  const auto turned = [](const Tensors& in) {
    return Tensors{in[0].transpose(1, 2).matmul(in[0]).permute({1, 0, 2})};
  };
  expect_same(turned, {a});
  const auto both = [](const Tensors& in) {
    return Tensors{(in[0].unsqueeze(-1) * in[1]).sum({0, 2})};
  };
  expect_same(both, {a, b});
}

TEST(OnnxExport, Convolutions) {
  const Tensor x = ramp_tensor({2, 4, 9, 8}), w = ramp_tensor({6, 2, 3, 2}, DType::F32, 1),
               b = ramp_tensor({6}, DType::F32, 2);
  const auto f = [&](const Tensors& in) {
    return Tensors{
        in[0].conv2d(w, b, {.groups = 2, .stride = {2, 1}, .dilation = {1, 2}, .padding = {1, 2}})};
  };
  EXPECT_EQ(operators_of(export_onnx(f, {x})), "Conv");
  expect_same(f, {x});
  const auto line = [&](const Tensors& in) {
    return Tensors{in[0].conv2d(ramp_tensor({5, 4, 1}))};
  };
  EXPECT_EQ(operators_of(export_onnx(line, {ramp_tensor({2, 4, 7})})), "Conv");
  expect_same(line, {ramp_tensor({2, 4, 7})});
}

TEST(OnnxExport, TransposedConvolutions) {
  const Tensor x = ramp_tensor({2, 4, 9, 8}), b = ramp_tensor({3}, DType::F32, 2);
  const auto expect_one = [&](const Tensor& w, const Tensor& bias, const ConvOptions& o,
                              const Tensor& of) {
    const auto f = [&](const Tensors& in) {
      return Tensors{in[0].relu().conv_transpose2d(w, bias, o)};
    };
    EXPECT_EQ(operators_of(export_onnx(f, {of})), "Relu ConvTranspose");
    expect_same(f, {of});
  };
  expect_one(ramp_tensor({4, 3, 2, 2}), {}, {.stride = {2, 2}}, x);
  expect_one(ramp_tensor({4, 3, 2, 2}), b, {.stride = {2, 2}}, x);
  expect_one(ramp_tensor({4, 3, 3, 3}), b, {.stride = {2, 2}, .padding = {1}}, x);
  expect_one(ramp_tensor({4, 3, 3, 3}), b,
             {.stride = {2, 2}, .padding = {1}, .output_padding = {1}}, x);
  expect_one(ramp_tensor({4, 3, 5, 4}), {}, {.stride = {3, 2}, .padding = {1, 2}}, x);
  expect_one(ramp_tensor({4, 3, 4, 4}), {}, {.groups = 2, .stride = {2, 2}, .padding = {1}}, x);
  expect_one(ramp_tensor({4, 3, 4}), b, {.stride = {2}}, ramp_tensor({2, 4, 7}));
  const auto dilated = [&](const Tensors& in) {
    return Tensors{in[0].conv_transpose2d(ramp_tensor({4, 3, 3, 3}), b,
                                          {.stride = {2, 2}, .dilation = {2, 1}}),
                   in[0].conv_transpose2d(ramp_tensor({4, 3, 3, 3}))};
  };
  expect_same(dilated, {x});
}

TEST(OnnxExport, Pools) {
  const Tensor x = ramp_tensor({2, 3, 8, 8});
  const auto tiles = [](const Tensors& in) {
    return Tensors{in[0].max_pool2d(2), in[0].avg_pool2d(2)};
  };
  EXPECT_EQ(operators_of(export_onnx(tiles, {x})), "MaxPool AveragePool");
  expect_same(tiles, {x});
  const auto windows = [](const Tensors& in) {
    return Tensors{in[0].max_pool2d(3, {.stride = 2, .padding = 1}),
                   in[0].avg_pool2d(3, {.stride = 2, .padding = 1})};
  };
  EXPECT_EQ(operators_of(export_onnx(windows, {x})), "MaxPool AveragePool");
  expect_same(windows, {x});
}

TEST(OnnxExport, Normalisations) {
  const Tensor x = ramp_tensor({2, 3, 4}), w = ramp_tensor({4}, DType::F32, 3),
               b = ramp_tensor({4}, DType::F32, 5);
  const auto norm = [&](const Tensors& in) { return Tensors{in[0].layernorm(-1) * w + b}; };
  EXPECT_EQ(operators_of(export_onnx(norm, {x})), "LayerNormalization");
  expect_same(norm, {x});
  const auto bare = [&](const Tensors& in) { return Tensors{in[0].layernorm({1, 2})}; };
  EXPECT_EQ(operators_of(export_onnx(bare, {x})), "LayerNormalization");
  expect_same(bare, {x});
  const auto soft = [&](const Tensors& in) {
    return Tensors{in[0].softmax(1), in[0].log_softmax(-1)};
  };
  EXPECT_EQ(operators_of(export_onnx(soft, {x})), "Softmax LogSoftmax");
  expect_same(soft, {x});
  nn::BatchNorm batch(3);
  const auto f = [&](const Tensors& in) { return Tensors{batch(in[0])}; };
  EXPECT_EQ(operators_of(export_onnx(f, {x}, {.state = state_dict(batch)})), "BatchNormalization");
  expect_same(f, {x}, {.state = state_dict(batch)});
}

TEST(OnnxExport, Indexing) {
  const Tensor table = ramp_tensor({5, 3}),
               ids = Tensor::from(std::vector<int64_t>{0, 4, -1, 2}, {2, 2});
  const auto rows = [&](const Tensors& in) { return Tensors{table.index({in[0]})}; };
  EXPECT_EQ(operators_of(export_onnx(rows, {ids})), "Gather");
  expect_same(rows, {ids});
  const auto cuts = [](const Tensors& in) {
    return Tensors{in[0].index({Slice(1, 5, 2)}), in[0].flip({0, 1}),
                   in[0].pad({{1, 2}, {0, 1}}, 3), Tensor::cat({in[0], in[0]}, 1),
                   in[0].gather(0, Tensor::from(std::vector<int32_t>{1, 0, 3}, {1, 3}))};
  };
  expect_same(cuts, {ramp_tensor({6, 3})});
}

TEST(OnnxExport, FoldsAndOrders) {
  const Tensor x = ramp_tensor({3, 7});
  const auto f = [](const Tensors& in) {
    const Tensor& y = in[0];
    return Tensors{y.sum(0),       y.mean(1, true), y.max(1),         y.min({0, 1}),
                   (y > 0).any(1), y.var(1),        y.argmax(1),      y.argmin(0),
                   y.cumsum(1),    y.sort(1).first, y.topk(3).second, y.prod(0)};
  };
  expect_same(f, {x});
}

TEST(OnnxExport, Elementwise) {
  const Tensor x = ramp_tensor({4, 6}), i = ramp_tensor({4, 6}, DType::I32);
  const auto f = [](const Tensors& in) {
    const Tensor &y = in[0], &n = in[1];
    return Tensors{y.exp(),
                   y.tanh(),
                   y.sigmoid(),
                   y.gelu(),
                   y.gelu(false),
                   y.abs(),
                   y.floor(),
                   y.ceil(),
                   y.round(),
                   y.sign(),
                   y.trunc(),
                   y.leaky_relu(0.1),
                   y.relu6(),
                   y.elu(),
                   y.silu(),
                   y.erf(),
                   y.isnan(),
                   n.floor_div(3),
                   n % 4,
                   n & 5,
                   n << 2,
                   n >> 1,
                   -n,
                   (n > 1) ^ (n < 3),
                   y.cast(DType::F16),
                   y / 3,
                   y.pow(2),
                   (y * y).sqrt(),
                   (y.abs() + 1).log(),
                   y - y.mean(1, true),
                   y.minimum(0.25)};
  };
  expect_same(f, {x, i});
}

TEST(OnnxExport, SymbolicSizesHaveNames) {
  nn::Linear layer(4, 3);
  const auto f = [&](const Tensors& in) {
    return Tensors{layer(in[0]).softmax(-1).reshape({in[0].dim(0) * 3}),
                   in[0].tanh() - in[0].mean(0)};
  };
  const ExportOptions options{.state = state_dict(layer),
                              .dynamic_axes = {{"input_0", {{0, "batch"}}}}};
  const Model m = export_onnx(f, {ramp_tensor({2, 4})}, options);
  EXPECT_EQ((*m.graph.inputs[0].type.shape)[0].name, "batch");
  OnnxRunner runner(written_and_read(m));
  for (const int64_t n : {1, 2, 5}) {
    const Tensor x = ramp_tensor({n, 4});
    const auto found = runner({{"input_0", Value(x)}})["output_0"].tensor().to_vector<float>();
    const auto wanted = f({x})[0].to_vector<float>();
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k], wanted[k], 1e-6);
  }
}

TEST(OnnxExport, ACapturedFunction) {
  nn::Linear layer(4, 3);
  realize({layer.weight, layer.bias});
  auto step = jit([&](const Tensor& x) { return layer(x).tanh(); });
  const Tensor x = ramp_tensor({2, 4}).contiguous().realize();
  step(x), step(x);
  const Model m = export_onnx(step.captured());
  EXPECT_NE(operators_of(m).find("Gemm"), std::string::npos) << operators_of(m);
  const auto found = OnnxRunner(written_and_read(m))({{"input_0", Value(x)}})["output_0"]
                         .tensor()
                         .to_vector<float>();
  const auto wanted = step(x).to_vector<float>();
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-6);
}

/// The text of the Error that exporting f gives.
std::string refused(const TensorFunction& f, const Tensors& inputs,
                    const ExportOptions& options = {}) {
  try {
    export_onnx(f, inputs, options);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "onnx.export");
    return e.what();
  }
  return "nothing";
}
void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(OnnxExport, OneErrorListsAllThatCannotBe) {
  Tensor counter = Tensor::zeros({3}).contiguous().realize();
  const auto f = [&](const Tensors& in) {
    counter.assign(counter + 1);
    return Tensors{in[0] + Tensor::rand({3}) + in[0].bitcast(DType::I32)};
  };
  const std::string text = refused(f, {ramp_tensor({3})}, {.state = {{"counter", counter}}});
  expect_part(text, "this cannot be written as ONNX, opset 20:");
  expect_part(text, "'counter' is written to: export what is done for inference");
  expect_part(text, "random numbers, which would be the same in every run");
  expect_part(text, "no operator stands for bitcast i32 (3)");
  expect_part(text, "export_test.cpp");
  EXPECT_EQ(counter.to_vector<float>(), std::vector<float>(3, 0.0f));  // as it was
}

TEST(OnnxExport, ErrorsOfOptions) {
  const auto f = [](const Tensors& in) { return in; };
  const Tensors x{ramp_tensor({3})};
  expect_part(refused(f, x, {.opset = 3}), "opset 3 cannot be written: choose one from 18 to 23");
  expect_part(refused(f, x, {.input_names = {"a", "b"}}),
              "2 input names are given for 1: give as many, or none");
  expect_part(refused(f, x, {.output_names = {"a", "b"}}), "2 output names are given for 1");
  expect_part(refused(f, x, {.dynamic_axes = {{"y", {{0, "n"}}}}}),
              "dynamic_axes names 'y', which is no input");
  expect_part(refused(f, x, {.dynamic_axes = {{"input_0", {{1, "n"}}}}}),
              "axis 1 of the input 'input_0' of shape (3,) cannot have a name");
}

}  // namespace

}  // namespace weft::onnx
