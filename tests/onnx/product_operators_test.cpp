#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"

namespace weft::onnx {
namespace {

// Wanted numbers: ONNX Runtime 1.31.

TEST(ProductOperators, Matrices) {
  const std::vector<NodeCase> cases = {
      {"Gemm",
       7,
       {attr("transA", 1), attr("transB", 1), attr("alpha", 0.5), attr("beta", 2.0)},
       {ramp({3, 2}), ramp({2, 3}, DType::F32, 3), ramp({2}, DType::F32, 5)},
       {{{2, 2}, {1.640625, -1.078125, 1.289062, -0.5859375}}}},
      {"Gemm",
       11,
       {},
       {ramp({2, 3}), ramp({3, 2}, DType::F32, 3)},
       {{{2, 2}, {-1.90625, 0.453125, 0.90625, 0.28125}}}},
      {"Gemm",
       9,
       {attr("beta", 0.0)},
       {ramp({2, 3}), ramp({3, 2}, DType::F32, 3), ramp({2, 1}, DType::F32, 4)},
       {{{2, 2}, {-1.90625, 0.453125, 0.90625, 0.28125}}}},
      {"MatMul",
       9,
       {},
       {ramp({2, 3}, DType::I64), ramp({3, 2}, DType::I64, 3)},
       {{{2, 2}, {-1, 0, 1, 0}}}},
      {"MatMul",
       13,
       {},
       {ramp({3}), ramp({2, 3, 2}, DType::F32, 3)},
       {{{2, 2}, {-1.90625, 0.453125, 0.390625, 0.953125}}}},
      {"Einsum",
       12,
       {attr("equation", "Ab, bC -> CA")},
       {ramp({2, 3}), ramp({3, 2}, DType::F32, 3)},
       {{{2, 2}, {-1.90625, 0.90625, 0.453125, 0.28125}}}},
      {"Einsum", 12, {attr("equation", "ii")}, {ramp({2, 2})}, {{{}, {-0.5}}}},
      {"Det", 11, {}, {ramp({2, 2, 2})}, {{{2}, {0.703125, 1.0625}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(ProductOperators, Transforms) {
  const std::vector<NodeCase> cases = {
      {"DFT",
       17,
       {attr("axis", 1), attr("onesided", 1)},
       {ramp({1, 4, 1})},
       {{{1, 3, 2}, {-1, 0, -0.625, 0.6250001, 2.25, -1.42062e-07}}}},
      {"DFT",
       17,
       {attr("inverse", 1)},
       {ramp({1, 3, 2})},
       {{{1, 3, 2}, {0.625, -0.5000001, -0.1320782, -0.4929219, -0.4929219, -0.1320782}}}},
      {"DFT",
       20,
       {},
       {ramp({1, 3, 1}), scalar(4), scalar(1)},
       {{{1, 4, 2}, {-0.5, 0, -0.6249999, 1.125, 1.75, -9.835063e-08, -0.625, -1.125}}}},
      {"DFT",
       20,
       {attr("inverse", 1)},
       {ramp({1, 3, 2}), {}, scalar(-2)},
       {{{1, 3, 2}, {0.625, -0.5000001, -0.1320782, -0.4929219, -0.4929219, -0.1320782}}}},
      {"STFT",
       17,
       {},
       {ramp({1, 8, 1}), scalar(2), known({4}, {0.5, 1, 1, 0.5})},
       {{{1, 3, 3, 2},
         {-0.75, 0, -0.625, 0.8750001, 2, -1.202063e-07, 1.125, 0, -0.9374999, 0.5625001, 2,
          -3.824746e-08, 0.125, 0, 1.625, 0.2499999, -0.875, 4.371139e-08}}}},
      {"STFT",
       17,
       {attr("onesided", 0)},
       {ramp({1, 6, 2}), scalar(3), {}, scalar(3)},
       {{{1, 2, 3, 2},
         {1.875, -1.500001, -1.478766, -0.3962334, -0.3962345, -1.478766, -1.125, 1.25, 1.011058,
          1.041265, -2.886057, -0.04126501}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(ProductOperators, Windows) {
  const std::vector<NodeCase> cases = {
      {"HannWindow", 17, {attr("periodic", 0)}, {scalar(4)}, {{{4}, {0, 0.75, 0.75, 0}}}},
      {"HammingWindow", 17, {}, {scalar(4)}, {{{4}, {0.0869565, 0.5434783, 1, 0.5434783}}}},
      {"BlackmanWindow",
       17,
       {attr("output_datatype", 11)},
       {scalar(5)},
       {{{5}, {1.490116e-08, 0.2007702, 0.8492299, 0.8492299, 0.2007702}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

// The filters of the operator's specification: triangles that peak at bins 1, 3, 5 of 9.
TEST(ProductOperators, MelFilters) {
  const Values y =
      run_node("MelWeightMatrix", 17, {},
               {scalar(3), scalar(16), scalar(8000), known(Dims{}, {0}), known(Dims{}, {4000})});
  const std::vector<double> w = y[0].tensor().cast(DType::F64).to_vector<double>();
  ASSERT_EQ(y[0].dims().text(), "(9, 3)");
  for (size_t band = 0; band < 3; ++band) {
    double most = 0;
    for (size_t row = 0; row < 9; ++row) most = std::max(most, w[row * 3 + band]);
    EXPECT_EQ(most, 1) << band;
  }
}

TEST(ProductOperators, Errors) {
  EXPECT_NE(refusal("Gemm", 13, {}, {ramp({2}), ramp({2, 3})})
                .find("A (2,) and B (2, 3) must be matrices"),
            std::string::npos);
  EXPECT_NE(refusal("DFT", 17, {}, {ramp({1, 4, 3})})
                .find("the last axis must have size 1 (real) or 2 (complex)"),
            std::string::npos);
  EXPECT_NE(refusal("STFT", 17, {}, {ramp({1, 4, 1}), scalar(0)})
                .find("frames of 4 samples, 0 apart, of a signal of 4"),
            std::string::npos);
  EXPECT_NE(refusal("HannWindow", 17, {}, {scalar(-1)}).find("a window of -1 samples"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::onnx
