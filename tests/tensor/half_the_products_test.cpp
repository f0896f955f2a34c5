// Convolutions that are computed in half the products (schedule/winograd.cpp), and their gradients,
// beside sums of all products.
#include <gtest/gtest.h>

#include "weft/base/context.h"
#include "weft/weft.h"

namespace weft {
namespace {

constexpr int64_t kChannels = 128, kRows = 8, kColumns = 16, kTaps = 3;
constexpr int64_t kPlaces = kRows * kColumns;

/// x convolved with w at one place of the result, with a border of zeros.
double convolved(const std::vector<float>& x, const std::vector<float>& w, int64_t at) {
  const int64_t column = at % kColumns, row = at / kColumns % kRows;
  const int64_t out = at / kPlaces % kChannels, image = at / kPlaces / kChannels;
  double sum = 0;
  for (int64_t in = 0; in < kChannels; ++in)
    for (int64_t k = 0; k < kTaps * kTaps; ++k) {
      const int64_t y = row + k / kTaps - 1, z = column + k % kTaps - 1;
      if (y < 0 || y >= kRows || z < 0 || z >= kColumns) continue;
      const int64_t pixel = (image * kChannels + in) * kPlaces + y * kColumns + z;
      const int64_t weight = (out * kChannels + in) * kTaps * kTaps + k;
      sum += static_cast<double>(x[static_cast<size_t>(pixel)]) * w[static_cast<size_t>(weight)];
    }
  return sum;
}

void expect_convolved(const Tensor& result, const Tensor& image, const Tensor& weight) {
  const auto y = result.to_vector<float>(), x = image.to_vector<float>(),
             w = weight.to_vector<float>();
  for (size_t at = 0; at < y.size(); at += 97)
    ASSERT_NEAR(y[at], convolved(x, w, static_cast<int64_t>(at)), 1e-4) << at;
}

TEST(HalfTheProducts, AreThoseOfAllProducts) {
  Context context(Options::from_environment());
  const ContextScope scope(context);
  Tensor::manual_seed(1);
  const Tensor x = Tensor::rand({8, kChannels, kRows, kColumns}).realize() - 0.5;
  const Tensor w = Tensor::rand({kChannels, kChannels, kTaps, kTaps}).realize() - 0.5;
  const Tensor above = Tensor::rand(x.dims()).realize() - 0.5;
  const Tensor y = x.conv2d(w, {}, {.padding = 1});
  expect_convolved(y, x, w);
  expect_convolved((y * above).sum().gradient({x})[0], above, w.transpose(0, 1).flip({2, 3}));
}

}  // namespace
}  // namespace weft
