// Masks, selection and scattered reductions against NumPy's and PyTorch's results.
#include "weft/tensor/selection.h"

#include <cmath>

#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

class Selection : public TensorTest {};

Tensor counting(const Dims& shape) { return Tensor::arange(shape.product()).reshape(shape); }

TEST_F(Selection, MasksRead) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(shown(x[x % 5 == 0]), "i32 (3) [0, 5, 10]");
  const Tensor rows = Tensor::of({true, false, true});
  EXPECT_EQ(shown(x[rows]), "i32 (2, 4) [0, 1, 2, 3, 8, 9, 10, 11]");
  EXPECT_EQ(shown(x[{rows, 1}]), "i32 (2) [1, 9]");
  EXPECT_EQ(shown(x[{Slice(), Tensor::of({false, true, true, false})}]),
            "i32 (3, 2) [1, 2, 5, 6, 9, 10]");
  EXPECT_EQ(shown(x[{kEllipsis, Tensor::of({false, false, false, true})}]),
            "i32 (3, 1) [3, 7, 11]");
  // With positions it broadcasts, as NumPy's does.
  EXPECT_EQ(shown(x[{rows, Tensor::of({1, 2})}]), "i32 (2) [1, 10]");
  EXPECT_EQ(shown(x[x > 100]), "i32 (0) []");
  EXPECT_EQ(shown(x[Tensor::zeros({0}, DType::I32)]), "i32 (0, 4) []");
  const Tensor cube = counting({2, 2, 2});
  EXPECT_EQ(shown(cube[{Tensor::of({{true, false}, {false, true}})}]), "i32 (2, 2) [0, 1, 6, 7]");
}

TEST_F(Selection, MasksOfAnySize) {
  for (const int64_t n : {1, 2, 15, 16, 17, 1023, 1025, 9000})
    for (const int64_t every : {1, 3, 10000}) {
      std::vector<float> data, expected;
      for (int64_t i = 0; i < n; ++i) data.push_back(i % 5 == 4 ? NAN : static_cast<float>(i - 7));
      for (int64_t i = 0; i < n; ++i)
        if ((i + 1) % every == 0) expected.push_back(data[static_cast<size_t>(i)]);
      const Tensor x = Tensor::from(data), mask = (Tensor::arange(n) + 1) % every == 0;
      const auto expect = [&](const Tensor& got, float fill, size_t size) {
        std::vector<float> wanted = expected;
        wanted.resize(size, fill);
        const std::vector<float> values = got.to_vector<float>();
        ASSERT_EQ(values.size(), size);
        for (size_t i = 0; i < size; ++i)
          EXPECT_TRUE(values[i] == wanted[i] || (std::isnan(values[i]) && std::isnan(wanted[i])))
              << n << " every " << every << " at " << i << ": " << values[i];
      };
      expect(masked_select(x, mask), 0, expected.size());
      for (const int64_t size : {int64_t{0}, int64_t{1}, n / 2, n, n + 3})
        expect(masked_select(x, mask, size, -0.5), -0.5F, static_cast<size_t>(size));
    }
}

TEST_F(Selection, MasksWrite) {
  auto fresh = [] { return counting({2, 3}) * 1; };
  Tensor x = fresh();
  x.index_put({x > 3}, -1);
  EXPECT_EQ(shown(x), "i32 (2, 3) [0, 1, 2, 3, -1, -1]");
  x = fresh();
  x.index_put({Tensor::of({false, true})}, Tensor::of({7, 8, 9}));
  EXPECT_EQ(shown(x), "i32 (2, 3) [0, 1, 2, 7, 8, 9]");
  x = fresh();
  // One value for every true.
  x.index_put({x % 2 == 0}, Tensor::of({10, 20, 30}));
  EXPECT_EQ(shown(x), "i32 (2, 3) [10, 1, 20, 3, 30, 5]");
  x = fresh();
  x.index_put({Slice(), Tensor::of({true, false, true})}, Tensor::of({{1, 2}, {3, 4}}));
  EXPECT_EQ(shown(x), "i32 (2, 3) [1, 1, 2, 3, 4, 4]");
  x = fresh();
  x.index_put({Tensor::of({true, true}), Tensor::of({0, 2})}, -5);
  EXPECT_EQ(shown(x), "i32 (2, 3) [-5, 1, 2, 3, 4, -5]");
  // Through a view, and seen by the other names.
  x = fresh();
  Tensor row = x[1];
  row.index_put({row == 4}, 0);
  EXPECT_EQ(shown(x), "i32 (2, 3) [0, 1, 2, 3, 0, 5]");
}

TEST_F(Selection, MaskedSelect) {
  const Tensor x = Tensor::of({{1.0f, -2.0f}, {3.0f, -4.0f}});
  EXPECT_EQ(shown(masked_select(x, x > 0)), "f32 (2) [1, 3]");
  EXPECT_EQ(shown(masked_select(x, Tensor::of({false, true}))), "f32 (2) [-2, -4]");
  EXPECT_EQ(shown(masked_select(x, x > 0, 3, 9)), "f32 (3) [1, 3, 9]");
  EXPECT_EQ(shown(masked_select(x, x < 9, 3)), "f32 (3) [1, -2, 3]");
  EXPECT_EQ(shown(masked_select(Tensor::zeros({0}), Tensor::zeros({0}, DType::Bool))),
            "f32 (0) []");
  EXPECT_EQ(shown(masked_select(Tensor(2), Tensor(true))), "i32 (1) [2]");
}

TEST_F(Selection, Nonzero) {
  const Tensor x = Tensor::of({{0.0f, 2.0f, 0.0f}, {NAN, 0.0f, 3.0f}});
  EXPECT_EQ(shown(nonzero(x)), "i32 (3, 2) [0, 1, 1, 0, 1, 2]");
  EXPECT_EQ(shown(nonzero(x, 4, -1)), "i32 (4, 2) [0, 1, 1, 0, 1, 2, -1, -1]");
  EXPECT_EQ(shown(nonzero(x, 1)), "i32 (1, 2) [0, 1]");
  EXPECT_EQ(shown(nonzero(Tensor(5))), "i32 (1, 0) []");
  EXPECT_EQ(shown(nonzero(Tensor::zeros({2, 0}))), "i32 (0, 2) []");
}

TEST_F(Selection, UniqueValues) {
  const Unique u = unique(Tensor::of({{3, 1}, {1, 7}}));
  EXPECT_EQ(shown(u.values), "i32 (3) [1, 3, 7]");
  EXPECT_EQ(shown(u.inverse), "i32 (2, 2) [1, 0, 0, 2]");
  EXPECT_EQ(shown(u.counts), "i32 (3) [2, 1, 1]");
  const Unique padded = unique(Tensor::of({2, 2}), 3, -1);
  EXPECT_EQ(shown(padded.values), "i32 (3) [2, -1, -1]");
  EXPECT_EQ(shown(padded.counts), "i32 (3) [2, 0, 0]");
  const Unique nans = unique(Tensor::of({NAN, 1.0f, NAN}));
  expect_near(nans.values, {1, NAN});
  EXPECT_EQ(shown(nans.counts), "i32 (2) [1, 2]");
  EXPECT_EQ(shown(unique(Tensor::zeros({0})).values), "f32 (0) []");
}

TEST_F(Selection, Searchsorted) {
  const Tensor sorted = Tensor::of({1.0f, 3.0f, 3.0f, 5.0f});
  const Tensor v = Tensor::of({{0.0f, 1.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
  EXPECT_EQ(shown(searchsorted(sorted, v)), "i32 (2, 3) [0, 0, 1, 3, 3, 4]");
  EXPECT_EQ(shown(searchsorted(sorted, v, true)), "i32 (2, 3) [0, 1, 3, 3, 4, 4]");
  const Tensor rows = Tensor::of({{1, 2, 3}, {10, 20, 30}});
  EXPECT_EQ(shown(searchsorted(rows, Tensor::of({{2}, {2}}))), "i32 (2, 1) [1, 0]");
  EXPECT_EQ(shown(searchsorted(Tensor::of({1.0f, NAN}), Tensor::of({NAN}))), "i32 (1) [1]");
  EXPECT_EQ(shown(searchsorted(Tensor::of({1.0f, NAN}), Tensor::of({NAN}), true)), "i32 (1) [2]");
  EXPECT_EQ(shown(searchsorted(Tensor::zeros({0}), Tensor::of({1.0f}))), "i32 (1) [0]");
}

TEST_F(Selection, TakeAndPut) {
  const Tensor x = Tensor::of({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(shown(take(x, Tensor::of({{-1, -2}, {2, 8}}) + 1)), "i32 (2, 2) [1, 6, 4, 0]");
  EXPECT_EQ(shown(put(x, Tensor::of({0, 4}), Tensor::of({10, 50}))),
            "i32 (2, 3) [10, 2, 3, 4, 50, 6]");
  EXPECT_EQ(shown(put(x, Tensor::of({0, 0}), 5, true)), "i32 (2, 3) [11, 2, 3, 4, 5, 6]");
  EXPECT_EQ(shown(take_along_axis(x, Tensor::of({{2, 0}}), 1)), "i32 (2, 2) [3, 1, 6, 4]");
  EXPECT_EQ(shown(put_along_axis(x, Tensor::of({{1}}), 0, 1)), "i32 (2, 3) [1, 0, 3, 4, 0, 6]");
}

TEST_F(Selection, ScatteredReductions) {
  const Tensor x = Tensor::of({1.0f, 2.0f, 3.0f}), at = Tensor::of({0, 0, 2});
  const Tensor src = Tensor::of({4.0f, 5.0f, -6.0f});
  auto with = [&](ScatterReduce r, bool self) {
    return shown(scatter_reduce(x, 0, at, src, r, self));
  };
  EXPECT_EQ(with(ScatterReduce::Sum, true), "f32 (3) [10, 2, -3]");
  EXPECT_EQ(with(ScatterReduce::Sum, false), "f32 (3) [9, 2, -6]");
  EXPECT_EQ(with(ScatterReduce::Prod, true), "f32 (3) [20, 2, -18]");
  EXPECT_EQ(with(ScatterReduce::Prod, false), "f32 (3) [20, 2, -6]");
  EXPECT_EQ(with(ScatterReduce::Mean, false), "f32 (3) [4.5, 2, -6]");
  EXPECT_EQ(with(ScatterReduce::Amax, true), "f32 (3) [5, 2, 3]");
  EXPECT_EQ(with(ScatterReduce::Amax, false), "f32 (3) [5, 2, -6]");
  EXPECT_EQ(with(ScatterReduce::Amin, false), "f32 (3) [4, 2, -6]");
  expect_near(scatter_reduce(x, 0, at, src, ScatterReduce::Mean), {10.0 / 3, 2, -1.5});
  EXPECT_EQ(shown(scatter_reduce(Tensor::of({1, 2}), 0, Tensor::of({0, 0}), Tensor::of({-2, -3}),
                                 ScatterReduce::Mean)),
            "i32 (2) [-2, 2]");
}

}  // namespace
}  // namespace weft
