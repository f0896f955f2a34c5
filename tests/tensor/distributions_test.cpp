// Moments and frequencies of samples, with a fixed seed: within five standard errors.
#include "weft/tensor/distributions.h"

#include <cmath>
#include <numbers>
#include <set>

#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

constexpr int64_t kCount = 20000;

class Distributions : public TensorTest {
 protected:
  Distributions() { Tensor::manual_seed(7); }
};

void expect_moments(const Tensor& x, double mean, double variance) {
  const std::vector<double> all = x.cast(DType::F64).to_vector<double>();
  const auto n = static_cast<double>(all.size());
  double sum = 0, squares = 0;
  for (const double v : all) sum += v, squares += v * v;
  const double got = sum / n;
  EXPECT_NEAR(got, mean, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(squares / n - got * got, variance, 0.12 * variance);
}

TEST_F(Distributions, MomentsAreRight) {
  constexpr double kEuler = std::numbers::egamma, kPi = std::numbers::pi;
  expect_moments(exponential({kCount}, 2), 0.5, 0.25);
  expect_moments(gumbel({kCount}, 1, 2), 1 + 2 * kEuler, 4 * kPi * kPi / 6);
  expect_moments(laplace({kCount}, 3, 2), 3, 8);
  expect_moments(log_normal({kCount}, 0, 0.25), std::exp(0.03125),
                 (std::exp(0.0625) - 1) * std::exp(0.0625));
  expect_moments(gamma(Tensor::full({kCount}, 2.5), 2), 1.25, 0.625);
  expect_moments(gamma(Tensor::full({kCount}, 0.5)), 0.5, 0.5);
  expect_moments(beta(Tensor::full({kCount}, 2.0), Tensor::full({kCount}, 3.0)), 0.4, 0.04);
  expect_moments(student_t(Tensor::full({kCount}, 12.0)), 0, 1.2);
  expect_moments(bernoulli(Tensor::full({kCount}, 0.3)), 0.3, 0.21);
  expect_moments(scaled_uniform({kCount}) * std::sqrt(static_cast<double>(kCount)), 0, 1.0 / 3);
  // Half of a Cauchy distribution lies within its scale.
  expect_moments(((cauchy({kCount}, 1, 2) - 1).abs() < 2).cast(DType::F32), 0.5, 0.25);
  expect_moments(random_bits({kCount}).cast(DType::F64) / 0x1p32, 0.5, 1.0 / 12);
  const Tensor shares = dirichlet(Tensor::of({1.0f, 2.0f, 3.0f}).expand({kCount, 3}));
  expect_moments(shares[{Slice(), 2}], 0.5, 0.25 / 7);
  expect_near(Tensor::from(shares[Slice(4)].sum(-1).to_vector<double>()), {1, 1, 1, 1});
}

TEST_F(Distributions, LikeOthers) {
  const Tensor x = Tensor::zeros({2, 3}, DType::F16);
  EXPECT_EQ(rand_like(x).dtype(), DType::F16);
  EXPECT_EQ(randn_like(x).dims().text(), "(2, 3)");
  EXPECT_EQ(randint_like(x.cast(DType::I8), 0, 3).dtype(), DType::I8);
  EXPECT_EQ(random_bits({4}).dtype(), DType::U32);
  EXPECT_EQ(Tensor::randint(-128, 128, {3}, DType::I8).dtype(), DType::I8);
  EXPECT_EQ(Tensor::randint(0, int64_t{1} << 32, {3}, DType::U32).dtype(), DType::U32);
}

TEST_F(Distributions, ClassesByWeight) {
  const Tensor weights = Tensor::of({{1.0f, 0.0f, 3.0f}, {0.0f, 5.0f, 0.0f}});
  const Tensor drawn = multinomial(weights, kCount / 4, true);
  EXPECT_EQ(drawn.dims().text(), "(2, 5000)");
  expect_moments((drawn[0] == 2).cast(DType::F32), 0.75, 0.1875);
  for (const int32_t c : drawn[0].to_vector<int32_t>()) EXPECT_NE(c, 1);
  for (const int32_t c : drawn[1].to_vector<int32_t>()) EXPECT_EQ(c, 1);
  for (int i = 0; i < 5; ++i) {
    const auto two = multinomial(weights[0], 2).to_vector<int32_t>();
    EXPECT_EQ(std::set<int32_t>(two.begin(), two.end()), (std::set<int32_t>{0, 2}));
  }
  // Small weights before none, and all that there are where that is as many as are drawn.
  const Tensor tiny = Tensor::of({0.0f, 1e-44f, 0.0f, 1.0f, 1e-30f, 0.0f});
  for (int i = 0; i < 20; ++i) {
    const auto three = multinomial(tiny, 3).to_vector<int32_t>();
    EXPECT_EQ(std::set<int32_t>(three.begin(), three.end()), (std::set<int32_t>{1, 3, 4}));
    const auto computed = multinomial(tiny * 2, 5).to_vector<int32_t>();
    EXPECT_EQ(std::set<int32_t>(computed.begin(), computed.begin() + 3),
              (std::set<int32_t>{1, 3, 4}));
  }
  const Tensor odd = Tensor::of({1.0f, -3.0f, NAN, 2.0f});
  for (const int32_t c : multinomial(odd, 200, true).to_vector<int32_t>())
    EXPECT_TRUE(c == 0 || c == 3) << c;
  EXPECT_EQ(multinomial(weights[0], 0).dims().text(), "(0,)");
  EXPECT_EQ(multinomial(weights[0]).dtype(), DType::I32);
}

TEST_F(Distributions, SoftClasses) {
  const Tensor logits = Tensor::of({0.0f, std::log(3.0f)}).expand({kCount, 2});
  expect_moments(gumbel_softmax(logits, 1, true)[{Slice(), 1}], 0.75, 0.1875);
  Tensor x = Tensor::of({0.5f, 1.0f, 2.0f});
  const Tensor hard = gumbel_softmax(x, 0.5, true);
  const std::vector<float> slope =
      (hard * Tensor::arange(3)).sum().gradient({x})[0].to_vector<float>();
  EXPECT_NEAR(slope[0] + slope[1] + slope[2], 0, 1e-5);
  EXPECT_NE(slope[0], 0);
}

}  // namespace
}  // namespace weft
