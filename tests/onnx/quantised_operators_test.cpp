#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"

namespace weft::onnx {
namespace {

// Wanted numbers: ONNX Runtime 1.31.

TEST(QuantisedOperators, ToIntegersAndBack) {
  const std::vector<NodeCase> cases = {
      {"QuantizeLinear",
       10,
       {},
       {ramp({2, 3}), known(Dims{}, {0.1})},
       {{{2, 3}, {0, 0, 6, 0, 12, 1}}}},
      {"QuantizeLinear",
       13,
       {attr("axis", -1)},
       {ramp({2, 3}), known({3}, {0.1, 0.2, 0.05}), known({3}, {1, 2, 3}, DType::I8)},
       {{{2, 3}, {1, -4, 15, -4, 8, 5}}}},
      {"QuantizeLinear",
       13,
       {attr("axis", 0)},
       {ramp({2, 3}), known({2}, {0.1, 0.2}), known({2}, {1, 2}, DType::U8)},
       {{{2, 3}, {1, 0, 7, 0, 8, 3}}}},
      {"QuantizeLinear",
       21,
       {attr("axis", 1), attr("block_size", 2)},
       {ramp({2, 4}), known({2, 2}, {0.1, 0.2, 0.3, 0.4}), known({2, 2}, {1, 2, 3, 4}, DType::I16)},
       {{{2, 4}, {1, -10, 5, 0, 7, 3, 2, 6}}}},
      {"DequantizeLinear",
       10,
       {},
       {ramp({2, 3}, DType::I32), known(Dims{}, {0.5})},
       {{{2, 3}, {0, -0.5, 0, 0, 0.5, 0}}}},
      {"DequantizeLinear",
       13,
       {},
       {ramp({2, 3}, DType::I8), known({3}, {0.5, 0.25, 2}), known({3}, {1, 2, 3}, DType::I8)},
       {{{2, 3}, {-0.5, -0.75, -6, -0.5, -0.25, -6}}}},
      {"DequantizeLinear",
       21,
       {attr("axis", 0), attr("block_size", 2)},
       {ramp({4, 1}, DType::I8), known({2, 1}, {0.5, 0.25})},
       {{{4, 1}, {0, -0.5, 0, 0}}}},
      {"DynamicQuantizeLinear",
       11,
       {},
       {ramp({2, 3})},
       {{{2, 3}, {121, 0, 188, 67, 255, 134}}, {{}, {0.009313726}}, {{}, {121}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(QuantisedOperators, Products) {
  const std::vector<NodeCase> cases = {
      {"MatMulInteger",
       10,
       {},
       {known({2, 3}, {1, 2, 3, 250, 5, 6}, DType::U8),
        known({3, 2}, {1, -2, 3, 4, -5, 6}, DType::I8)},
       {{{2, 2}, {-8, 24, 235, -444}}}},
      {"MatMulInteger",
       10,
       {},
       {known({2, 3}, {1, 2, 3, 250, 5, 6}, DType::U8),
        known({3, 2}, {1, -2, 3, 4, -5, 6}, DType::I8), known(Dims{}, {7}, DType::U8),
        known({2}, {1, -2}, DType::I8)},
       {{{2, 2}, {14, -62, 2, -20}}}},
      {"QLinearMatMul",
       10,
       {},
       {known({2, 3}, {1, 2, 3, 250, 5, 6}, DType::U8), known(Dims{}, {0.1}),
        known(Dims{}, {3}, DType::U8), known({3, 2}, {1, -2, 3, 4, -5, 6}, DType::I8),
        known({2}, {0.2, 0.3}), known({2}, {0, 1}, DType::I8), known(Dims{}, {0.5}),
        known(Dims{}, {10}, DType::U8)},
       {{{2, 2}, {10, 10, 20, 0}}}},
      {"ConvInteger",
       10,
       {attr("pads", ints{1, 0, 0, 1})},
       {known({1, 1, 3, 3}, {10, 20, 30, 40, 50, 60, 70, 80, 255}, DType::U8),
        known({1, 1, 2, 2}, {1, 2, 3, 4}, DType::U8), known(Dims{}, {5}, DType::U8)},
       {{{1, 1, 3, 3}, {75, 145, 75, 320, 420, 190, 620, 1380, 805}}}},
      {"QLinearConv",
       10,
       {attr("strides", ints{2, 1})},
       {known({1, 1, 3, 3}, {10, 20, 30, 40, 50, 60, 70, 80, 255}, DType::U8), known(Dims{}, {0.1}),
        known(Dims{}, {5}, DType::U8), known({1, 1, 2, 2}, {1, 2, 3, 4}, DType::U8),
        known({1}, {0.2}), known({1}, {1}, DType::U8), known(Dims{}, {0.7}),
        known(Dims{}, {3}, DType::U8), known({1}, {-40}, DType::I32)},
       {{{1, 1, 1, 2}, {8, 10}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(QuantisedOperators, TypesOfFewBits) {
  const auto quantised = [](int64_t type, std::vector<double> x) {
    const auto n = static_cast<int64_t>(x.size());
    return run_node("QuantizeLinear", 23, {attr("output_dtype", type)},
                    {known({n}, x), known(Dims{}, {1})})[0];
  };
  const auto numbers = [](const Value& v) {
    return v.tensor().cast(DType::F64).to_vector<double>();
  };
  const Value int4 = quantised(22, {-20, -1.5, 2.5, 9});
  EXPECT_EQ(int4.type(), ElementType::Int4);
  EXPECT_EQ(numbers(int4), (std::vector<double>{-8, -2, 2, 7}));
  EXPECT_EQ(numbers(quantised(21, {-3, 20})), (std::vector<double>{0, 15}));
  EXPECT_EQ(numbers(quantised(23, {0.25, 0.75, 2.5, 5, -100})),
            (std::vector<double>{0, 1, 2, 4, -6}));
  EXPECT_EQ(numbers(quantised(17, {1000, -1000, 17})), (std::vector<double>{448, -448, 16}));
}

TEST(QuantisedOperators, FloatsThatDoNotSaturate) {
  const Values y = run_node("QuantizeLinear", 23, {attr("output_dtype", 17), attr("saturate", 0)},
                            {known({2}, {1000, 448}), known(Dims{}, {1})});
  const std::vector<double> found = y[0].tensor().cast(DType::F64).to_vector<double>();
  EXPECT_TRUE(std::isnan(found[0]));
  EXPECT_EQ(found[1], 448);
}

// Sums of more products than f32 holds exactly.
TEST(QuantisedOperators, LongSumsAreExact) {
  const Tensor x = Tensor::full({1, 300, 2, 2}, 255, DType::U8);
  const Tensor w = Tensor::full({1, 300, 2, 2}, 255, DType::U8);
  const Values y = run_node("ConvInteger", 10, {}, {Value(x), Value(w)});
  EXPECT_EQ(y[0].tensor().item<int32_t>(), 255 * 255 * 1200);
}

TEST(QuantisedOperators, Errors) {
  EXPECT_NE(refusal("QuantizeLinear", 13, {}, {ramp({2, 3}), known({2}, {1, 1})})
                .find("2 scales along axis 1 of shape (2, 3): give one, or one for each place"),
            std::string::npos);
  EXPECT_NE(refusal("QuantizeLinear", 21, {attr("block_size", 2), attr("axis", 0)},
                    {ramp({5, 3}), known({2, 3}, {1, 1, 1, 1, 1, 1})})
                .find("scales (2, 3) in blocks of 2 along axis 0 do not cover shape (5, 3)"),
            std::string::npos);
  EXPECT_NE(
      refusal("QuantizeLinear", 21, {attr("output_dtype", 8)}, {ramp({2}), known(Dims{}, {1})})
          .find("output_dtype 8 is no type of numbers"),
      std::string::npos);
}

}  // namespace
}  // namespace weft::onnx
