// Formulas over axes: values as NumPy and einops give them.
#include "weft/tensor/einsum.h"

#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

class Einsum : public TensorTest {};

Tensor counting(const Dims& shape) { return Tensor::arange(shape.product()).reshape(shape); }

TEST_F(Einsum, ProductsAndTheirSums) {
  const Tensor a = counting({2, 3}), b = counting({3, 2}) + 1;
  EXPECT_EQ(shown(einsum("ij,jk->ik", {a, b})), "i32 (2, 2) [13, 16, 40, 52]");
  EXPECT_EQ(shown(einsum("ij,jk", {a, b})), "i32 (2, 2) [13, 16, 40, 52]");
  EXPECT_EQ(shown(einsum("ij , jk -> ki", {a, b})), "i32 (2, 2) [13, 40, 16, 52]");
  EXPECT_EQ(shown(einsum("ij->", {a})), "i32 () [15]");
  EXPECT_EQ(shown(einsum("ij->j", {a})), "i32 (3) [3, 5, 7]");
  EXPECT_EQ(shown(einsum("i,j", {Tensor::of({1, 2}), Tensor::of({3, 4})})),
            "i32 (2, 2) [3, 4, 6, 8]");
  EXPECT_EQ(shown(einsum("ba", {a})), shown(a.T()));
  EXPECT_EQ(shown(einsum("ij,ij,ij->i", {a, a, a})), "i32 (2) [9, 216]");
  EXPECT_EQ(einsum("i,i", {a[0].cast(DType::F16), a[0].cast(DType::F16)}).dtype(), DType::F16);
  EXPECT_EQ(einsum("i,i", {a[0], a[0]}, DType::F64).dtype(), DType::F64);
}

TEST_F(Einsum, DiagonalsAndEllipses) {
  const Tensor square = counting({3, 3});
  EXPECT_EQ(shown(einsum("ii", {square})), "i32 () [12]");
  EXPECT_EQ(shown(einsum("ii->i", {square})), "i32 (3) [0, 4, 8]");
  EXPECT_EQ(shown(einsum("iii->i", {counting({2, 2, 2})})), "i32 (2) [0, 7]");
  const Tensor batch = counting({2, 2, 2});
  EXPECT_EQ(shown(einsum("...ij,...jk->...ik", {batch, counting({2, 2})})),
            "i32 (2, 2, 2) [2, 3, 6, 11, 10, 19, 14, 27]");
  EXPECT_EQ(shown(einsum("...i->...", {batch})), "i32 (2, 2) [1, 5, 9, 13]");
  EXPECT_EQ(shown(einsum("i...", {batch})), shown(einsum("i...->...i", {batch})));
  EXPECT_EQ(shown(einsum("ij,jk->ik", {Tensor::zeros({2, 0}), Tensor::zeros({0, 1})})),
            "f32 (2, 1) [0, 0]");
}

TEST_F(Einsum, Rearranging) {
  const Tensor x = counting({2, 4});
  EXPECT_EQ(shown(rearrange(x, "a b -> b a")), shown(x.T()));
  EXPECT_EQ(shown(rearrange(x, "a b -> (a b)")), shown(x.flatten()));
  EXPECT_EQ(shown(rearrange(x, "a (h p) -> h (a p)", {{"p", 2}})),
            "i32 (2, 4) [0, 1, 4, 5, 2, 3, 6, 7]");
  EXPECT_EQ(shown(rearrange(x, "a b -> a 1 b")), "i32 (2, 1, 4) [0, 1, 2, 3, 4, 5, 6, 7]");
  EXPECT_EQ(shown(rearrange(x.unsqueeze(1), "a 1 b -> b a")), shown(x.T()));
  EXPECT_EQ(shown(rearrange(counting({2, 1, 3}), "... c -> c ...")),
            "i32 (3, 2, 1) [0, 3, 1, 4, 2, 5]");
  EXPECT_EQ(shown(rearrange(counting({2, 1, 3}), "a ... -> (... a)")),
            "i32 (6) [0, 3, 1, 4, 2, 5]");
  EXPECT_EQ(rearrange(Tensor::zeros({2, 0}), "a b -> (b a)").dims().text(), "(0,)");
}

}  // namespace
}  // namespace weft
