// Linear algebra: NumPy's (LAPACK's) values, and identities that hold for every matrix.
#include "weft/tensor/linalg.h"

#include <cmath>

#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

using linalg::SVD;

class LinearAlgebra : public TensorTest {};

Tensor doubles(const std::vector<double>& all, const Dims& shape) {
  return Tensor::from(all, shape);
}
Tensor symmetric() { return doubles({4, 2, 1, 2, 5, 3, 1, 3, 6}, {3, 3}); }
Tensor general() { return doubles({0, 2, 1, 1, -1, 3, 2, 4, 1.5}, {3, 3}); }
Tensor tall() { return doubles({1, 2, 3, 4, 5, 6}, {3, 2}); }

void expect_equal(const Tensor& x, const Tensor& y, double tolerance = 1e-12) {
  EXPECT_EQ(x.dims().text(), y.dims().text());
  expect_near(x, values(y), tolerance);
}

TEST_F(LinearAlgebra, Solving) {
  expect_near(linalg::solve(general(), tall()),
              {1.6333333333, 1.2666666667, 0.2333333333, 0.4666666667, 0.5333333333, 1.0666666667},
              1e-9);
  const Tensor b = doubles({1, 2, 3}, {3}), x = linalg::solve(general(), b);
  expect_equal(general().matmul(x), b);
  expect_near(linalg::inv(general()),
              {-0.9, 0.0666666667, 0.4666666667, 0.3, -0.1333333333, 0.0666666667, 0.4,
               0.2666666667, -0.1333333333},
              1e-9);
  expect_near(linalg::det(general()), {15});
  const auto [sign, log] = linalg::slogdet(-general());
  expect_near(sign, {-1});
  expect_near(log, {2.70805020110221}, 1e-12);
  expect_near(linalg::det(Tensor::ones({2, 2})), {0});
  expect_near(linalg::det(Tensor::zeros({0, 0})), {1});
  EXPECT_EQ(linalg::inv(general().cast(DType::F16)).dtype(), DType::F16);
}

TEST_F(LinearAlgebra, Batches) {
  const Tensor a = Tensor::stack({general(), symmetric()}), b = tall();
  const Tensor x = linalg::solve(a, b);
  EXPECT_EQ(x.dims().text(), "(2, 3, 2)");
  expect_equal(a.matmul(x), b.expand({2, 3, 2}));
  expect_near(linalg::det(a), {15, values(linalg::det(symmetric()))[0]});
  const auto [l, v] = linalg::eigh(a + a.transpose(-1, -2));
  expect_equal((v * l.unsqueeze(-2)).matmul(v.transpose(-1, -2)), a + a.transpose(-1, -2), 1e-11);
}

TEST_F(LinearAlgebra, EliminationIsAPermutationOfTheProduct) {
  const Tensor a = sample({5, 5}), eye = Tensor::eye(5, DType::F64);
  const linalg::LU f = linalg::lu(a);
  const Tensor product = (f.packed.tril(-1) + eye).matmul(f.packed.triu());
  expect_equal(product, a.index({f.rows}));
  for (const double l : values(f.packed.tril(-1))) EXPECT_LE(std::fabs(l), 1);
}

TEST_F(LinearAlgebra, Triangles) {
  const Tensor a = sample({4, 4}), b = sample({4, 2}, 2), eye = Tensor::eye(4, DType::F64);
  expect_equal(a.triu().matmul(linalg::triangular_solve(a, b, true)), b, 1e-11);
  expect_equal((a.tril(-1) + eye).matmul(linalg::triangular_solve(a, b, false, true)), b, 1e-11);
}

TEST_F(LinearAlgebra, Cholesky) {
  expect_near(linalg::cholesky(symmetric()), {2, 0, 0, 1, 2, 0, 0.5, 1.25, 2.046338193}, 1e-9);
  EXPECT_TRUE(std::isnan(values(linalg::cholesky(-symmetric()))[0]));
}

TEST_F(LinearAlgebra, Reflections) {
  const auto [q, r] = linalg::qr(tall());
  expect_near(
      q, {-0.1690308509, 0.8970852271, -0.5070925528, 0.2760262237, -0.8451542547, -0.3450327797},
      1e-9);
  expect_near(r, {-5.9160797831, -7.4373574416, 0, 0.8280786712}, 1e-9);
  for (const Tensor& a : {tall(), tall().T(), general(), Tensor::zeros({3, 2}, DType::F64)}) {
    const auto [full, upper] = linalg::qr(a, true);
    expect_equal(full.matmul(upper), a);
    expect_equal(full.T().matmul(full), Tensor::eye(a.dim(0), DType::F64));
  }
  expect_near(linalg::lstsq(tall(), doubles({1, 0, 2}, {3})), {0, 0.25});
  expect_near(linalg::lstsq(tall().T(), doubles({1, 2}, {2})),
              {0.8333333333, 0.3333333333, -0.1666666667}, 1e-9);
}

TEST_F(LinearAlgebra, Eigenvalues) {
  const auto [l, v] = linalg::eigh(symmetric());
  expect_near(l, {1.921346942, 3.7301591237, 9.3484939344}, 1e-9);
  expect_equal(symmetric().matmul(v), v * l, 1e-11);
  expect_equal(v.T().matmul(v), Tensor::eye(3, DType::F64));
  const Tensor big = sample({12, 12}), both = big + big.T();
  const auto [values12, vectors12] = linalg::eigh(both);
  expect_equal((vectors12 * values12).matmul(vectors12.T()), both, 1e-11);
  expect_near(linalg::eigh(Tensor::eye(2)).first, {1, 1});
  expect_near(linalg::eigh(Tensor::zeros({1, 1})).first, {0});
}

TEST_F(LinearAlgebra, SingularValues) {
  expect_near(linalg::svd(tall()).s, {9.5255180916, 0.5143005807}, 1e-9);
  const Tensor rank_one = doubles({1, 2, 2, 4, 3, 6}, {3, 2});
  for (const Tensor& a : {tall(), tall().T(), rank_one, sample({7, 5})}) {
    for (const bool full : {false, true}) {
      const SVD f = linalg::svd(a, full);
      const int64_t k = f.s.size(0);
      const Tensor u = f.u.index({Slice(), Slice(0, k)}), vt = f.vt.index({Slice(0, k)});
      expect_equal((u * f.s).matmul(vt), a, 1e-11);
      expect_equal(f.u.T().matmul(f.u), Tensor::eye(f.u.dim(1), DType::F64), 1e-11);
      expect_equal(f.vt.matmul(f.vt.T()), Tensor::eye(f.vt.dim(0), DType::F64), 1e-11);
    }
  }
  expect_equal(rank_one.matmul(linalg::pinv(rank_one)).matmul(rank_one), rank_one, 1e-11);
}

TEST_F(LinearAlgebra, Products) {
  expect_equal(linalg::matrix_power(general(), 3), general().matmul(general()).matmul(general()));
  expect_equal(linalg::matrix_power(general(), -1), linalg::inv(general()));
  expect_equal(linalg::matrix_power(general(), 0), Tensor::eye(3, DType::F64));
  expect_near(linalg::trace(general()), {0.5});
  // Newton-Schulz with Muon's coefficients brings singular values near 1.
  for (const double s : values(linalg::svd(linalg::newton_schulz(sample({4, 3}), 8)).s)) {
    EXPECT_GT(s, 0.5);
    EXPECT_LT(s, 1.5);
  }
  expect_equal(linalg::newton_schulz(sample({3, 2}), 20, {1.5, -0.5}),
               linalg::svd(sample({3, 2})).u.matmul(linalg::svd(sample({3, 2})).vt), 1e-9);
}

}  // namespace
}  // namespace weft
