// statistics.h against numbers worked out by NumPy and by PyTorch.
#include "weft/tensor/statistics.h"

#include <cmath>

#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

class Statistics : public TensorTest {};

Tensor holed() { return Tensor::of({{3.0f, NAN, 1.0f, 2.0f}, {4.0f, 8.0f, 6.0f, 5.0f}}); }

TEST_F(Statistics, WithoutNan) {
  EXPECT_EQ(shown(nansum(holed(), 1)), "f32 (2) [6, 23]");
  EXPECT_EQ(shown(nanmean(holed(), 1, true)), "f32 (2, 1) [2, 5.75]");
  EXPECT_EQ(shown(nanmean(Tensor::of({NAN})).isnan()), "bool () [true]");
  EXPECT_EQ(shown(nanmean(Tensor::of({1, 2}))), "f32 () [1.5]");
  EXPECT_EQ(shown(count_nonzero(Tensor::of({{0, 2}, {3, 4}}), 0)), "i32 (2) [1, 2]");
}

TEST_F(Statistics, TheMiddle) {
  const ValuesAndPositions all = median(holed()), numbers = nanmedian(holed());
  EXPECT_EQ(shown(all.values), "f32 (2) [nan, 5]");
  EXPECT_EQ(shown(all.positions), "i32 (2) [1, 3]");
  EXPECT_EQ(shown(numbers.values), "f32 (2) [2, 5]");
  EXPECT_EQ(shown(median(Tensor::of({7, 1, 3}), 0, true).values), "i32 (1) [3]");
  EXPECT_EQ(shown(median(Tensor(5.0)).values), "f32 () [5]");
  EXPECT_EQ(shown(nanmedian(Tensor::of({NAN, NAN})).values), "f32 () [nan]");
  const ValuesAndPositions second = kthvalue(holed(), 2);
  EXPECT_EQ(shown(second.values), "f32 (2) [2, 5]");
  EXPECT_EQ(shown(second.positions), "i32 (2) [3, 3]");
}

/// Beyond what is compared pair by pair, digits choose: of equal elements the one that a stable
/// sort has there, NaN last.
TEST_F(Statistics, TheMiddleOfLongRows) {
  for (const int64_t n : {129, 513, 1000, 4096, 20000}) {
    SCOPED_TRACE(n);
    const Tensor given = (Tensor::rand({3, n}, DType::F64) * 50).trunc() - 25;  // many equal
    const Tensor hole = Tensor::arange(n) % 7 == 2;
    const Tensor x = Tensor::stack({given[0], hole.where(NAN, given[1]), given[2] * 1e300});
    for (const Tensor& rows : {x, x.T().contiguous().T()}) {
      const auto [sorted, order] = rows.sort(1);
      const int64_t numbers = n - hole.sum().item<int64_t>();
      const ValuesAndPositions all = median(rows, 1), without = nanmedian(rows, 1);
      EXPECT_EQ(all.positions.to_vector<int32_t>()[0], order[0][(n - 1) / 2].item<int32_t>());
      EXPECT_EQ(all.positions.to_vector<int32_t>()[1], 2);  // the first NaN
      EXPECT_EQ(without.positions.to_vector<int32_t>()[1],
                order[1][(numbers - 1) / 2].item<int32_t>());
      EXPECT_EQ(all.values.to_vector<double>()[2], sorted[2][(n - 1) / 2].item<double>());
    }
  }
}

TEST_F(Statistics, TheMostFrequent) {
  const ValuesAndPositions found = mode(Tensor::of({{2, 1, 2, 1, 3}, {4, 4, 5, 5, 5}}));
  EXPECT_EQ(shown(found.values), "i32 (2) [1, 5]");
  EXPECT_EQ(shown(found.positions), "i32 (2) [3, 4]");
  EXPECT_EQ(shown(mode(Tensor::of({NAN, 1.0f, NAN})).values), "f32 () [nan]");
}

TEST_F(Statistics, Quantiles) {
  const Tensor x = Tensor::of({{4.0f, 1.0f}, {2.0f, 8.0f}, {3.0f, 0.0f}, {1.0f, 2.0f}});
  EXPECT_EQ(shown(quantile(x, Tensor(0.5), 0)), "f32 (2) [2.5, 1.5]");
  EXPECT_EQ(shown(quantile(x, Tensor(0.5), 0, true, Interpolation::Lower)), "f32 (1, 2) [2, 1]");
  EXPECT_EQ(shown(quantile(x, Tensor(0.5), 0, false, Interpolation::Higher)), "f32 (2) [3, 2]");
  EXPECT_EQ(shown(quantile(x, Tensor(0.4), 0, false, Interpolation::Nearest)), "f32 (2) [2, 1]");
  EXPECT_EQ(shown(quantile(x, Tensor(0.4), 0, false, Interpolation::Midpoint)),
            "f32 (2) [2.5, 1.5]");
  EXPECT_EQ(shown(quantile(x, Tensor::of({0.0f, 1.0f}), 0)), "f32 (2, 2) [1, 0, 4, 8]");
  EXPECT_EQ(shown(quantile(holed(), Tensor(1.0))), "f32 (2) [nan, 8]");
  EXPECT_EQ(shown(nanquantile(holed(), Tensor(0.5))), "f32 (2) [2, 5.5]");
  // Shares outside of [0, 1] are not known before they run.
  EXPECT_EQ(shown(quantile(x, Tensor::of({-0.1f, 1.5f}), 0)), "f32 (2, 2) [nan, nan, nan, nan]");
}

TEST_F(Statistics, Counts) {
  const Tensor x = Tensor::of({1, 3, 1, 0});
  EXPECT_EQ(shown(bincount(x)), "i32 (4) [1, 2, 0, 1]");
  EXPECT_EQ(shown(bincount(x, {}, 6)), "i32 (6) [1, 2, 0, 1, 0, 0]");
  EXPECT_EQ(shown(bincount(x, Tensor::of({0.5f, 1.0f, 2.0f, 4.0f}))), "f32 (4) [4, 2.5, 0, 1]");
  // With a size nothing is read, and what is outside does not count.
  EXPECT_EQ(shown(bincount(Tensor::of({1, -1, 7}), {}, 0, 3)), "i32 (3) [0, 1, 0]");
  EXPECT_EQ(shown(bincount(Tensor::zeros({0}, DType::I32), {}, 2)), "i32 (2) [0, 0]");
  const Tensor y = Tensor::of({0.0f, 1.0f, 2.0f, 4.0f, NAN});
  EXPECT_EQ(shown(histc(y, 4, 0, 4)), "f32 (4) [1, 1, 1, 1]");
  EXPECT_EQ(shown(histc(y, 2, 1, 3)), "f32 (2) [1, 1]");
  EXPECT_EQ(shown(histc(Tensor::of({2.0f, 2.0f}), 4)), "f32 (4) [0, 0, 2, 0]");
}

TEST_F(Statistics, Covariances) {
  const Tensor x = Tensor::of({{1.0f, 2.0f, 6.0f}, {3.0f, 1.0f, 2.0f}});
  expect_near(cov(x), {7, -0.5, -0.5, 1});
  expect_near(cov(x[0]), {7});
  expect_near(cov(x, 0), {14.0 / 3, -1.0 / 3, -1.0 / 3, 2.0 / 3});
  expect_near(corrcoef(x), {1, -0.5 / std::sqrt(7), -0.5 / std::sqrt(7), 1});
}

TEST_F(Statistics, Differences) {
  const Tensor x = Tensor::of({{1, 4, 9}, {16, 25, 36}});
  EXPECT_EQ(shown(diff(x)), "i32 (2, 2) [3, 5, 9, 11]");
  EXPECT_EQ(shown(diff(x, 2)), "i32 (2, 1) [2, 2]");
  EXPECT_EQ(shown(diff(x, 1, 0)), "i32 (1, 3) [15, 21, 27]");
  EXPECT_EQ(shown(diff(x, 9)), "i32 (2, 0) []");
  EXPECT_EQ(shown(diff(Tensor::of({true, true, false}))), "bool (2) [false, true]");
  EXPECT_EQ(shown(trapezoid(x, 0.5)), "f32 (2) [4.5, 25.5]");
  EXPECT_EQ(shown(trapezoid(x[{Slice(), Slice(0, 1)}])), "f32 (2) [0, 0]");
}

}  // namespace
}  // namespace weft
