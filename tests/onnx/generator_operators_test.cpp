// Random numbers of nodes: those of a seed, and those of the context's sequence.
#include <gtest/gtest.h>

#include "tests/onnx/one_node.h"
#include "tests/onnx/onnx_bytes.h"
#include "weft/onnx/runner.h"

namespace weft::onnx {
namespace {

struct RandomCase {
  std::string op;
  int64_t opset;
  std::vector<Attribute> attributes;
  Values inputs;
};

std::vector<RandomCase> random_cases() {
  const Value x = known({2, 40}, std::vector<double>(80, 0.5));
  const Value ratio = known({}, {0.5}), training = known({}, {1}, DType::Bool);
  return {{"RandomNormal", 1, {attr("shape", ints{2, 40})}, {}},
          {"RandomUniform", 1, {attr("shape", ints{2, 40})}, {}},
          {"RandomNormalLike", 1, {}, {x}},
          {"RandomUniformLike", 1, {}, {x}},
          {"Bernoulli", 15, {}, {x}},
          {"Multinomial", 7, {attr("sample_size", 40)}, {x}},
          {"Dropout", 13, {}, {x, ratio, training}}};
}

std::vector<double> drawn(const RandomCase& c, const std::vector<Attribute>& more) {
  std::vector<Attribute> attributes = c.attributes;
  attributes.insert(attributes.end(), more.begin(), more.end());
  return run_node(c.op, c.opset, attributes, c.inputs)[0]
      .tensor()
      .cast(DType::F64)
      .to_vector<double>();
}

TEST(GeneratorOperators, OfASeedAreTheSameAndOfAnotherOthers) {
  for (const RandomCase& c : random_cases()) {
    const bool whole = c.op == "Dropout";  // ONNX: an integer there, a float elsewhere
    const auto seed = [&](int x) {
      return std::vector{whole ? attr("seed", x) : attr("seed", static_cast<double>(x))};
    };
    const std::vector<double> first = drawn(c, seed(5));
    EXPECT_EQ(first, drawn(c, seed(5))) << c.op;
    EXPECT_NE(first, drawn(c, seed(6))) << c.op;
    EXPECT_NE(first, drawn(c, {})) << c.op;
  }
}

TEST(GeneratorOperators, WithoutASeedAreOthersEachTime) {
  for (const RandomCase& c : random_cases()) EXPECT_NE(drawn(c, {}), drawn(c, {})) << c.op;
}

std::vector<float> called(OnnxRunner& runner) {
  return runner({{"x", Value(Tensor::zeros({4, 8}))}}).at("y").tensor().to_vector<float>();
}

OnnxRunner runner_of(const std::string& node) {
  const auto data = std::make_shared<std::string>(bytes::model(
      bytes::graph({{node}, {bytes::declared("x", {4, 8})}, {bytes::declared("y", {4, 8})}, {}})));
  return OnnxRunner(parse_onnx(std::as_bytes(std::span(*data)), "m", data));
}

TEST(GeneratorOperators, AreTheSameInReplays) {
  OnnxRunner seeded =
      runner_of(bytes::node("RandomNormalLike", {"x"}, {"y"}, {bytes::int_attribute("seed", 2)}));
  const std::vector<float> first = called(seeded);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(called(seeded), first);
  OnnxRunner free = runner_of(bytes::node("RandomNormalLike", {"x"}, {"y"}));
  std::vector<float> last = called(free);
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> next = called(free);
    EXPECT_NE(next, last);
    last = next;
  }
}

}  // namespace
}  // namespace weft::onnx
