// Pools, resizing, sampling, patches and augmentation: PyTorch's values.
#include "weft/tensor/image.h"

#include <cmath>

#include "tests/tensor/tensor_test.h"
#include "weft/tensor/pooling.h"

namespace weft {
namespace {

class Image : public TensorTest {};

Tensor counting(const Dims& shape) {
  return Tensor::arange(shape.product(), DType::F32).reshape(shape);
}

TEST_F(Image, MaximaAndWhereTheyWere) {
  const Tensor x = counting({1, 1, 4, 4});
  const auto [values, at] = max_pool2d_with_positions(x);
  EXPECT_EQ(shown(values), "f32 (1, 1, 2, 2) [5, 7, 13, 15]");
  EXPECT_EQ(shown(at), "i32 (1, 1, 2, 2) [5, 7, 13, 15]");
  EXPECT_EQ(shown(max_unpool2d(values, at)),
            "f32 (1, 1, 4, 4) [0, 0, 0, 0, 0, 5, 0, 7, 0, 0, 0, 0, 0, 13, 0, 15]");
  EXPECT_EQ(max_unpool2d(values, at, {2, 2}, {}, {5, 4}).dims().text(), "(1, 1, 5, 4)");
  const auto padded = max_pool2d_with_positions(-x, {3, 3}, {.stride = 2, .padding = 1});
  EXPECT_EQ(shown(padded.positions), "i32 (1, 1, 2, 2) [0, 1, 4, 5]");
  const auto dilated = max_pool2d_with_positions(x, {2, 2}, {.stride = 1, .dilation = 2});
  EXPECT_EQ(shown(dilated.positions), "i32 (1, 1, 2, 2) [10, 11, 14, 15]");
}

TEST_F(Image, PoolModes) {
  const Tensor x = counting({1, 1, 3, 3});
  EXPECT_EQ(shown(x.max_pool2d({2, 2}, {.ceil_mode = true})), "f32 (1, 1, 2, 2) [4, 5, 7, 8]");
  EXPECT_EQ(shown(x.avg_pool2d({2, 2}, {.ceil_mode = true})), "f32 (1, 1, 2, 2) [2, 3.5, 6.5, 8]");
  EXPECT_EQ(shown(x.avg_pool2d({2, 2}, {.stride = 2, .padding = 1, .count_include_pad = false})),
            "f32 (1, 1, 2, 2) [0, 1.5, 4.5, 6]");
  EXPECT_EQ(shown(x.max_pool2d({2, 2}, {.stride = 1, .dilation = 2})), "f32 (1, 1, 1, 1) [8]");
  // Padded after the last axis only, and cut.
  EXPECT_EQ(shown(x.max_pool2d({2, 2}, {.stride = 2, .padding = {0, 1, 0, -1}})),
            "f32 (1, 1, 1, 2) [4, 5]");
  expect_near(lp_pool2d(x, 2, {3, 3}), {std::sqrt(204.0)});
  EXPECT_EQ(shown(adaptive_avg_pool(x, {2, 2})), "f32 (1, 1, 2, 2) [2, 3, 5, 6]");
  EXPECT_EQ(shown(adaptive_max_pool(x, {2, 1})), "f32 (1, 1, 2, 1) [5, 8]");
  EXPECT_EQ(shown(adaptive_avg_pool(counting({1, 1, 7}), {3})), "f32 (1, 1, 3) [1, 3, 5]");
}

TEST_F(Image, Resizing) {
  const Tensor x = Tensor::of({1.0f, 2.0f, 4.0f, 8.0f}).reshape({1, 1, 4});
  EXPECT_EQ(shown(interpolate(x, {6})), "f32 (1, 1, 6) [1, 1, 2, 4, 4, 8]");
  EXPECT_EQ(shown(interpolate(x, {6}, Resize::NearestExact)), "f32 (1, 1, 6) [1, 2, 2, 4, 8, 8]");
  EXPECT_EQ(shown(interpolate(x, {2}, Resize::Linear)), "f32 (1, 1, 2) [1.5, 6]");
  EXPECT_EQ(shown(interpolate(x, {2}, Resize::Linear, true)), "f32 (1, 1, 2) [1, 8]");
  EXPECT_EQ(shown(interpolate(x, {2}, Resize::Area)), "f32 (1, 1, 2) [1.5, 6]");
  expect_near(interpolate(x, {6}, Resize::Cubic),
              {0.9131944, 1.3125, 2.3043981, 3.3831019, 6.1875, 8.3472222});
  const Tensor three = Tensor::of({1.0f, 2.0f, 4.0f}).reshape({1, 1, 3});
  expect_near(interpolate(three, {5}, Resize::Linear), {1, 1.4, 2, 3.2, 4});
  expect_near(interpolate(three, {5}, Resize::Linear, true), {1, 1.5, 2, 3, 4});
  EXPECT_EQ(shown(interpolate(Tensor::of({{1, 2}, {3, 4}}), {3, 4})),
            "i32 (3, 4) [1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4]");
  expect_near(interpolate(counting({1, 1, 2, 2}), {3, 3}, Resize::Linear, true),
              {0, 0.5, 1, 1, 1.5, 2, 2, 2.5, 3});
}

TEST_F(Image, Sampling) {
  const Tensor x = counting({1, 1, 2, 2});
  const Tensor corners = Tensor::of({{-1.0f, -1.0f}, {1.0f, 1.0f}}).reshape({1, 1, 2, 2});
  EXPECT_EQ(shown(grid_sample(x, corners)), "f32 (1, 1, 1, 2) [0, 0.75]");
  EXPECT_EQ(shown(grid_sample(x, corners, false, Outside::Zeros, true)), "f32 (1, 1, 1, 2) [0, 3]");
  EXPECT_EQ(shown(grid_sample(x, corners, false, Outside::Border)), "f32 (1, 1, 1, 2) [0, 3]");
  const Tensor middle = Tensor::zeros({1, 1, 1, 2});
  EXPECT_EQ(shown(grid_sample(x, middle)), "f32 (1, 1, 1, 1) [1.5]");
  const Tensor far = Tensor::of({2.0f, 0.5f}).reshape({1, 1, 1, 2});
  // Column 2.5 mirrored at 1.5 is 0.5; row 1.
  EXPECT_EQ(shown(grid_sample(x, far, false, Outside::Reflection)), "f32 (1, 1, 1, 1) [2.5]");
  EXPECT_EQ(shown(grid_sample(x, far, true)), "f32 (1, 1, 1, 1) [0]");
  EXPECT_EQ(shown(grid_sample(x, far, true, Outside::Border)), "f32 (1, 1, 1, 1) [3]");
  // Place 449.5, which is no number of bf16: half of 1 and half of 0.
  const Tensor stripes = (Tensor::arange(600) % 2).cast(DType::BF16).reshape({1, 1, 1, 600});
  const Tensor place = Tensor::of({0.5f, 0.0f}).cast(DType::BF16).reshape({1, 1, 1, 2});
  EXPECT_EQ(shown(grid_sample(stripes, place)), "bf16 (1, 1, 1, 1) [0.5]");
}

TEST_F(Image, Patches) {
  const Tensor x = counting({1, 1, 3, 3});
  EXPECT_EQ(shown(unfold(x, {2, 2})),
            "f32 (1, 4, 4) [0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8]");
  EXPECT_EQ(shown(fold(Tensor::ones({1, 4, 4}), {3, 3}, {2, 2})),
            "f32 (1, 1, 3, 3) [1, 2, 1, 2, 4, 2, 1, 2, 1]");
  EXPECT_EQ(unfold(counting({2, 3, 5, 5}), {3, 3}, {.stride = 2}).dims().text(), "(2, 27, 4)");
}

TEST_F(Image, Augmentation) {
  const Tensor x = counting({4, 1, 4, 4});
  EXPECT_EQ(shown(center_crop(x[0], 2, 2)), "f32 (1, 2, 2) [5, 6, 9, 10]");
  const std::vector<double> cropped = values(random_crop(x, 2, 3));
  for (size_t n = 0; n < 4; ++n) {
    const double* part = cropped.data() + 6 * n;
    EXPECT_EQ(part[1] - part[0], 1);
    EXPECT_EQ(part[3] - part[0], 4);
    EXPECT_GE(part[0], 16.0 * static_cast<double>(n));
    EXPECT_LT(part[5], 16.0 * static_cast<double>(n + 1));
  }
  EXPECT_EQ(values(random_flip(x, 1)), values(x.flip(-1)));
  EXPECT_EQ(values(random_flip(x, 0)), values(x));
  const auto [mixed, labels] = cutmix(x, Tensor::eye(4), 2);
  const std::vector<double> pixels = values(mixed), shares = values(labels);
  for (size_t n = 0; n < 4; ++n) {
    int own = 0;
    for (size_t i = 0; i < 16; ++i) own += static_cast<size_t>(pixels[16 * n + i]) / 16 == n;
    EXPECT_TRUE(own == 12 || own == 16);
    EXPECT_NEAR(shares[5 * n], own == 12 ? 0.75 : 1, 1e-6);
  }
}

}  // namespace
}  // namespace weft
