// Very long axes: positions that i32 does not hold, sums that one f32 accumulator does not.
#include <gtest/gtest.h>

#include "weft/tensor/movement.h"
#include "weft/tensor/reductions.h"
#include "weft/tensor/selection.h"

namespace weft {
namespace {

/// Nothing is computed: the dtype says whether the numbers fit.
TEST(LongAxes, PositionsAreAsWideAsTheyHaveToBe) {
  for (const auto& [size, dtype] :
       {std::pair{int64_t{INT32_MAX}, DType::I32}, std::pair{int64_t{INT32_MAX} + 1, DType::I64}}) {
    const Tensor x = Tensor::zeros({size}, DType::I8);
    EXPECT_EQ(x.argmax().dtype(), dtype);
    EXPECT_EQ(x.argmin(0).dtype(), dtype);
    EXPECT_EQ((x == 0).sum().dtype(), dtype);
    EXPECT_EQ(cummax(x, 0).positions.dtype(), dtype);
    EXPECT_EQ(nonzero(x, 1).dtype(), dtype);
  }
  // Of the whole, not of one axis.
  EXPECT_EQ(Tensor::zeros({int64_t{1} << 20, int64_t{1} << 12}, DType::I8).argmax().dtype(),
            DType::I64);
}

/// From 2^24 on an f32 no longer grows by ones; every running sum here is an f32.
TEST(LongAxes, SumsOfOnesGoOn) {
  for (const int64_t extra : {int64_t{1} << 20, int64_t{(1 << 20) + 39}}) {
    const int64_t n = (int64_t{1} << 24) + extra;
    const Tensor ones = Tensor::ones({n}).contiguous(), running = ones.cumsum(0);
    EXPECT_EQ(ones.sum().item<double>(), static_cast<double>(static_cast<float>(n)));
    EXPECT_EQ(running.index({Index(n - 1)}).item<double>(),
              static_cast<double>(static_cast<float>(n)));
    EXPECT_EQ(running.index({Index(70'000)}).item<double>(), 70'001);
  }
}

}  // namespace
}  // namespace weft
