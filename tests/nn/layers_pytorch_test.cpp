// Convolutions, norms and pools against PyTorch: values, gradients, names; starting values of all.
#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/nn/pytorch.h"
#include "weft/nn/attention.h"
#include "weft/nn/layers.h"
#include "weft/nn/recurrent.h"
#include "weft/nn/sequential.h"

namespace weft::nn {
namespace {

TEST(LayersLikePyTorch, Convolutions) {
  expect_like_pytorch("conv1d", Conv1d(2, 3, 3, {.padding = 1}), {2, 2, 5});
  expect_like_pytorch("conv2d", Conv2d(2, 4, 3, {.groups = 2, .stride = 2, .padding = 1}),
                      {1, 2, 5, 4});
  const Ints dilation = {1, 2}, same = same_padding({2, 3}, dilation);
  expect_like_pytorch("conv2d_same", Conv2d(1, 1, {2, 3}, {.dilation = dilation, .padding = same}),
                      {1, 1, 4, 5});
  expect_like_pytorch("conv3d", Conv3d(1, 2, 2, {.stride = 2}), {1, 1, 4, 2, 3});
}

TEST(LayersLikePyTorch, TransposedConvolutions) {
  expect_like_pytorch("conv_transpose1d",
                      ConvTranspose1d(2, 3, 3, {.stride = 2, .output_padding = 1}), {1, 2, 3});
  expect_like_pytorch(
      "conv_transpose2d",
      ConvTranspose2d(2, 2, 3, {.groups = 2, .stride = 2, .dilation = 2, .padding = 1}),
      {1, 2, 2, 3});
  expect_like_pytorch("conv_transpose3d", ConvTranspose3d(1, 1, 2), {1, 1, 2, 1, 2});
}

TEST(LayersLikePyTorch, BatchNorm) {
  {
    const TrainingScope training;
    expect_like_pytorch("batch_norm_train", BatchNorm(2), {3, 2, 2, 1});
  }
  expect_like_pytorch("batch_norm", BatchNorm(3), {2, 3});
  expect_like_pytorch("batch_norm_untracked", BatchNorm(2, 1e-5, 0.1, false, false), {4, 2});
}

TEST(LayersLikePyTorch, OtherNorms) {
  expect_like_pytorch("instance_norm", InstanceNorm(2, 1e-5, true), {2, 2, 2, 3});
  expect_like_pytorch("instance_norm_plain", InstanceNorm(2), {2, 2, 3});
  expect_like_pytorch("layer_norm", LayerNorm({2, 3}), {2, 2, 3});
  expect_like_pytorch("group_norm", GroupNorm(2, 4), {2, 4, 2});
  expect_like_pytorch("rms_norm", RMSNorm(4), {2, 4});
}

TEST(LayersLikePyTorch, Pools) {
  expect_like_pytorch("max_pool2d", MaxPool2d(3, {.stride = 2, .padding = 1}), {1, 1, 5, 4});
  expect_like_pytorch("avg_pool1d", AvgPool1d(2, {.stride = 1}), {1, 2, 4});
  expect_like_pytorch("avg_pool2d", AvgPool2d({2, 3}, {.stride = {2, 1}, .padding = {0, 1}}),
                      {1, 1, 4, 4});
  expect_like_pytorch("adaptive_avg", AdaptiveAvgPool2d({2, 3}), {1, 2, 4, 5});
  expect_like_pytorch("adaptive_max", AdaptiveMaxPool1d(3), {1, 2, 7});
}

// All within +-bound, and not within a smaller one.
void expect_uniform(const Tensor& t, double bound) {
  const double most = t.abs().max().item<double>();
  EXPECT_LE(most, bound);
  EXPECT_GT(most, 0.8 * bound);
}

TEST(LayersLikePyTorch, StartingValues) {
  Tensor::manual_seed(2);
  const Linear linear(9, 40);
  expect_uniform(linear.weight, 1.0 / 3);
  expect_uniform(linear.bias, 1.0 / 3);
  const Conv2d conv(8, 20, 3, {.groups = 2});
  expect_uniform(conv.weight, 1.0 / 6);
  expect_uniform(conv.bias, 1.0 / 6);
  const ConvTranspose2d transpose(20, 8, 3, {.groups = 2});
  expect_uniform(transpose.weight, 1.0 / 6);
  expect_uniform(transpose.bias, 1.0 / 6);
  const LSTMCell cell(3, 16);
  for (const Tensor& t : {cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh}) {
    expect_uniform(t, 0.25);
  }
  const MultiheadAttention attention(16, 2);  // Glorot of (48, 16)
  expect_uniform(attention.in_proj_weight, std::sqrt(6.0 / 64));
  expect_uniform(attention.out_proj.weight, 0.25);
  expect_close(attention.in_proj_bias, std::vector<double>(48, 0), 0);
  expect_close(attention.out_proj.bias, std::vector<double>(16, 0), 0);
}

// LayerNorm over the last axis is PyTorch's; this is the same with the channels moved.
TEST(Layers, LayerNorm2dNormalisesChannelsOfEachPlace) {
  LayerNorm2d images(3);
  LayerNorm rows({3});
  fill(images);
  fill(rows);
  const Tensor x = some_tensor({2, 3, 2, 2});
  const Tensor wanted = rows(x.permute({0, 2, 3, 1})).permute({0, 3, 1, 2});
  expect_close(images(x), wanted.to_vector<double>());
}

TEST(Layers, NormsWithoutWeights) {
  EXPECT_TRUE(parameters(*std::make_unique<RMSNorm>(3, 1e-6, false)).empty());
  EXPECT_TRUE(parameters(*std::make_unique<LayerNorm2d>(3, 1e-5, false)).empty());
  EXPECT_TRUE(state_dict(*std::make_unique<BatchNorm>(2, 1e-5, 0.1, false, false)).empty());
}

TEST(Layers, SamePaddingKeepsSizes) {
  for (const int64_t kernel : {1, 2, 3, 4}) {
    for (const int64_t dilation : {1, 2}) {
      Conv2d layer(
          1, 1, kernel,
          {.dilation = dilation, .padding = same_padding({kernel, kernel}, {dilation, dilation})});
      EXPECT_EQ(layer(Tensor::ones({1, 1, 7, 8})).shape(), (std::vector<int64_t>{1, 1, 7, 8}));
    }
  }
}

TEST(Layers, SmallOnes) {
  Sequential net(Identity(), Flatten(), Linear(6, 2), Dropout(0.5));
  EXPECT_EQ(net(Tensor::ones({3, 2, 3})).shape(), (std::vector<int64_t>{3, 2}));
  EXPECT_EQ(Flatten(0, 1)(Tensor::ones({3, 2, 3})).shape(), (std::vector<int64_t>{6, 3}));
  EXPECT_EQ(parameters(net).size(), 2u);
}

TEST(Layers, NewOnesRefuseWhatDoesNotFit) {
  EXPECT_ERROR(Conv1d(1, 1, {3, 3}), "the kernel has 2 numbers; give one, or 1");
  EXPECT_ERROR(ConvTranspose2d(2, 3, 3, {.groups = 2}), "got 2 and 3, and 2 groups");
  EXPECT_ERROR(ConvTranspose2d(0, 3, 3), "in and out must be at least 1, not 0");
  EXPECT_ERROR(same_padding({3, 3}, {1, 1, 1}), "dilation has 3 numbers; give one, or 2");
  EXPECT_ERROR(InstanceNorm(3)(Tensor::ones({2, 3})), "of 3 axes or more, got shape (2, 3)");
  EXPECT_ERROR(InstanceNorm(3)(Tensor::ones({2, 4, 5})), "needs an input (n, 3, ...)");
  EXPECT_ERROR(LayerNorm2d(3)(Tensor::ones({2, 4, 5, 5})), "needs an input (n, 3, ...)");
  EXPECT_ERROR(AdaptiveAvgPool2d(2)(Tensor::ones({3})), "fewer axes than the 2 to pool");
  EXPECT_ERROR(AdaptiveMaxPool1d(0)(Tensor::ones({3})), "must be at least 1, not 0");
}

}  // namespace
}  // namespace weft::nn
