#include "weft/nn/layers.h"
#include "weft/base/format.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/io/scratch_dir.h"
#include "tests/nn/close.h"
#include "weft/nn/sequential.h"

namespace weft::nn {
namespace {

using Doubles = std::vector<double>;
Doubles values(const Tensor& t) { return t.to_vector<double>(); }

TEST(Layers, Linear) {
  Linear layer(3, 2);
  EXPECT_EQ(layer.weight.shape(), (std::vector<int64_t>{2, 3}));
  const Tensor x = some_tensor({4, 3});
  const Doubles in = values(x), w = values(layer.weight), b = values(layer.bias);
  Doubles wanted;
  for (size_t n = 0; n < 4; ++n) {
    for (size_t o = 0; o < 2; ++o) {
      double sum = b[o];
      for (size_t i = 0; i < 3; ++i) sum += in[n * 3 + i] * w[o * 3 + i];
      wanted.push_back(sum);
    }
  }
  expect_close(layer(x), wanted);
  for (const double weight : w) EXPECT_LE(std::abs(weight), 1 / std::sqrt(3.0));
  EXPECT_FALSE(Linear(3, 2, false).bias.defined());
}

TEST(Layers, Conv2dWithStridePaddingAndGroups) {
  Conv2d layer(4, 6, {3, 2}, {.groups = 2, .stride = {2, 1}, .padding = {1, 1}});
  const Tensor x = some_tensor({2, 4, 5, 4});
  const Doubles in = values(x), w = values(layer.weight), b = values(layer.bias);
  const Tensor y = layer(x);
  ASSERT_EQ(y.shape(), (std::vector<int64_t>{2, 6, 3, 5}));
  Doubles wanted;
  for (int n = 0; n < 2; ++n) {
    for (int o = 0; o < 6; ++o) {
      for (int r = 0; r < 3; ++r) {
        for (int c = 0; c < 5; ++c) {
          double sum = b[static_cast<size_t>(o)];
          for (int i = 0; i < 2; ++i) {
            for (int kr = 0; kr < 3; ++kr) {
              for (int kc = 0; kc < 2; ++kc) {
                const int row = r * 2 + kr - 1, column = c + kc - 1, channel = o / 3 * 2 + i;
                if (row < 0 || row >= 5 || column < 0 || column >= 4) continue;
                sum += in[static_cast<size_t>(((n * 4 + channel) * 5 + row) * 4 + column)] *
                       w[static_cast<size_t>(((o * 2 + i) * 3 + kr) * 2 + kc)];
              }
            }
          }
          wanted.push_back(sum);
        }
      }
    }
  }
  expect_close(y, wanted);
}

TEST(Layers, ConvOfOneAxis) {
  EXPECT_EQ(Conv(2, 3, {5})(some_tensor({1, 2, 9})).shape(), (std::vector<int64_t>{1, 3, 5}));
}

// Mean and biased variance of channel c of (n, channels, rest).
std::pair<double, double> moments(const Doubles& x, size_t n, size_t channels, size_t rest,
                                  size_t c) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = 0; j < rest; ++j) {
      const double value = x[(i * channels + c) * rest + j];
      sum += value;
      squares += value * value;
    }
  }
  const double count = static_cast<double>(n * rest), mean = sum / count;
  return {mean, squares / count - mean * mean};
}

TEST(Layers, BatchNormTrainsByTheBatchAndMovesTheRunningStatistics) {
  BatchNorm layer(3);
  layer.weight.assign(some_tensor({3}, 7));
  const Tensor x = some_tensor({4, 3, 2, 2});
  const Doubles in = values(x), w = values(layer.weight);
  Tensor y;
  {
    const TrainingScope training;
    y = layer(x);
  }
  Doubles wanted(in.size()), mean(3), var(3);
  for (size_t c = 0; c < 3; ++c) {
    const auto [m, v] = moments(in, 4, 3, 4, c);
    mean[c] = 0.1 * m;
    var[c] = 0.9 + 0.1 * v * 16 / 15;
    for (size_t n = 0; n < 4; ++n) {
      for (size_t j = 0; j < 4; ++j) {
        const size_t at = (n * 3 + c) * 4 + j;
        wanted[at] = (in[at] - m) / std::sqrt(v + 1e-5) * w[c];
      }
    }
  }
  expect_close(y, wanted, 1e-4);
  expect_close(layer.running_mean, mean);
  expect_close(layer.running_var, var);
  EXPECT_EQ(layer.num_batches_tracked.item<int64_t>(), 1);

  Doubles still(in.size());
  for (size_t at = 0; at < in.size(); ++at) {
    const size_t c = at / 4 % 3;
    still[at] = (in[at] - mean[c]) / std::sqrt(var[c] + 1e-5) * w[c];
  }
  expect_close(layer(x), still, 1e-4);
  EXPECT_EQ(layer.num_batches_tracked.item<int64_t>(), 1);
}

// The gradient of a normalisation sums to zero per channel and is orthogonal to its output.
TEST(Layers, BatchNormGradient) {
  BatchNorm layer(2);
  Tensor x = some_tensor({6, 2});
  x.requires_grad_();
  const TrainingScope training;
  (layer(x) * some_tensor({6, 2}, 5)).sum().backward();
  expect_close(x.grad().sum({0}), {0, 0}, 1e-4);
  expect_close((x.grad() * x.detach()).sum({0}), {0, 0}, 1e-4);
}

TEST(Layers, LayerNormAndRmsNormAndGroupNorm) {
  const Tensor x = some_tensor({2, 4, 3});
  const Doubles in = values(x);
  Doubles layer(24), rms(24), group(24);
  for (size_t row = 0; row < 8; ++row) {
    const auto [m, v] =
        moments(Doubles(in.begin() + static_cast<long>(row) * 3, in.end()), 1, 1, 3, 0);
    for (size_t j = 0; j < 3; ++j) {
      layer[row * 3 + j] = (in[row * 3 + j] - m) / std::sqrt(v + 1e-5);
      rms[row * 3 + j] = in[row * 3 + j] / std::sqrt(v + m * m + 1e-6);
    }
  }
  for (size_t g = 0; g < 4; ++g) {
    const auto [m, v] =
        moments(Doubles(in.begin() + static_cast<long>(g) * 6, in.end()), 1, 1, 6, 0);
    for (size_t j = 0; j < 6; ++j) group[g * 6 + j] = (in[g * 6 + j] - m) / std::sqrt(v + 1e-5);
  }
  LayerNorm norm({3});
  expect_close(norm(x), layer, 1e-4);
  // Either may be taken away, and the other one counts.
  Doubles more = layer;
  for (double& y : more) y = y * 2 + 1;
  norm.weight = norm.weight * 2;
  norm.bias = norm.bias + 1;
  expect_close(norm(x), more, 1e-4);
  norm.bias = Tensor();
  for (double& y : more) y -= 1;
  expect_close(norm(x), more, 1e-4);
  norm.weight = Tensor();
  norm.bias = Tensor::full({3}, 5.f);
  for (size_t k = 0; k < more.size(); ++k) more[k] = layer[k] + 5;
  expect_close(norm(x), more, 1e-4);
  expect_close(RMSNorm(3)(x), rms, 1e-4);
  expect_close(GroupNorm(2, 4)(x), group, 1e-4);
  EXPECT_ERROR(LayerNorm({4})(x), "the last axes of an input of shape (2, 4, 3) must be (4,)");
}

TEST(Layers, EmbeddingTakesRows) {
  Embedding layer(5, 2);
  const Doubles w = values(layer.weight);
  const Tensor rows = layer(Tensor::of({{4, 0}, {2, 4}}));
  EXPECT_EQ(rows.shape(), (std::vector<int64_t>{2, 2, 2}));
  expect_close(rows, {w[8], w[9], w[0], w[1], w[4], w[5], w[8], w[9]}, 0);
  rows.sum().backward();
  expect_close(layer.weight.grad(), {1, 1, 0, 0, 1, 1, 0, 0, 2, 2});
}

TEST(Layers, DropoutOnlyWhileTraining) {
  const Tensor x = Tensor::ones({1000});
  const Dropout layer(0.25);
  EXPECT_EQ(layer(x).sum().item<float>(), 1000);
  const TrainingScope training;
  const Doubles y = values(layer(x));
  const auto kept =
      static_cast<double>(std::count_if(y.begin(), y.end(), [](double v) { return v != 0; }));
  EXPECT_NEAR(kept, 750, 75);
  for (const double v : y) EXPECT_TRUE(v == 0 || std::abs(v - 1 / 0.75) < 1e-6);
}

TEST(Layers, RefuseSizesThatMakeNoSense) {
  EXPECT_ERROR(Linear(0, 3), "in must be at least 1, not 0");
  EXPECT_ERROR(Conv2d(3, 4, {3, 3}, {.groups = 2}),
               "multiples of groups: got 4 and 3, and 2 groups");
  EXPECT_ERROR(Conv2d(3, 4, {3, 0}), "every kernel size must be at least 1, not 0");
  EXPECT_ERROR(GroupNorm(3, 4), "channels must be a multiple of groups: got 4 and 3");
  EXPECT_ERROR(BatchNorm(3)(Tensor::ones({3})),
               "needs an input (n, features, ...), got shape (3,)");
}

/// The line of this file that an Error names.
int line_of(FunctionRef<void()> f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(short_text(error.where()), strformat("layers_test.cpp:{}", error.where().line));
    return error.where().line;
  }
  return 0;
}

TEST(Layers, ErrorsNameTheLineThatCallsTheLayer) {
  EXPECT_EQ(line_of([] { Linear(0, 3); }), __LINE__);
  const Tensor wrong = Tensor::ones({2, 5});
  EXPECT_EQ(line_of([&] { Linear(3, 4)(wrong); }), __LINE__);
  Sequential net(Linear(3, 4));
  EXPECT_EQ(line_of([&] { net(wrong); }), __LINE__);
}

TEST(Sequential, AppliesInOrderAndNamesByPosition) {
  Sequential net(Linear(3, 4), [](const Tensor& x) { return x.relu(); }, Linear(4, 2));
  EXPECT_EQ(net(some_tensor({5, 3})).shape(), (std::vector<int64_t>{5, 2}));
  std::string names;
  for (const NamedTensor& named : state_dict(net)) names += named.name + " ";
  EXPECT_EQ(names, "0.weight 0.bias 2.weight 2.bias ");
}

}  // namespace
}  // namespace weft::nn
