#include <algorithm>
#include <cmath>

#include "tests/tensor/tensor_test.h"
#include "weft/graph/graph.h"

namespace weft {
namespace {

class Reduce : public TensorTest {};

Tensor counting(const Dims& shape) { return Tensor::arange(shape.product()).reshape(shape); }

TEST_F(Reduce, SumsAndTheirDtypes) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(shown(x.sum()), "i32 () [15]");
  EXPECT_EQ(shown(x.sum(0)), "i32 (3) [3, 5, 7]");
  EXPECT_EQ(shown(x.sum(-1, true)), "i32 (2, 1) [3, 12]");
  EXPECT_EQ(shown(x.cast(DType::I8).sum()), "i32 () [15]");
  EXPECT_EQ(shown(x.cast(DType::U16).sum()), "u32 () [15]");
  EXPECT_EQ(shown((x > 2).sum()), "i32 () [3]");
  EXPECT_EQ(x.cast(DType::I64).sum().dtype(), DType::I64);
  EXPECT_EQ(shown(x.prod(1)), "i32 (2) [0, 60]");
  EXPECT_EQ(shown(Tensor(3).sum()), "i32 () [3]");
}

TEST_F(Reduce, HalfSumsRunInSinglePrecision) {
  // In f16 itself 2048 + 1 stays 2048.
  const Tensor x = Tensor::cat({Tensor::full({1}, 2048.0), Tensor::ones({64})}).cast(DType::F16);
  EXPECT_EQ(shown(x.sum()), "f16 () [2112]");
  EXPECT_EQ(shown(Tensor::ones({300}, DType::BF16).sum()), "bf16 () [300]");
}

/// One sum of all would be a single accumulator of 27 million numbers, which lost 6 in 100.
TEST_F(Reduce, SumsOfProductsKeepTheirDigits) {
  for (const bool deterministic : {false, true}) {
    Options options;
    options.deterministic = deterministic;
    Context context(options);
    const ContextScope scope(context);
    const Tensor x = Tensor::full({300, 300}, 0.1).contiguous().realize();
    const Tensor y = x.matmul(x);
    EXPECT_NEAR(y.sum().item<float>(), 270000, 10);
    EXPECT_NEAR(y.mean().item<float>(), 3, 1e-4);
  }
}

/// Long rows are searched in parts: the first of equal values counts wherever they lie, NaN before
/// all, in what is left over too.
void check_long_rows(int64_t n) {
  const std::vector<std::vector<int64_t>> spikes{
      {0},          {n - 1},       {n - 2, 5}, {70001, 70000, 131071}, {64, 128, 4096},
      {4095, 4097}, {n - 3, n - 9}};
  for (std::vector<int64_t> at : spikes)
    for (const float value : {3.0f, NAN}) {
      for (int64_t& i : at) i %= n;
      std::vector<float> data(static_cast<size_t>(n));
      for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i * 7 % 101) / 101;
      for (const int64_t i : at) data[static_cast<size_t>(i)] = value;
      const int64_t first = *std::min_element(at.begin(), at.end());
      const Tensor x = Tensor::from(data, {n});
      EXPECT_EQ(x.argmax().item<int64_t>(), first);
      EXPECT_EQ((-x).argmin(0).item<int64_t>(), first);
      const Tensor rows = Tensor::stack({x, x.flip(0)}).cast(DType::F64);
      EXPECT_EQ(rows.argmax(1, true).reshape({2}).to_vector<int32_t>()[0], first);
    }
  const Tensor same = Tensor::full({n}, 2, DType::I32);
  EXPECT_EQ(same.argmax().item<int64_t>(), 0);
}

TEST_F(Reduce, PlacesOfExtremesOfLongRows) {
  for (const int64_t n : {1 << 13, 9001, 65536, (1 << 17) + 777}) {
    SCOPED_TRACE(n);
    check_long_rows(n);
  }
}

/// Rows of all lengths along any axis: the first of equal values, the first NaN before all.
TEST_F(Reduce, PlacesOfExtremesInRows) {
  for (const int64_t n : {1, 5, 31, 32, 33, 500, 4096}) {
    SCOPED_TRACE(n);
    constexpr int64_t kRows = 6;
    std::vector<float> data(static_cast<size_t>(kRows * n));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i * 31 % 17);
    data[static_cast<size_t>(n + n / 2)] = NAN;
    data[static_cast<size_t>(3 * n - 1)] = -INFINITY;
    std::vector<int32_t> largest, least;
    for (int64_t r = 0; r < kRows; ++r) {
      const auto row = data.begin() + r * n, end = row + n;
      const auto nan = std::find_if(row, end, [](float v) { return std::isnan(v); });
      largest.push_back(
          static_cast<int32_t>((nan == end ? std::max_element(row, end) : nan) - row));
      least.push_back(static_cast<int32_t>((nan == end ? std::min_element(row, end) : nan) - row));
    }
    const Tensor x = Tensor::from(data, {kRows, n}), columns = x.T().contiguous();
    for (const DType dtype : {DType::F32, DType::F64, DType::BF16}) {
      EXPECT_EQ(x.cast(dtype).argmax(1).to_vector<int32_t>(), largest);
      EXPECT_EQ(x.cast(dtype).argmin(-1, true).flatten().to_vector<int32_t>(), least);
      EXPECT_EQ(columns.cast(dtype).argmax(0).to_vector<int32_t>(), largest);
      EXPECT_EQ(columns.cast(dtype).T().argmin(1).to_vector<int32_t>(), least);
    }
    const Tensor seven = (x == 7).contiguous();  // bools; without one, the first
    for (const Tensor& bits : {seven, seven.T().contiguous().T()})
      EXPECT_EQ(bits.argmax(1).to_vector<int32_t>(),
                seven.cast(DType::I8).argmax(1).to_vector<int32_t>());
  }
}

TEST_F(Reduce, PlacesInRowsAreFolds) {
  // A loop that carries a position runs element by element along a row; across columns, in vectors.
  const auto has_loop = [](const Tensor& x) {
    return std::ranges::any_of(Toposort(x.node()), [](NodeRef n) { return n->op == Op::Loop; });
  };
  const Tensor x = Tensor::rand({64, 4096});
  EXPECT_FALSE(has_loop(x.argmax(1)));
  EXPECT_FALSE(has_loop(x.argmin()));
  EXPECT_TRUE(has_loop(x.argmax(0)));
}

TEST_F(Reduce, ExtremesAndTheirPlaces) {
  const Tensor x = Tensor::of({{3, 1, 3}, {-5, 7, 7}});
  EXPECT_EQ(shown(x.max(1)), "i32 (2) [3, 7]");
  EXPECT_EQ(shown(x.min(0)), "i32 (3) [-5, 1, 3]");
  EXPECT_EQ(shown(x.argmax(1)), "i32 (2) [0, 1]");
  EXPECT_EQ(shown(x.argmin(0, true)), "i32 (1, 3) [1, 0, 0]");
  EXPECT_EQ(shown(x.argmax()), "i32 () [4]");
  const Tensor y = Tensor::of({1.0f, NAN, 5.0f, NAN});
  EXPECT_EQ(shown(y.argmax(0)), "i32 () [1]");
  EXPECT_EQ(shown(y.max()), "f32 () [nan]");
  EXPECT_EQ(shown(Tensor::full({3}, -INFINITY).argmax(0)), "i32 () [0]");
}

TEST_F(Reduce, AnyAll) {
  const Tensor x = Tensor::of({{0, 2}, {0, 0}});
  EXPECT_EQ(shown(x.any(1)), "bool (2) [true, false]");
  EXPECT_EQ(shown(x.all(0)), "bool (2) [false, false]");
  EXPECT_EQ(shown((x == x).all()), "bool () [true]");
}

TEST_F(Reduce, Moments) {
  const Tensor x = Tensor::of({{1.0f, 2.0f}, {3.0f, 6.0f}});
  EXPECT_EQ(shown(x.mean(0)), "f32 (2) [2, 4]");
  EXPECT_EQ(shown(Tensor::of({1, 2}).mean()), "f32 () [1.5]");
  EXPECT_EQ(shown(x.var(0)), "f32 (2) [2, 8]");
  EXPECT_EQ(shown(x.var(0, false, 0)), "f32 (2) [1, 4]");
  EXPECT_EQ(shown(x.std(0, true, 0)), "f32 (1, 2) [1, 2]");
  EXPECT_EQ(x.cast(DType::F16).mean().dtype(), DType::F16);
}

TEST_F(Reduce, SoftMaximum) {
  const Tensor x = Tensor::of({{0.0f, 0.0f}, {1000.0f, 1000.0f}});
  EXPECT_EQ(shown(x.softmax()), "f32 (2, 2) [0.5, 0.5, 0.5, 0.5]");
  expect_near(x.logsumexp(1), {std::log(2.0), 1000 + std::log(2.0)});
  expect_near(x.log_softmax(1), {-std::log(2.0), -std::log(2.0), -std::log(2.0), -std::log(2.0)},
              1e-4);
  EXPECT_EQ(shown(Tensor::full({2}, -INFINITY).logsumexp()), "f32 () [-inf]");
}

TEST_F(Reduce, RunningFolds) {
  const Tensor x = Tensor::of({{1, 3, 2}, {4, -1, 5}});
  EXPECT_EQ(shown(x.cumsum(1)), "i32 (2, 3) [1, 4, 6, 4, 3, 8]");
  EXPECT_EQ(shown(x.cumsum()), "i32 (2, 3) [1, 3, 2, 5, 2, 7]");
  EXPECT_EQ(shown(x.cumprod(1)), "i32 (2, 3) [1, 3, 6, 4, -4, -20]");
  EXPECT_EQ(shown(x.cummax(1)), "i32 (2, 3) [1, 3, 3, 4, 4, 5]");
  EXPECT_EQ(shown(x.cummin(1)), "i32 (2, 3) [1, 1, 1, 4, -1, -1]");
}

TEST_F(Reduce, SortIsStableAndKnowsNaN) {
  const Tensor x = Tensor::of({3.0f, 1.0f, NAN, 1.0f, -2.0f});
  const auto [up, at] = x.sort();
  EXPECT_EQ(shown(up), "f32 (5) [-2, 1, 1, 3, nan]");
  EXPECT_EQ(shown(at), "i32 (5) [4, 1, 3, 0, 2]");
  EXPECT_EQ(shown(x.argsort(0, true)), "i32 (5) [2, 0, 1, 3, 4]");
  const auto [top, where] = Tensor::of({{1, 9, 5}, {7, 7, 2}}).topk(2);
  EXPECT_EQ(shown(top), "i32 (2, 2) [9, 5, 7, 7]");
  EXPECT_EQ(shown(where), "i32 (2, 2) [1, 2, 0, 1]");
  EXPECT_EQ(shown(Tensor::of({{2, 1}, {1, 2}}).sort(0).first), "i32 (2, 2) [1, 1, 2, 2]");
}

TEST_F(Reduce, LongSortsGoDigitByDigit) {
  constexpr int kCount = 1100;
  std::vector<int32_t> data(kCount);
  for (int i = 0; i < kCount; ++i) data[static_cast<size_t>(i)] = i * 7919 % 97;
  std::vector<int32_t> order(kCount);
  for (int i = 0; i < kCount; ++i) order[static_cast<size_t>(i)] = i;
  for (const bool descending : {false, true}) {
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      const auto x = data[static_cast<size_t>(a)], y = data[static_cast<size_t>(b)];
      return x != y ? (descending ? x > y : x < y) : a < b;
    });
    EXPECT_EQ(evaluated(Tensor::from(data).argsort(0, descending)).ints(),
              std::vector<int64_t>(order.begin(), order.end()));
  }
}

TEST_F(Reduce, LongSortsOfEveryDtype) {
  constexpr DType kAll[] = {DType::Bool, DType::I8,     DType::U8,         DType::I16,
                            DType::I64,  DType::U64,    DType::F16,        DType::BF16,
                            DType::F64,  DType::F8E4M3, DType::F8E4M3Fnuz, DType::F8E5M2};
  for (const DType d : kAll) {
    SCOPED_TRACE(name(d));
    // What doubles hold exactly.
    Tensor x = ((Tensor::arange(600) * 37) % 23 - (d == DType::U64 ? 0 : 11)).cast(d);
    if (is_float(d)) {
      x = (x == 3).where(NAN, (x == 5).where(-INFINITY, (x == 0).where(-0.0, x)));
      x = Tensor::cat({x.cast(d), Tensor::of({0.0f, -0.0f, -NAN, INFINITY}).cast(d)});
    }
    for (const bool descending : {false, true}) {
      const std::vector<double> in = values(x);
      std::vector<int64_t> order(in.size());
      for (size_t i = 0; i < in.size(); ++i) order[i] = static_cast<int64_t>(i);
      const auto before = [&](int64_t i, int64_t j) {
        const double a = in[static_cast<size_t>(i)], b = in[static_cast<size_t>(j)];
        return descending ? (std::isnan(a) && !std::isnan(b)) || a > b
                          : (std::isnan(b) && !std::isnan(a)) || a < b;
      };
      std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        return before(i, j) || (!before(j, i) && i < j);  // equal ones keep their order
      });
      EXPECT_EQ(evaluated(x.argsort(0, descending)).ints(), order);
    }
  }
  EXPECT_EQ(shown(Tensor::zeros({2, 600}).argsort(1)[{1, Slice(598, 600)}]), "i32 (2) [598, 599]");
}

TEST_F(Reduce, NothingToReduce) {
  EXPECT_EQ(shown(Tensor::zeros({0, 2}).sum(0)), "f32 (2) [0, 0]");
  EXPECT_EQ(shown(Tensor::zeros({0, 2}).prod(0)), "f32 (2) [1, 1]");
  EXPECT_EQ(message_of([] { Tensor::zeros({0, 2}).max(0); }).substr(0, 60),
            "[max] axis 0 of shape (0, 2) has no elements, and there is n");
}

}  // namespace
}  // namespace weft
