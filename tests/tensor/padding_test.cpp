// Padding by what is there, grids, diagonals, rolls over several axes: values as NumPy gives them.
#include "tests/tensor/tensor_test.h"
#include "weft/tensor/movement.h"

namespace weft {
namespace {

class Padding : public TensorTest {};

Tensor counting(const Dims& shape) { return Tensor::arange(shape.product()).reshape(shape); }

TEST_F(Padding, RepeatsWhatIsThere) {
  const Tensor x = Tensor::of({1, 2, 3});
  EXPECT_EQ(shown(pad(x, {{2, 1}}, PadMode::Reflect)), "i32 (6) [3, 2, 1, 2, 3, 2]");
  EXPECT_EQ(shown(pad(x, {{2, 1}}, PadMode::Replicate)), "i32 (6) [1, 1, 1, 2, 3, 3]");
  EXPECT_EQ(shown(pad(x, {{2, 3}}, PadMode::Circular)), "i32 (8) [2, 3, 1, 2, 3, 1, 2, 3]");
  EXPECT_EQ(shown(pad(x, {{1, 0}}, PadMode::Constant, 9)), "i32 (4) [9, 1, 2, 3]");
  EXPECT_EQ(shown(pad(x, {{-1, 2}}, PadMode::Replicate)), "i32 (4) [2, 3, 3, 3]");
  EXPECT_EQ(shown(pad(counting({2, 2}), {{1, 0}, {0, 1}}, PadMode::Reflect)),
            "i32 (3, 3) [2, 3, 2, 0, 1, 0, 2, 3, 2]");
  EXPECT_EQ(shown(counting({2, 2}).pad(pads_from_last(counting({2, 2}), {1, 0}))),
            "i32 (2, 3) [0, 0, 1, 0, 2, 3]");
}

TEST_F(Padding, ToSizes) {
  const Tensor x = counting({2, 2});
  EXPECT_EQ(shown(pad_to(x, {std::nullopt, 3}, -1)), "i32 (2, 3) [0, 1, -1, 2, 3, -1]");
  EXPECT_EQ(shown(shrink_to(x, {1, std::nullopt})), "i32 (1, 2) [0, 1]");
}

TEST_F(Padding, Grids) {
  const auto ij = meshgrid({Tensor::of({1, 2}), Tensor::of({3, 4, 5})});
  EXPECT_EQ(shown(ij[0]), "i32 (2, 3) [1, 1, 1, 2, 2, 2]");
  EXPECT_EQ(shown(ij[1]), "i32 (2, 3) [3, 4, 5, 3, 4, 5]");
  const auto xy = meshgrid({Tensor::of({1, 2}), Tensor::of({3, 4, 5})}, true);
  EXPECT_EQ(shown(xy[0]), "i32 (3, 2) [1, 2, 1, 2, 1, 2]");
  EXPECT_EQ(shown(xy[1]), "i32 (3, 2) [3, 3, 4, 4, 5, 5]");
  EXPECT_EQ(meshgrid({Tensor(3)})[0].dims().text(), "(1,)");
  const auto both = broadcast_tensors({counting({2, 1}), counting({3})});
  EXPECT_EQ(shown(both[0]), "i32 (2, 3) [0, 0, 0, 1, 1, 1]");
  EXPECT_EQ(shown(both[1]), "i32 (2, 3) [0, 1, 2, 0, 1, 2]");
}

TEST_F(Padding, Diagonals) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(shown(x.diagonal()), "i32 (3) [0, 5, 10]");
  EXPECT_EQ(shown(x.diagonal(2)), "i32 (2) [2, 7]");
  EXPECT_EQ(shown(x.diagonal(-1)), "i32 (2) [4, 9]");
  EXPECT_EQ(shown(x.diagonal(9)), "i32 (0) []");
  EXPECT_EQ(shown(x.diagonal(0, 1, 0)), "i32 (3) [0, 5, 10]");
  EXPECT_EQ(shown(counting({2, 2, 2}).diagonal()), "i32 (2, 2) [0, 6, 1, 7]");
  EXPECT_EQ(shown(counting({2, 2, 2}).diagonal(1, -2, -1)), "i32 (2, 1) [1, 5]");
  EXPECT_EQ(shown(diag(Tensor::of({1, 2}))), "i32 (2, 2) [1, 0, 0, 2]");
  EXPECT_EQ(shown(diag(Tensor::of({1, 2}), 1)), "i32 (3, 3) [0, 1, 0, 0, 0, 2, 0, 0, 0]");
  EXPECT_EQ(shown(diag(Tensor::of({1}), -1)), "i32 (2, 2) [0, 0, 1, 0]");
  EXPECT_EQ(shown(diag(x, 1)), "i32 (3) [1, 6, 11]");
  EXPECT_EQ(shown(diag(Tensor::zeros({0}))), "f32 (0, 0) []");
}

TEST_F(Padding, RollsAndMoves) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(shown(x.roll({1, -1}, {0, 1})), "i32 (2, 3) [4, 5, 3, 1, 2, 0]");
  EXPECT_EQ(shown(x.roll(1)), "i32 (2, 3) [5, 0, 1, 2, 3, 4]");
  EXPECT_EQ(movedim(counting({2, 3, 4}), 0, -1).dims().text(), "(3, 4, 2)");
  EXPECT_EQ(movedim(counting({2, 3, 4}), 2, 0).dims().text(), "(4, 2, 3)");
}

}  // namespace
}  // namespace weft
