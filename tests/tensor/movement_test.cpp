#include <algorithm>

#include "tests/support/compiler/isa_levels.h"
#include "tests/support/device_here.h"
#include "tests/tensor/tensor_test.h"
#include "weft/base/format.h"
#include "weft/run/stats.h"

namespace weft {
namespace {

class Movement : public TensorTest {};

Tensor counting(const Dims& shape) { return Tensor::arange(shape.product()).reshape(shape); }

TEST_F(Movement, ReshapeComputesOneSize) {
  EXPECT_EQ(shown(Tensor::arange(6).reshape({2, -1})), "i32 (2, 3) [0, 1, 2, 3, 4, 5]");
  EXPECT_EQ(Tensor::zeros({0, 3}).reshape({3, 0}).shape(), (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(counting({2, 3}).flatten().shape(), (std::vector<int64_t>{6}));
  EXPECT_EQ(counting({2, 3, 4}).flatten(1).shape(), (std::vector<int64_t>{2, 12}));
  EXPECT_EQ(counting({6, 2}).unflatten(0, {2, 3}).shape(), (std::vector<int64_t>{2, 3, 2}));
}

TEST_F(Movement, AxesMove) {
  const Tensor x = counting({2, 3});
  EXPECT_EQ(shown(x.T()), "i32 (3, 2) [0, 3, 1, 4, 2, 5]");
  EXPECT_EQ(shown(x.permute({1, 0}).permute({1, 0})), shown(x));
  EXPECT_EQ(shown(x.flip({0, 1})), "i32 (2, 3) [5, 4, 3, 2, 1, 0]");
  EXPECT_EQ(shown(x.flip(-1)), "i32 (2, 3) [2, 1, 0, 5, 4, 3]");
  EXPECT_EQ(x.unsqueeze(-1).shape(), (std::vector<int64_t>{2, 3, 1}));
  EXPECT_EQ(x.unsqueeze(0).squeeze().shape(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(x.squeeze(0).shape(), (std::vector<int64_t>{2, 3}));
}

TEST_F(Movement, ExpandRepeatRoll) {
  const Tensor x = Tensor::of({1, 2});
  EXPECT_EQ(shown(x.reshape({2, 1}).expand({2, 3})), "i32 (2, 3) [1, 1, 1, 2, 2, 2]");
  EXPECT_EQ(shown(x.expand({2, -1})), "i32 (2, 2) [1, 2, 1, 2]");
  EXPECT_EQ(shown(x.repeat({2, 2})), "i32 (2, 4) [1, 2, 1, 2, 1, 2, 1, 2]");
  EXPECT_EQ(shown(x.repeat_interleave(2, 0)), "i32 (4) [1, 1, 2, 2]");
  EXPECT_EQ(shown(Tensor::arange(5).roll(2, 0)), "i32 (5) [3, 4, 0, 1, 2]");
  EXPECT_EQ(shown(Tensor::arange(5).roll(-6, 0)), "i32 (5) [1, 2, 3, 4, 0]");
}

// In machine code, where a few vectors are interleaved: with remainders, for elements of all sizes.
TEST(Interleaved, AreInTheOrderOfMemory) {
  Context machine{Options::from_environment()};
  const ContextScope scope(machine);
  constexpr int64_t kCount = 1003;
  for (const DType dtype :
       {DType::F32, DType::F64, DType::F16, DType::I8, DType::U16, DType::I64, DType::Bool}) {
    const int64_t values = is_bool(dtype) ? 2 : 100;
    const Tensor x = (Tensor::arange(kCount) % values).cast(dtype).contiguous();
    const Tensor y = (Tensor::arange(kCount) % 3 == 0).cast(dtype).contiguous();
    realize({x, y});
    for (int64_t columns = 2; columns <= 5; ++columns) {
      std::vector<Tensor> parts{x, y};
      while (std::ssize(parts) < columns) parts.push_back(x);
      const auto stacked = Tensor::stack(parts, 1).cast(DType::I32).to_vector<int32_t>();
      const auto repeated = x.repeat_interleave(columns, 0).cast(DType::I32).to_vector<int32_t>();
      for (int64_t k = 0; k < kCount * columns; ++k) {
        const auto at = static_cast<size_t>(k);
        const int64_t row = k / columns;
        ASSERT_EQ(repeated[at], row % values) << name(dtype) << ", " << columns << ", " << k;
        ASSERT_EQ(stacked[at], k % columns == 1 ? (row % 3 == 0 ? 1 : 0) : row % values)
            << name(dtype) << ", " << columns << ", " << k;
      }
    }
  }
}

TEST_F(Movement, PadFillsAndCuts) {
  const Tensor x = Tensor::of({1, 2, 3});
  EXPECT_EQ(shown(x.pad({{1, 2}})), "i32 (6) [0, 1, 2, 3, 0, 0]");
  EXPECT_EQ(shown(x.pad({{1, 0}}, 9)), "i32 (4) [9, 1, 2, 3]");
  EXPECT_EQ(shown(x.pad({{-1, 1}}, 9)), "i32 (3) [2, 3, 9]");
  EXPECT_EQ(shown(x.shrink({{1, 3}})), "i32 (2) [2, 3]");
}

TEST_F(Movement, JoiningKeepsEveryBit) {
  const Tensor a = Tensor::of({-0.0f, 1.0f}), b = Tensor::of({2.0f});
  EXPECT_EQ(shown(Tensor::cat({a, b, a})), "f32 (5) [-0, 1, 2, -0, 1]");
  EXPECT_EQ(shown(Tensor::cat({counting({2, 1}), counting({2, 2})}, -1)),
            "i32 (2, 3) [0, 0, 1, 1, 2, 3]");
  EXPECT_EQ(shown(Tensor::stack({a, a + 1}, 1)), "f32 (2, 2) [-0, 1, 1, 2]");
  EXPECT_EQ(Tensor::cat({Tensor::of({1}), Tensor::of({0.5f})}).dtype(), DType::F32);
}

/// One kernel for both parts, which are made of one value, and none that copies them; but where
/// others have the joined value too, it has memory of its own.
TEST_F(Movement, WhatWasJoinedIsCopiedForOthersAlone) {
  const Tensor a = Tensor::arange(12'000).reshape({3, 4000}).contiguous().realize(), b = -a;
  const auto kernels = [&] { return run_stats(context_).kernels; };
  auto before = kernels();
  Tensor::cat({a, b}, 1).contiguous().realize();
  EXPECT_EQ(kernels() - before, 1);
  Tensor joined = Tensor::cat({a, b}, 1), copy = joined.contiguous();
  realize({joined, copy});
  copy.index_put({0}, 7);
  EXPECT_EQ(joined.sum().item<int64_t>(), 0);
  EXPECT_EQ(copy[0].sum().item<int64_t>(), 7 * 8000);
}

TEST_F(Movement, SplitIntoViews) {
  const auto parts = Tensor::arange(5).split(2);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(shown(parts[2]), "i32 (1) [4]");
  const auto uneven = Tensor::arange(5).split({1, 4});
  EXPECT_EQ(shown(uneven[1]), "i32 (4) [1, 2, 3, 4]");
  EXPECT_EQ(Tensor::arange(7).chunk(3).size(), 3u);
}

TEST_F(Movement, WindowsSlide) {
  EXPECT_EQ(shown(Tensor::arange(6).window(0, 3, 2)), "i32 (2, 3) [0, 1, 2, 2, 3, 4]");
  EXPECT_EQ(shown(Tensor::arange(5).window(0, 2, 1, 3)), "i32 (2, 2) [0, 3, 1, 4]");
  EXPECT_EQ(shown(counting({2, 3}).unfold(1, 2, 1)), "i32 (2, 2, 2) [0, 1, 1, 2, 3, 4, 4, 5]");
}

TEST_F(Movement, DiagonalsAndTriangles) {
  const Tensor x = counting({3, 3}) + 1;
  EXPECT_EQ(shown(x.diagonal()), "i32 (3) [1, 5, 9]");
  EXPECT_EQ(shown(x.tril()), "i32 (3, 3) [1, 0, 0, 4, 5, 0, 7, 8, 9]");
  EXPECT_EQ(shown(x.triu(1)), "i32 (3, 3) [0, 2, 3, 0, 0, 6, 0, 0, 0]");
  EXPECT_EQ(Tensor::ones({2, 2}, DType::Bool).tril().dtype(), DType::Bool);
}

// ---- sharing: NumPy's aliasing

TEST_F(Movement, ViewsSeeWritesAndWritesGoThroughViews) {
  Tensor x = counting({2, 3}).cast(DType::F32);
  Tensor row = x[1], column = x.T()[0], same = x.reshape({3, 2});
  row += 10;
  EXPECT_EQ(shown(x), "f32 (2, 3) [0, 1, 2, 13, 14, 15]");
  EXPECT_EQ(shown(column), "f32 (2) [0, 13]");
  same.assign(7);
  EXPECT_EQ(shown(row), "f32 (3) [7, 7, 7]");
  x.flip(1)[{0, 0}].assign(1);
  EXPECT_EQ(shown(x), "f32 (2, 3) [7, 7, 1, 7, 7, 7]");
}

TEST_F(Movement, WhatWasReadBeforeAWriteKeepsItsValue) {
  Tensor x = Tensor::of({1, 2, 3});
  const Tensor doubled = x * 2;
  x += 1;
  EXPECT_EQ(shown(doubled), "i32 (3) [2, 4, 6]");
  x[{Slice(1, 3)}] += x[{Slice(0, 2)}];
  EXPECT_EQ(shown(x), "i32 (3) [2, 5, 7]");
}

TEST_F(Movement, ReshapeCopiesExactlyWhereNumpyDoes) {
  Tensor x = counting({2, 3});
  Tensor transposed = x.T().reshape({6});  // no strides describe this
  transposed += 100;
  EXPECT_EQ(shown(x), "i32 (2, 3) [0, 1, 2, 3, 4, 5]");
  Tensor y = counting({4, 4});
  Tensor block = y[{Slice(0, 2)}].reshape({8});
  block += 100;
  EXPECT_EQ(shown(y[0]), "i32 (4) [100, 101, 102, 103]");
  Tensor columns = y[{Slice(), Slice(0, 2)}].reshape({8});  // rows are not adjacent: a copy
  columns += 1000;
  EXPECT_EQ(shown(y[0]), "i32 (4) [100, 101, 102, 103]");
  Tensor split = y[{Slice(), Slice(0, 2)}].reshape({2, 2, 2});  // only the outer axis: a view
  split += 1000;
  EXPECT_EQ(shown(y[0]), "i32 (4) [1100, 1101, 102, 103]");
  Tensor every_other = Tensor::arange(8)[{Slice(std::nullopt, std::nullopt, 2)}];
  EXPECT_EQ(shown(every_other.reshape({2, 2})), "i32 (2, 2) [0, 2, 4, 6]");
}

TEST_F(Movement, WholeArrayWritesNeedNoOldValue) {
  Tensor x = counting({2, 3});
  x.T().assign(Tensor::arange(6).reshape({3, 2}));
  EXPECT_EQ(shown(x), "i32 (2, 3) [0, 2, 4, 1, 3, 5]");
  x.flip(0).assign(Tensor::of({{1}, {2}}));
  EXPECT_EQ(shown(x), "i32 (2, 3) [2, 2, 2, 1, 1, 1]");
}

TEST_F(Movement, SymbolicSizes) {
  const Variable n("n", 1, 8);
  const Tensor x = Tensor::arange(8).shrink({{0, n.bind(3)}});
  EXPECT_FALSE(x.dims().is_static());
  EXPECT_EQ(shown((x + 1).sum()), "i32 () [6]");
  EXPECT_EQ(shown(x.reshape({1, -1}).sum()), "i32 () [3]");
  EXPECT_NE(message_of([&] { x.shape(); }).find("n=3"), std::string::npos);
  EXPECT_EQ(shown(x[{Slice(0, 2)}]), "i32 (2) [0, 1]");
}

/// Compiled code reverses vectors of every width.
class Flips : public ::testing::TestWithParam<std::string> {
 protected:
  static Options options() {
    Options options = Options::from_environment();
    options.dev = testing::device_here("CPU");
    options.isa = GetParam();
    return options;
  }

  Context context_{options()};
  ContextScope scope_{context_};
};

TEST_P(Flips, OfRowsOfEveryType) {
  for (const DType d : {DType::Bool, DType::U8, DType::I16, DType::F16, DType::BF16, DType::I32,
                        DType::F32, DType::I64, DType::F64})
    for (const int64_t n : {2, 15, 16, 37, 64, 200}) {
      SCOPED_TRACE(strformat("{} of {}", name(d), n));
      const Tensor x = (Tensor::arange(3 * n).reshape({3, n}) * 7 % 5).cast(d).realize();
      auto wanted = x.cast(DType::F32).to_vector<float>();
      for (int64_t row = 0; row < 3; ++row)
        std::reverse(wanted.begin() + row * n, wanted.begin() + (row + 1) * n);
      EXPECT_EQ(x.flip(-1).realize().cast(DType::F32).to_vector<float>(), wanted);
    }
}

INSTANTIATE_TEST_SUITE_P(Levels, Flips, ::testing::ValuesIn(testing::isa_levels_and_all()),
                         [](const auto& i) { return testing::name_of_isa_level(i.param); });

}  // namespace
}  // namespace weft
