#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"
#include "weft/base/error.h"

namespace weft::onnx {

namespace {

std::vector<double> elements_of(const Value& v) {
  return v.tensor().cast(DType::F64).to_vector<double>();
}

}  // namespace

Value ramp(const Dims& shape, DType dtype, int64_t seed) {
  std::vector<double> all;
  for (int64_t i = 0; i < shape.product().value(); ++i)
    all.push_back(static_cast<double>((37 * i + 11 + seed) % 23 - 11) / 8);
  Tensor x = Tensor::from(all, shape).cast(dtype);
  return {x.realize()};
}

Value known(const std::vector<int64_t>& elements) {
  const auto bytes = std::as_bytes(std::span(elements));
  return Value(HostArray::owned(DType::I64, {static_cast<int64_t>(elements.size())},
                                {bytes.begin(), bytes.end()}));
}

Value scalar(int64_t element) {
  const auto bytes = std::as_bytes(std::span(&element, 1));
  return Value(HostArray::owned(DType::I64, {}, {bytes.begin(), bytes.end()}));
}

Value known(const Dims& shape, const std::vector<double>& elements, DType dtype) {
  const Tensor x = Tensor::from(elements, shape).cast(dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(dtype, x.numel())));
  x.copy_to(bytes);
  return Value(HostArray::owned(dtype, x.shape(), std::move(bytes)));
}

Values run_node(const std::string& op, int64_t opset, std::vector<Attribute> attributes,
                const Values& inputs, size_t outputs, const std::string& domain) {
  Model model;
  model.opsets[domain] = opset;
  Node node;
  node.op = op;
  node.domain = domain;
  node.attributes = std::move(attributes);
  Values given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    node.inputs.push_back(inputs[i] ? strformat("x{}", i) : "");
    if (!inputs[i]) continue;
    DeclaredValue declared;
    declared.name = node.inputs.back();
    model.graph.inputs.push_back(declared);
    given.push_back(inputs[i]);
  }
  for (size_t i = 0; i < outputs; ++i) {
    DeclaredValue declared;
    declared.name = strformat("y{}", i);
    node.outputs.push_back(declared.name);
    model.graph.outputs.push_back(declared);
  }
  model.graph.nodes.push_back(std::move(node));
  Evaluator evaluator(model);
  return evaluator.run(model.graph, given);
}

void expect_node(const NodeCase& c, double tolerance) {
  const std::string which = strformat("{} of opset {}", c.op, c.opset);
  const Values found = run_node(c.op, c.opset, c.attributes, c.inputs, c.outputs.size());
  ASSERT_EQ(found.size(), c.outputs.size()) << which;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].dims().text(), Dims(c.outputs[i].shape).text()) << which;
    const std::vector<double> elements = elements_of(found[i]);
    const std::vector<double>& wanted = c.outputs[i].elements;
    ASSERT_EQ(elements.size(), wanted.size()) << which;
    for (size_t k = 0; k < wanted.size(); ++k) {
      if (elements[k] == wanted[k]) continue;
      EXPECT_NEAR(elements[k], wanted[k], tolerance * (1 + std::fabs(wanted[k])))
          << which << ", output " << i << ", element " << k;
    }
  }
}

std::string refusal(const std::string& op, int64_t opset, std::vector<Attribute> attributes,
                    const Values& inputs, size_t outputs) {
  try {
    realize({run_node(op, opset, std::move(attributes), inputs, outputs)[0].tensor()});
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

}  // namespace weft::onnx
