#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"

namespace weft::onnx {
namespace {

// Wanted numbers: ONNX Runtime 1.31.

TEST(NormalisationOperators, AllOpsets) {
  const std::vector<NodeCase> cases = {
      {"BatchNormalization",
       7,
       {attr("epsilon", 0.001)},
       {ramp({2, 2, 2}), ramp({2}, DType::F32, 2), ramp({2}, DType::F32, 7),
        ramp({2}, DType::F32, 9), known({2}, {0.5, 2})},
       {{{2, 2, 2},
         {0.4776496, 0.08029914, -0.6366024, 0.05928192, 0.9191501, 0.5217996, 0.3685638,
          -0.7139229}}}},
      {"BatchNormalization",
       9,
       {},
       {ramp({2, 2}), ramp({2}, DType::F32, 2), ramp({2}, DType::F32, 7), ramp({2}, DType::F32, 9),
        known({2}, {0.5, 2})},
       {{{2, 2}, {0.4772564, 0.4460564, 0.6982251, 0.05935842}}}},
      {"BatchNormalization",
       15,
       {attr("training_mode", 1), attr("momentum", 0.8)},
       {ramp({2, 2, 2}), ramp({2}, DType::F32, 2), ramp({2}, DType::F32, 7),
        ramp({2}, DType::F32, 9), known({2}, {0.5, 2})},
       {{{2, 2, 2},
         {0.8564178, 0.5219377, -1.024407, 0.3031478, 1.228062, 0.8935822, 0.893172, -1.171913}},
        {{2}, {0.9125, -0.00625}},
        {{2}, {0.5414063, 1.709961}}}},
      {"InstanceNormalization",
       6,
       {},
       {ramp({2, 2, 3}), ramp({2}, DType::F32, 2), ramp({2}, DType::F32, 7)},
       {{{2, 2, 3},
         {0.932543, 0.5441279, 1.148329, 0.706652, -1.408053, -0.04859957, 0.6016709, 1.205872,
          0.817457, -1.321645, -0.25, 0.8216455}}}},
      {"LayerNormalization",
       17,
       {attr("axis", 1)},
       {ramp({2, 2, 2}), ramp({2, 2}, DType::F32, 2), ramp({2, 2}, DType::F32, 7)},
       {{{2, 2, 2},
         {0.9721274, 0.9398108, -0.1851892, 0.4721274, 1.163224, -0.08729315, -2.709196, 0.235537}},
        {{2, 1, 1}, {-0.25, 0.28125}},
        {{2, 1, 1}, {1.554039, 1.190084}}}},
      {"LayerNormalization",
       11,
       {},
       {ramp({2, 3}, DType::F64), ramp({3}, DType::F64, 2)},
       {{{2, 3}, {0.05754299, 1.158053, 0.9566521, -0.2733292, -1.158053, -0.2014004}},
        {{2, 1}, {-0.1666667, 0.2916667}},
        {{2, 1}, {1.381032, 1.381032}}}},
      {"GroupNormalization",
       18,
       {attr("num_groups", 2)},
       {ramp({1, 4, 2}), ramp({2}, DType::F32, 2), ramp({2}, DType::F32, 7)},
       {{{1, 4, 2},
         {0.9721274, 0.5350541, 1.214946, 0.7778726, -1.258783, -0.08729315, 1.084196,
          -0.7381206}}}},
      {"GroupNormalization",
       21,
       {attr("num_groups", 2)},
       {ramp({1, 4, 2}), ramp({4}, DType::F32, 2), ramp({4}, DType::F32, 7)},
       {{{1, 4, 2},
         {0.9721274, 0.5350541, -1.439811, 0.08994594, -0.3662175, -1.537707, 0.7561989,
          0.235537}}}},
      {"LpNormalization",
       1,
       {attr("p", 1), attr("axis", 0)},
       {ramp({2, 3})},
       {{{2, 3}, {0, -0.4736842, 0.8333333, -1, 0.5263158, 0.1666667}}}},
      {"LpNormalization", 1, {}, {known({2, 2}, {0, 0, 3, 4})}, {{{2, 2}, {0, 0, 0.6, 0.8}}}},
      {"MeanVarianceNormalization",
       9,
       {},
       {ramp({2, 1, 2, 2})},
       {{{2, 1, 2, 2},
         {-0.01967604, -1.436351, 0.7673658, -0.6493095, 1.554407, 0.1377323, -1.278943,
          0.9247741}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(NormalisationOperators, DropoutWithoutTraining) {
  const std::vector<NodeCase> cases = {
      {"Dropout",
       7,
       {attr("ratio", 0.3)},
       {ramp({2, 2})},
       {{{2, 2}, {0, -1.125, 0.625, -0.5}}, {{2, 2}, {0, 0, 0, 0}}}},
      {"Dropout",
       10,
       {},
       {ramp({2, 2})},
       {{{2, 2}, {0, -1.125, 0.625, -0.5}}, {{2, 2}, {0, 0, 0, 0}}}},
      {"Dropout",
       13,
       {},
       {ramp({2, 2})},
       {{{2, 2}, {0, -1.125, 0.625, -0.5}}, {{2, 2}, {1, 1, 1, 1}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(NormalisationOperators, DropoutInTraining) {
  const Values y = run_node("Dropout", 13, {},
                            {known({1000}, std::vector<double>(1000, 1)), known(Dims{}, {0.25}),
                             known(Dims{}, {1}, DType::Bool)},
                            2);
  const std::vector<float> x = y[0].tensor().to_vector<float>();
  const std::vector<float> kept = y[1].tensor().cast(DType::F32).to_vector<float>();
  double count = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_FLOAT_EQ(x[i], kept[i] * 4 / 3);
    count += kept[i];
  }
  EXPECT_NEAR(count, 750, 60);  // four standard deviations
}

// Statistics of every place, of opsets before 9: scale, bias, mean and variance of (channels * n).
TEST(NormalisationOperators, StatisticsOfPlaces) {
  expect_node({"BatchNormalization",
               7,
               {attr("spatial", 0), attr("epsilon", 0.0)},
               {known({1, 1, 2}, {3, 5}), known({1, 2}, {1, 2}), known({1, 2}, {0, 1}),
                known({1, 2}, {1, 1}), known({1, 2}, {4, 16})},
               {{{1, 1, 2}, {1, 3}}}});
}

TEST(NormalisationOperators, Errors) {
  EXPECT_NE(refusal("GroupNormalization", 18, {attr("num_groups", 3)},
                    {ramp({1, 4, 2}), ramp({3}), ramp({3})})
                .find("3 groups of the channels of shape (1, 4, 2)"),
            std::string::npos);
  EXPECT_NE(refusal("LRN", 1, {attr("size", 0)}, {ramp({1, 4, 2})}).find("size 0: give at least 1"),
            std::string::npos);
  EXPECT_NE(
      refusal("LpNormalization", 1, {attr("p", 3)}, {ramp({2, 2})}).find("p is 3: give 1 or 2"),
      std::string::npos);
}

}  // namespace
}  // namespace weft::onnx
