// Operators of networks on a batch or a length that is a variable: equal to the same node on
// numbers.
#include <gtest/gtest.h>

#include "tests/onnx/one_node.h"

namespace weft::onnx {
namespace {

struct SymbolicCase {
  std::string op;
  int64_t opset;
  std::vector<Attribute> attributes;
  Values inputs;
  int64_t axis = 0;  ///< of the inputs listed
  std::vector<size_t> which = {0};
};

/// The first n places of an axis, as a size that is a variable.
Value cut(const Value& x, int64_t axis, const Dim& n) {
  std::vector<DimPair> range;
  for (size_t i = 0; i < x.ndim(); ++i)
    range.emplace_back(0, static_cast<int64_t>(i) == axis ? n : x.dims()[i]);
  return Value(x.tensor().shrink(range));
}

void expect_the_same(const SymbolicCase& c) {
  const int64_t n = 3;
  const Variable size("n", 1, 4);
  Values varying = c.inputs, fixed = c.inputs;
  for (const size_t i : c.which) {
    varying[i] = cut(c.inputs[i], c.axis, size.bind(n));
    fixed[i] = cut(c.inputs[i], c.axis, n);
  }
  const Tensor found = run_node(c.op, c.opset, c.attributes, varying)[0].tensor();
  const Tensor wanted = run_node(c.op, c.opset, c.attributes, fixed)[0].tensor();
  std::vector<DimPair> whole;
  for (const Dim& d : wanted.dims()) whole.emplace_back(0, d);
  const std::vector<double> a = found.cast(DType::F64).shrink(whole).to_vector<double>();
  const std::vector<double> b = wanted.cast(DType::F64).to_vector<double>();
  ASSERT_EQ(a.size(), b.size()) << c.op;
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << c.op << " " << i;
}

TEST(SymbolicSizes, Batches) {
  const Value image = ramp({4, 2, 5, 5}), v = ramp({2}), four = ramp({4, 3});
  const Value var = known({2}, {1, 2});
  const std::vector<SymbolicCase> cases = {
      {"Conv", 22, {attr("auto_pad", "SAME_UPPER")}, {image, ramp({3, 2, 3, 3})}},
      {"ConvTranspose", 22, {attr("strides", ints{2, 2})}, {image, ramp({2, 3, 3, 3})}},
      {"MaxPool", 22, {attr("kernel_shape", ints{3, 3})}, {image}},
      {"AveragePool",
       22,
       {attr("kernel_shape", ints{2, 2}), attr("pads", ints{1, 1, 1, 1})},
       {image}},
      {"GlobalAveragePool", 22, {}, {image}},
      {"BatchNormalization", 15, {}, {image, v, v, v, var}},
      {"InstanceNormalization", 22, {}, {image, v, v}},
      {"GroupNormalization", 21, {attr("num_groups", 2)}, {image, v, v}},
      {"LRN", 13, {attr("size", 3)}, {image}},
      {"Resize", 13, {}, {image, {}, known({4}, {1, 1, 2, 2})}},
      {"Gemm", 13, {attr("transB", 1)}, {four, ramp({2, 3}), v}},
      {"MatMul", 13, {}, {four, ramp({3, 2})}},
      {"Softmax", 11, {}, {four}},
      {"ReduceMean", 18, {}, {four, known(ints{1})}},
      {"ArgMax", 13, {attr("axis", 1)}, {four}},
      {"QuantizeLinear", 21, {}, {four, known(Dims{}, {0.1})}},
      {"DynamicQuantizeLinear", 11, {}, {four}},
      {"MatMulInteger", 10, {}, {ramp({4, 3}, DType::U8), ramp({3, 2}, DType::I8)}},
  };
  for (const SymbolicCase& c : cases) {
    SCOPED_TRACE(c.op);
    EXPECT_NO_THROW(expect_the_same(c));
  }
}

TEST(SymbolicSizes, Lengths) {
  const Value heads = ramp({1, 2, 4, 2}), keys = ramp({1, 2, 4, 2}, DType::F32, 3),
              angles = ramp({1, 4, 1}), states = ramp({3, 4, 2}), w = ramp({1, 8, 2});
  const std::vector<SymbolicCase> cases = {
      {"Softmax", 13, {}, {ramp({2, 4})}, 1},
      {"LayerNormalization", 17, {}, {ramp({1, 4, 3}), ramp({3}), ramp({3})}, 1},
      {"RMSNormalization", 23, {}, {ramp({1, 4, 3}), ramp({3})}, 1},
      {"MatMul", 13, {}, {ramp({1, 4, 3}), ramp({3, 2})}, 1},
      {"Attention", 23, {}, {heads, keys, keys}, 2, {0, 1, 2}},
      {"Attention", 23, {attr("is_causal", 1)}, {heads, keys, keys}, 2, {0, 1, 2}},
      {"Attention", 23, {}, {heads, keys, keys, ramp({1, 1, 1, 4})}, 2, {0}},
      {"RotaryEmbedding",
       23,
       {attr("num_heads", 1)},
       {ramp({1, 4, 2}), angles, angles},
       1,
       {0, 1, 2}},
      {"LSTM", 14, {attr("hidden_size", 2)}, {states, w, w}, 1},
  };
  for (const SymbolicCase& c : cases) {
    SCOPED_TRACE(c.op);
    EXPECT_NO_THROW(expect_the_same(c));
  }
}

}  // namespace
}  // namespace weft::onnx
