// reductions.h against numbers worked out by NumPy.
#include "weft/tensor/reductions.h"

#include <cmath>

#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

class Reductions : public TensorTest {};

TEST_F(Reductions, MomentsTogether) {
  const Tensor x = Tensor::of({{1.0f, 2.0f}, {3.0f, 6.0f}});
  const auto [var, mean] = var_mean(x, 0);
  EXPECT_EQ(shown(var), "f32 (2) [2, 8]");
  EXPECT_EQ(shown(mean), "f32 (2) [2, 4]");
  const auto [std, middle] = std_mean(x, 0, true, 0);
  EXPECT_EQ(shown(std), "f32 (1, 2) [1, 2]");
  EXPECT_EQ(shown(middle), "f32 (1, 2) [2, 4]");
}

TEST_F(Reductions, SumsInAGivenDtype) {
  const Tensor x = Tensor::of({1.75f, 2.75f});
  EXPECT_EQ(shown(x.sum({}, false, DType::I32)), "i32 () [3]");
  EXPECT_EQ(shown(x.prod({}, true, DType::F64)), "f64 (1) [4.8125]");
  EXPECT_EQ(shown(Tensor::full({300}, 1, DType::U8).sum({}, false, DType::U8)), "u8 () [44]");
}

TEST_F(Reductions, Norms) {
  const Tensor x = Tensor::of({{3.0f, -4.0f}, {0.0f, 0.0f}});
  expect_near(vector_norm(x, 2, 1), {5, 0});
  expect_near(vector_norm(x, 1, 1, true), {7, 0});
  expect_near(vector_norm(x, 0, 1), {2, 0});
  expect_near(vector_norm(x, INFINITY, 1), {4, 0});
  expect_near(vector_norm(x, 3), {std::cbrt(91.0)});
  expect_near(normalize(x), {0.6, -0.8, 0, 0});
  expect_near(normalize(x, 1, 0, 1), {1, -1, 0, 0});
  // No infinite slope at 0.
  expect_near(vector_norm(x, 2, 1).sum().gradient({x})[0], {0.6, -0.8, 0, 0});
  EXPECT_EQ(shown(normalize(Tensor::zeros({2, 0}))), "f32 (2, 0) []");
}

TEST_F(Reductions, SoftminAndCloseness) {
  expect_near(softmin(Tensor::of({0.0f, std::log(3.0f)})), {0.75, 0.25});
  EXPECT_EQ(shown(allclose(Tensor::of({1.0f, 2.0f}), Tensor::of({1.0f, 2.00001f}))),
            "bool () [true]");
  EXPECT_EQ(shown(allclose(Tensor::of({1.0f, NAN}), Tensor::of({1.0f, NAN}))), "bool () [false]");
  EXPECT_EQ(shown(allclose(Tensor::zeros({0}), Tensor::zeros({0}))), "bool () [true]");
}

TEST_F(Reductions, RunningExtremesAndTheirPlaces) {
  const Tensor x = Tensor::of({2.0f, 1.0f, 2.0f, NAN, 5.0f});
  const auto most = cummax(x), least = cummin(x);
  EXPECT_EQ(shown(most.values), "f32 (5) [2, 2, 2, nan, nan]");
  EXPECT_EQ(shown(most.positions), "i32 (5) [0, 0, 2, 3, 3]");
  EXPECT_EQ(shown(least.values), "f32 (5) [2, 1, 1, nan, nan]");
  EXPECT_EQ(shown(least.positions), "i32 (5) [0, 1, 1, 3, 3]");
  const Tensor rows = Tensor::of({{1, 3, 2}, {4, 3, 5}});
  EXPECT_EQ(shown(cummax(rows, 1).positions), "i32 (2, 3) [0, 1, 1, 0, 0, 2]");
  EXPECT_EQ(shown(cummax(rows, 0).positions), "i32 (2, 3) [0, 0, 0, 1, 1, 1]");
}

TEST_F(Reductions, LogOfRunningSums) {
  expect_near(logcumsumexp(Tensor::of({0.0f, 0.0f, std::log(2.0f)})),
              {0, std::log(2.0), std::log(4.0)});
  // Neither small numbers in front of large ones nor large ones are lost.
  expect_near(logcumsumexp(Tensor::of({-1000.0f, 1000.0f, 1000.0f})),
              {-1000, 1000, 1000 + std::log(2.0)});
  expect_near(logcumsumexp(Tensor::of({-INFINITY, -3.0f, INFINITY, 1.0f})),
              {-INFINITY, -3, INFINITY, INFINITY});
  EXPECT_EQ(shown(logcumsumexp(Tensor::zeros({2, 0}), 1)), "f32 (2, 0) []");
}

TEST_F(Reductions, HalfSoftmaxRunsInSinglePrecision) {
  // 4096 equal terms: their sum is no f16 sum of ones, which stops at 2048.
  const Tensor x = Tensor::zeros({4096}, DType::F16);
  EXPECT_EQ(values(x.softmax()[0])[0], 1.0 / 4096);
  EXPECT_NEAR(values(x.logsumexp())[0], std::log(4096.0), 4e-3);
}

}  // namespace
}  // namespace weft
