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
  EXPECT_EQ(linalg::pinv(Tensor::zeros({2, 0, 3})).dims().text(), "(2, 3, 0)");
}

/// Of which a square is 0, and one part is infinite.
TEST_F(LinearAlgebra, SubnormalNumbers) {
  const double unit = std::ldexp(1.0, -1040);
  const Tensor a = tall() * unit, s = a.T().matmul(tall());
  const SVD f = linalg::svd(a);
  expect_near(f.s / unit, {9.5255180916, 0.5143005807}, 1e-6);
  const auto [q, r] = linalg::qr(a);
  expect_equal(q.matmul(r / unit), tall(), 1e-6);
  const auto [w, v] = linalg::eigh(s);
  expect_equal(v.T().matmul(v), Tensor::eye(2, DType::F64), 1e-11);
  expect_equal((v * (w / unit)).matmul(v.T()), s / unit, 1e-6);
}

/// Beyond the sizes that are not cut: matrices that have equal eigenvalues, none, in both halves,
/// of few ranks, and no two alike.
std::vector<Tensor> large_matrices(DType dtype) {
  const int64_t n = 70;
  const Tensor i = Tensor::arange(n).unsqueeze(-1), j = i.T(), beside = (i - j).abs() == 1;
  const Tensor random = sample({n, n}), few = sample({n, 3}, 1), q = linalg::qr(random).first;
  const Tensor halves = (Tensor::arange(n) % 2 * 2 - 1).cast(DType::F64);
  const Tensor sizes = (Tensor::arange(n).cast(DType::F64) * -0.7).exp();
  std::vector<Tensor> out{random + random.T(),
                          (i == j).where(2, beside.where(-1, 0)).cast(DType::F64),
                          few.matmul(few.T()),
                          (q * halves).matmul(q.T()),
                          (q * sizes).matmul(q.T()),
                          Tensor::eye(n, DType::F64),
                          Tensor::ones({n, n}, DType::F64),
                          Tensor::zeros({n, n}, DType::F64)};
  for (Tensor& x : out) x = x.cast(dtype).realize();
  return out;
}

double largest(const Tensor& x) { return x.cast(DType::F64).abs().max().item<double>(); }
bool descends(const Tensor& x) {
  return (x.index({Slice(1, x.dim(0))}) <= x.index({Slice(0, x.size(0) - 1)})).all().item<bool>();
}

/// Not by the oracle, which takes minutes for so many steps: by what defines the results.
TEST(LinearAlgebraOfLargeMatrices, IsWhatDefinesIt) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    const double eps = dtype == DType::F32 ? 1.2e-7 : 2.3e-16;
    for (const Tensor& a : large_matrices(dtype)) {
      const double size = largest(a) * 70 + 1;
      const Tensor eye = Tensor::eye(70, dtype);
      auto [l, v] = linalg::eigh(a);
      SVD f = linalg::svd(a);
      realize({l, v, f.u, f.s, f.vt});
      EXPECT_LE(largest(a.matmul(v) - v * l), 20 * eps * size);
      EXPECT_LE(largest(v.T().matmul(v) - eye), 100 * eps);
      EXPECT_TRUE(descends(-l));
      EXPECT_LE(largest((f.u * f.s).matmul(f.vt) - a), 20 * eps * size);
      EXPECT_LE(largest(f.u.T().matmul(f.u) - eye), 100 * eps);
      EXPECT_LE(largest(f.vt.matmul(f.vt.T()) - eye), 100 * eps);
      EXPECT_TRUE(descends(f.s));
    }
  }
}

/// Many columns are taken in stages, the last of which may be shorter.
TEST(LinearAlgebraOfLargeMatrices, StagesOfColumns) {
  for (const int64_t n : {65, 66, 67, 71, 130}) {
    SCOPED_TRACE(n);
    const Tensor a = sample({2, n, n}).realize(), both = (a + a.T()).realize();
    auto [l, v] = linalg::eigh(both);
    SVD f = linalg::svd(a);
    realize({l, v, f.u, f.s, f.vt});
    const Tensor eye = Tensor::eye(n, DType::F64);
    EXPECT_LE(largest(both.matmul(v) - v * l.unsqueeze(-2)), 1e-12 * static_cast<double>(n));
    EXPECT_LE(largest((f.u * f.s.unsqueeze(-2)).matmul(f.vt) - a), 1e-12 * static_cast<double>(n));
    for (const Tensor& q : {v, f.u, f.vt}) EXPECT_LE(largest(q.T().matmul(q) - eye), 1e-12);
  }
}

/// Rows of 1024 elements lie apart in copies, also of columns in the order of their values.
TEST(LinearAlgebraOfLargeMatrices, SingularValuesWhoseVectorsAreCopied) {
  const Tensor a = sample({512, 512}).cast(DType::F32).realize();
  SVD f = linalg::svd(a);
  realize({f.u, f.s, f.vt});
  EXPECT_LE(largest((f.u * f.s).matmul(f.vt) - a), 1e-6 * 512);
  EXPECT_LE(largest(f.u.T().matmul(f.u) - Tensor::eye(512)), 1e-4);
}

/// Around one block of rows, one of columns, and halves: what is not to be read is NaN.
TEST(LinearAlgebraOfLargeMatrices, Triangles) {
  for (const int64_t n : {1, 7, 8, 9, 63, 65, 130, 260, 300, 520}) {
    const Tensor x = sample({n, n}), nan = Tensor::full({n, n}, std::nan("")).cast(DType::F64);
    const Tensor i = Tensor::arange(n).unsqueeze(1), lower = i >= i.T();
    const Tensor a = (x.matmul(x.T()) + Tensor::eye(n, DType::F64) * n).contiguous();
    Tensor l = linalg::cholesky(lower.where(a, nan));
    const Tensor b = sample({n, 3}, 2), u = l.T();
    Tensor down = linalg::triangular_solve(lower.where(l, nan), b, false);
    Tensor up = linalg::triangular_solve((i <= i.T()).where(u, nan), b, true);
    realize({l, down, up});
    const double size = static_cast<double>(n);
    EXPECT_LE(largest(l.matmul(u) - a), 1e-14 * size * size) << n;
    EXPECT_LE(largest(l.matmul(down) - b), 1e-14 * size) << n;
    EXPECT_LE(largest(u.matmul(up) - b), 1e-14 * size) << n;
  }
}

TEST(LinearAlgebraOfLargeMatrices, OfEquations) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    const double eps = dtype == DType::F32 ? 1.2e-7 : 2.3e-16;
    const Tensor eye = Tensor::eye(70, dtype), order = (Tensor::arange(70) * 29 + 11) % 70;
    const Tensor one = sample({70, 70}).cast(dtype) + eye * 3, other = one.flip({0});
    const Tensor all = Tensor::stack({one, other, eye.index({order})}).realize();
    const Tensor b = sample({3, 70, 5}, 2).cast(dtype).realize();
    Tensor inverse = linalg::inv(all), x = linalg::solve(all, b);
    linalg::LU f = linalg::lu(all);
    realize({inverse, x, f.packed, f.rows, f.sign});
    const double size = largest(all) * largest(inverse) * 70;
    EXPECT_LE(largest(all.matmul(inverse) - eye), 20 * eps * size);
    EXPECT_LE(largest(all.matmul(x) - b), 20 * eps * size * 70);
    const Tensor product = (f.packed.tril(-1) + eye).matmul(f.packed.triu());
    const Tensor rows = f.rows.unsqueeze(-1).expand({3, 70, 70});
    EXPECT_LE(largest(product - all.gather(1, rows)), 20 * eps * largest(all) * 70);
    EXPECT_LE(largest(f.packed.tril(-1)), 1);
    const Tensor singular = (Tensor::arange(70).unsqueeze(-1) < 69).where(one, 0);
    EXPECT_EQ(linalg::det(singular).item<double>(), 0);
    EXPECT_FALSE(std::isfinite(linalg::inv(singular).sum().item<double>()));
  }
}

/// Around few columns, panels and halves, and beyond them; without pivots in one column.
TEST(LinearAlgebraOfLargeMatrices, Elimination) {
  for (const int64_t n : {1, 8, 9, 31, 32, 33, 40, 64, 65, 100, 130, 256, 257, 300, 520}) {
    const Tensor j = Tensor::arange(n), a = (j == n / 2).where(0, sample({n, n})).realize();
    linalg::LU f = linalg::lu(a);
    Tensor inverse = linalg::inv(a + Tensor::eye(n, DType::F64) * n);
    realize({f.packed, f.rows, f.sign, inverse});
    const double size = static_cast<double>(n);
    const Tensor eye = Tensor::eye(n, DType::F64), lower = f.packed.tril(-1);
    EXPECT_LE(largest((lower + eye).matmul(f.packed.triu()) - a.index({f.rows})), 1e-14 * size);
    EXPECT_LE(largest(lower), 1) << n;
    EXPECT_EQ(values(f.rows.sort().first), values(j)) << n;
    EXPECT_LE(largest(inverse.matmul(a + eye * n) - eye), 1e-14 * size) << n;
  }
}

/// A NaN is larger than all other pivots: no row with one is left to the end, unread.
TEST(LinearAlgebraOfLargeMatrices, KeepNaN) {
  for (const int64_t n : {2, 5, 40, 100}) {
    const Tensor i = Tensor::arange(n).unsqueeze(1), a = sample({n, n}), b = sample({n, 2}, 2);
    for (const int64_t row : {int64_t{0}, n / 2, n - 1})
      for (const int64_t column : {int64_t{0}, n / 2, n - 1}) {
        const Tensor x = ((i == row) & (i.T() == column)).where(std::nan(""), a);
        Tensor det = linalg::det(x), inverse = linalg::inv(x), y = linalg::solve(x, b);
        realize({det, inverse, y});
        EXPECT_TRUE(std::isnan(det.item<double>())) << n << ": " << row << ", " << column;
        EXPECT_TRUE(inverse.isnan().all().item<bool>()) << n << ": " << row << ", " << column;
        EXPECT_TRUE(y.isnan().all().item<bool>()) << n << ": " << row << ", " << column;
      }
  }
}

/// In the lower triangle it is in all of the result, above it is not read.
TEST(LinearAlgebraOfLargeMatrices, EigenvectorsKeepNaN) {
  for (const int64_t n : {1, 2, 3, 5, 40}) {
    const Tensor i = Tensor::arange(n).unsqueeze(1), x = sample({n, n}), a = x + x.T();
    const auto with_nan = [&](int64_t row, int64_t column) {
      return linalg::eigh(((i == row) & (i.T() == column)).where(std::nan(""), a));
    };
    for (const int64_t row : {int64_t{0}, n / 2, n - 1}) {
      auto [l, v] = with_nan(row, 0);
      realize({l, v});
      EXPECT_TRUE(l.isnan().all().item<bool>()) << n << ": " << row;
      EXPECT_TRUE(v.isnan().all().item<bool>()) << n << ": " << row;
    }
    if (n == 1) continue;
    auto [l, v] = with_nan(0, n - 1);
    realize({l, v});
    EXPECT_LE(largest((v * l.unsqueeze(-2)).matmul(v.T()) - a), 1e-11) << n;
  }
}

TEST(LinearAlgebraOfLargeMatrices, Batches) {
  const std::vector<Tensor> all = large_matrices(DType::F64);
  const Tensor batch = Tensor::stack({all[0], all[1], all[2]});
  auto [l, v] = linalg::eigh(batch);
  Tensor s = linalg::svd(batch).s;
  realize({l, v, s});
  EXPECT_LE(largest((v * l.unsqueeze(-2)).matmul(v.transpose(-1, -2)) - batch), 1e-11);
  for (int64_t k = 0; k < 3; ++k) {
    const Tensor& one = all[static_cast<size_t>(k)];
    EXPECT_LE(largest(linalg::eigh(one).first - l[k]), 1e-11);
    EXPECT_LE(largest(linalg::svd(one).s - s[k]), 1e-11);
  }
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
