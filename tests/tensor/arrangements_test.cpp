// Pieces and turns of movement.h, products.h, writes at positions of selection.h, pixels of
// image.h.
#include <cmath>

#include "tests/tensor/tensor_test.h"
#include "weft/tensor/image.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/products.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/selection.h"

namespace weft {
namespace {

class Arrangements : public TensorTest {};

Tensor grid() { return Tensor::of({{1, 2, 3}, {4, 5, 6}}); }

TEST_F(Arrangements, Pieces) {
  const std::vector<Tensor> columns = unbind(grid(), 1);
  ASSERT_EQ(columns.size(), 3u);
  EXPECT_EQ(shown(columns[2]), "i32 (2) [3, 6]");
  const std::vector<Tensor> parts = tensor_split(Tensor::arange(5), 3);
  EXPECT_EQ(shown(parts[0]) + shown(parts[2]), "i32 (2) [0, 1]i32 (1) [4]");
  const std::vector<Tensor> cut = tensor_split(Tensor::arange(5), std::vector<int64_t>{1, -1, 9});
  ASSERT_EQ(cut.size(), 4u);
  EXPECT_EQ(shown(cut[1]) + shown(cut[2]) + shown(cut[3]),
            "i32 (3) [1, 2, 3]i32 (1) [4]i32 (0) []");
}

TEST_F(Arrangements, Turns) {
  EXPECT_EQ(shown(rot90(grid())), "i32 (3, 2) [3, 6, 2, 5, 1, 4]");
  EXPECT_EQ(shown(rot90(grid(), 2)), "i32 (2, 3) [6, 5, 4, 3, 2, 1]");
  EXPECT_EQ(shown(rot90(grid(), -1)), "i32 (3, 2) [4, 1, 5, 2, 6, 3]");
  EXPECT_EQ(shown(rot90(grid(), 4)), shown(grid()));
}

TEST_F(Arrangements, Diagonals) {
  const Tensor x = Tensor::of({1, 2});
  EXPECT_EQ(shown(diag_embed(x)), "i32 (2, 2) [1, 0, 0, 2]");
  EXPECT_EQ(shown(diag_embed(x, 1)), "i32 (3, 3) [0, 1, 0, 0, 0, 2, 0, 0, 0]");
  EXPECT_EQ(shown(diag_embed(x, -1)), "i32 (3, 3) [0, 0, 0, 1, 0, 0, 0, 2, 0]");
  EXPECT_EQ(shown(diag_embed(grid(), 0, 0, 2).diagonal(0, 0, 2)), shown(grid()));
  EXPECT_EQ(shown(block_diag({x, Tensor::of({{3}, {4}})})),
            "i32 (3, 3) [1, 2, 0, 0, 0, 3, 0, 0, 4]");
  EXPECT_EQ(shown(vander(Tensor::of({2, 3}), 3)), "i32 (2, 3) [4, 2, 1, 9, 3, 1]");
  EXPECT_EQ(shown(vander(Tensor::of({2, 3}), 2, true)), "i32 (2, 2) [1, 2, 1, 3]");
}

TEST_F(Arrangements, Products) {
  const Tensor x = Tensor::of({1, 2, 3}), y = Tensor::of({4, 5, 6});
  EXPECT_EQ(shown(outer(x, y)), "i32 (3, 3) [4, 5, 6, 8, 10, 12, 12, 15, 18]");
  EXPECT_EQ(shown(inner(x, y)), "i32 () [32]");
  EXPECT_EQ(shown(inner(grid(), x)), "i32 (2) [14, 32]");
  EXPECT_EQ(shown(cross(x, y)), "i32 (3) [-3, 6, -3]");
  EXPECT_EQ(shown(kron(Tensor::of({1, 2}), grid())),
            "i32 (2, 6) [1, 2, 3, 2, 4, 6, 4, 5, 6, 8, 10, 12]");
  EXPECT_EQ(shown(tensordot(grid(), grid(), 2)), "i32 () [91]");
  EXPECT_EQ(shown(tensordot(grid(), grid(), Ints(0), Ints(0))),
            "i32 (3, 3) [17, 22, 27, 22, 29, 36, 27, 36, 45]");
  EXPECT_EQ(shown(tensordot(x, Tensor::of({1, 10}), 0)), "i32 (3, 2) [1, 10, 2, 20, 3, 30]");
}

TEST_F(Arrangements, Distances) {
  const Tensor x = Tensor::of({{0.0f, 0.0f}, {3.0f, 4.0f}});
  EXPECT_EQ(shown(cdist(x, x)), "f32 (2, 2) [0, 5, 5, 0]");
  EXPECT_EQ(shown(cdist(x, x, 1)), "f32 (2, 2) [0, 7, 7, 0]");
  EXPECT_EQ(shown(dist(x[0], x[1], INFINITY)), "f32 () [4]");
  // The distance of a row to itself has no infinite slope.
  EXPECT_EQ(shown(cdist(x, x).sum().gradient({x})[0].isfinite().all()), "bool () [true]");
}

TEST_F(Arrangements, WritesAtPositions) {
  const Tensor x = Tensor::zeros({2, 3}, DType::I32), at = Tensor::of({2, 0, 2});
  const Tensor src = Tensor::of({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(shown(index_add(x, 1, at, src)), "i32 (2, 3) [2, 0, 4, 5, 0, 10]");
  EXPECT_EQ(shown(index_copy(x, 1, at, src)), "i32 (2, 3) [2, 0, 3, 5, 0, 6]");
  EXPECT_EQ(shown(index_fill(x, 1, at, 7)), "i32 (2, 3) [7, 0, 7, 7, 0, 7]");
  const Tensor mask = Tensor::of({true, false, true});
  EXPECT_EQ(shown(masked_scatter(x, mask, Tensor::of({1, 2, 3, 4}))),
            "i32 (2, 3) [1, 0, 2, 3, 0, 4]");
  EXPECT_EQ(shown(masked_scatter(x, Tensor::of({false}), Tensor::zeros({0}, DType::I32))),
            "i32 (2, 3) [0, 0, 0, 0, 0, 0]");
  EXPECT_EQ(shown(isin(src, Tensor::of({{5, 1}}))),
            "bool (2, 3) [true, false, false, false, true, false]");
  EXPECT_EQ(shown(isin(Tensor::of({NAN, 1.0f}), Tensor::of({NAN, 1.0f}))),
            "bool (2) [false, true]");
  EXPECT_EQ(shown(isin(src[0], Tensor::zeros({0}))), "bool (3) [false, false, false]");
}

/// Rows that are written more than once: sums of all of them, or the last one, in every column.
TEST_F(Arrangements, WideRowsAreWrittenInOrder) {
  const std::vector<int32_t> places{3, 0, 3, 1, 3, 0, 2};
  for (const int64_t columns : {7, 33, 1000, 1001, 4096, 16384}) {
    SCOPED_TRACE(columns);
    const Tensor x = Tensor::arange(5 * columns).reshape({5, columns}).cast(DType::F32).realize();
    const Tensor src =
        (Tensor::arange(7 * columns) % 1013).reshape({7, columns}).cast(DType::F32).realize();
    const Tensor at = Tensor::of(places);
    std::vector<Tensor> sums, last;
    for (int32_t row = 0; row < 5; ++row) {
      Tensor sum = x.index({row}), newest = sum;
      for (size_t i = 0; i < places.size(); ++i)
        if (places[i] == row) newest = src.index({static_cast<int64_t>(i)}), sum = sum + newest;
      sums.push_back(sum), last.push_back(newest);
    }
    EXPECT_EQ(shown(allclose(index_add(x, 0, at, src), Tensor::stack(sums, 0), 0, 0)),
              "bool () [true]");
    EXPECT_EQ(shown(allclose(index_copy(x, 0, at, src), Tensor::stack(last, 0), 0, 0)),
              "bool () [true]");
  }
}

TEST_F(Arrangements, NumbersAreWrittenInTheDtypeOfTheTensor) {
  Tensor x = Tensor::zeros({2}, DType::F64);
  x.index_put({Tensor::of({0})}, 0.1);
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{0.1, 0}));
  EXPECT_EQ(x.scatter(0, Tensor::of({1}), 0.3).to_vector<double>(),
            (std::vector<double>{0.1, 0.3}));
  const Tensor two = Tensor::full({}, 2, DType::F64);
  EXPECT_EQ((two % 0.3).item<double>(), std::fmod(2, 0.3));
  EXPECT_NEAR(two.pow(1.0 / 3).item<double>(), std::cbrt(2), 1e-15);
}

TEST_F(Arrangements, Pixels) {
  const Tensor x = Tensor::arange(16).reshape({1, 4, 2, 2});
  const Tensor y = pixel_shuffle(x, 2);
  EXPECT_EQ(shown(y), "i32 (1, 1, 4, 4) [0, 4, 1, 5, 8, 12, 9, 13, 2, 6, 3, 7, 10, 14, 11, 15]");
  EXPECT_EQ(shown(pixel_unshuffle(y, 2)), shown(x));
  EXPECT_EQ(shown(channel_shuffle(Tensor::arange(4).reshape({1, 4}), 2)),
            "i32 (1, 4) [0, 2, 1, 3]");
  const Tensor same = Tensor::of({{1.0f, 0.0f, 0.0f}, {0.0f, 1.0f, 0.0f}}).unsqueeze(0);
  expect_near(affine_grid(same, 1, 2), {-0.5, 0, 0.5, 0});
  expect_near(affine_grid(same, 2, 1, true), {0, -1, 0, 1});
}

}  // namespace
}  // namespace weft
