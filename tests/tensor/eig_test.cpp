#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>

#include "tests/io/scratch_dir.h"
#include "weft/base/context.h"
#include "weft/tensor/linalg.h"
#include "weft/weft.h"

namespace weft {
namespace {

using Number = std::complex<double>;

std::vector<Number> numbers(const Tensor& z) {
  const auto flat = z.to_vector<double>();
  std::vector<Number> out;
  for (size_t i = 0; i < flat.size(); i += 2) out.emplace_back(flat[i], flat[i + 1]);
  return out;
}

void expect_values(const Tensor& a, std::vector<Number> wanted, double tolerance = 1e-12) {
  for (const Number z : numbers(linalg::eig(a).first)) {
    const auto near =
        std::ranges::min_element(wanted, {}, [z](Number w) { return std::abs(w - z); });
    ASSERT_LE(std::abs(*near - z), tolerance) << z;
    wanted.erase(near);
  }
  EXPECT_TRUE(wanted.empty());
}

Tensor matrix(const std::vector<double>& elements, int64_t n) {
  return Tensor::from(elements, {n, n});
}

/// The largest element of a @ v - v diag(w), and how far columns are from length 1.
void expect_solution(const Tensor& a, double tolerance) {
  const auto [w, v] = linalg::eig(a);
  const Tensor re = v.index({kEllipsis, 0}), im = v.index({kEllipsis, 1});
  const Tensor wr = w.index({kEllipsis, 0}).unsqueeze(-2),
               wi = w.index({kEllipsis, 1}).unsqueeze(-2);
  const Tensor size = a.abs().max();
  EXPECT_LE(((a.matmul(re) - (re * wr - im * wi)).abs().max() / size).item<double>(), tolerance);
  EXPECT_LE(((a.matmul(im) - (re * wi + im * wr)).abs().max() / size).item<double>(), tolerance);
  EXPECT_LE(((re * re + im * im).sum(-2) - 1).abs().max().item<double>(), tolerance);
}

TEST(Eig, OfMatricesWhoseEigenvaluesAreKnown) {
  const double s = std::sqrt(3) / 2;
  expect_values(matrix({7}, 1), {7});
  expect_values(matrix({0, -1, 1, 0}, 2), {{0, 1}, {0, -1}});
  expect_values(matrix({1, 2, 3, 2}, 2), {4, -1});
  // A cycle of six is orthogonal: its eigenvalues are the roots of 1.
  expect_values(Tensor::eye(6, DType::F64).roll(1, 0),
                {1, -1, {0.5, s}, {0.5, -s}, {-0.5, s}, {-0.5, -s}});
  expect_values(Tensor::eye(4, DType::F64) * 3, {3, 3, 3, 3});
  expect_values(Tensor::zeros({3, 3}, DType::F64), {0, 0, 0});
  expect_values(matrix({0, 1, 0, 0}, 2), {0, 0});
  // The companion of (x - 1)(x - 2)(x - 3)(x^2 + 1).
  expect_values(
      matrix({6, -12, 12, -11, 6, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0}, 5),
      {1, 2, 3, {0, 1}, {0, -1}}, 1e-10);
}

TEST(Eig, SolvesWhatItSays) {
  Tensor::manual_seed(1);
  for (const int64_t n : {2, 3, 4, 7, 12}) {
    const Tensor a = Tensor::randn({3, n, n}, DType::F64).realize();
    expect_solution(a, 1e-11);
    expect_solution((a * 1e200).realize(), 1e-11);
    expect_solution((a + a.transpose(-2, -1)).realize(), 1e-11);
    expect_solution(Tensor::randn({n, n}).realize(), 2e-4);
  }
  expect_solution(Tensor::eye(5, DType::F64), 1e-13);
}

/// From 64 columns on the first ones are gone on with alone, once those after them are done.
TEST(Eig, OfMoreColumnsThanAWindow) {
  Tensor::manual_seed(7);
  for (const int64_t n : {64, 67, 99}) {
    expect_solution(Tensor::randn({2, n, n}, DType::F64).realize(), 1e-10);
    expect_solution(Tensor::randn({n, n}).realize(), 2e-3);
  }
  // Blocks of two in rows 0 and 1, 2 and 3, ..: one lies across the end of the second window.
  const int64_t n = 65;
  const Tensor i = Tensor::arange(n).unsqueeze(-1), j = Tensor::arange(n);
  const Tensor under = (i == j + 1) & (i % 2 == 1);
  const Tensor above = Tensor::randn({n, n}, DType::F64).triu(1) * 0.01;
  const Tensor a = (i == j).where(i * 0.5, under.where(-1, (j == i + 1).where(1, above)));
  expect_solution(a.realize(), 1e-11);
}

/// Matrices that need more steps than others are found among many.
TEST(Eig, StepsSufficeForManyMatrices) {
  Tensor::manual_seed(5);
  for (const DType dtype : {DType::F32, DType::F64}) {
    const double tolerance = dtype == DType::F64 ? 1e-11 : 1e-3;
    for (const int64_t n : {3, 6, 20}) {
      const Tensor a = Tensor::randn({200, n, n}, dtype).realize();
      expect_solution(a, tolerance);
      expect_solution(a.triu(-1).realize(), tolerance);
    }
    // Every usual step leaves it as it is.
    expect_solution(matrix({0, -0.5, 0, 1, 0, -0.5, 0, 1, 0}, 3).cast(dtype), tolerance);
  }
}

TEST(Eig, GradientsEqualFiniteDifferences) {
  Tensor::manual_seed(3);
  const Tensor a = Tensor::randn({4, 4}, DType::F64).realize(),
               step = Tensor::randn({4, 4}, DType::F64).realize();
  const Tensor weight = Tensor::randn({4, 1}, DType::F64).realize();
  // Of no order and no phase: |w|^3 summed, and the vectors' squares weighted alike.
  const auto loss = [&](const Tensor& x) {
    const auto [w, v] = linalg::eig(x);
    const Tensor squares = (v * v).sum(-1);
    return (w * w).sum(-1).pow(1.5).sum() + (squares * squares * weight).sum();
  };
  const double h = 1e-6;
  const Tensor slope = (loss((a + step * h).realize()) - loss((a - step * h).realize())) / (2 * h);
  const Tensor grad = (loss(a).gradient({a})[0] * step).sum();
  EXPECT_NEAR(grad.item<double>(), slope.item<double>(),
              1e-5 * (1 + std::fabs(slope.item<double>())));
}

TEST(Eig, OfNothingAndOfWhatIsNoMatrix) {
  EXPECT_EQ(linalg::eig(Tensor::zeros({0, 0})).first.shape(), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(linalg::eig(Tensor::zeros({0, 3, 3})).second.shape(),
            (std::vector<int64_t>{0, 3, 3, 2}));
  EXPECT_ERROR(linalg::eig(Tensor::zeros({2, 3})), "eig");
  EXPECT_ERROR(linalg::eig(Tensor::arange(4).reshape({2, 2})), "eig");
}

}  // namespace
}  // namespace weft
