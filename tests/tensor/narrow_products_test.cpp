// Products of 8-bit integers and bf16, which machines have operations of their own for.
#include "tests/tensor/near.h"
#include "tests/tensor/tensor_test.h"
#include "weft/device/device.h"

namespace weft {
namespace {

/// On the machine's own device, whatever operations it has.
class NarrowProducts : public ::testing::Test {
  Context context_{Options::from_environment()};
  ContextScope scope_{context_};
};

Tensor random_bytes(const Dims& shape, DType dtype) {
  const int64_t low = dtype == DType::U8 ? 0 : -128;
  return Tensor::randint(low, low + 256, shape).cast(dtype).realize();
}

struct Sizes {
  Dims a, b;
};

// Odd sums, sums that are shorter than a word, batches, weights that lie along the sum.
TEST_F(NarrowProducts, IntegersAreExact) {
  const Sizes all[] = {{{160, 64}, {64, 144}},       {{129, 67}, {67, 131}},
                       {{130, 3}, {3, 140}},         {{3, 128, 40}, {40, 128}},
                       {{2, 133, 35}, {2, 35, 150}}, {{256, 1030}, {1030, 129}},
                       {{192, 96}, {96, 256}},       {{2, 131, 200}, {200, 160}}};
  for (const auto& [m, n] : all)
    for (DType left : {DType::U8, DType::I8})
      for (DType right : {DType::U8, DType::I8}) {
        const Tensor a = random_bytes(m, left), b = random_bytes(n, right);
        const Tensor sums = a.cast(DType::I32).matmul(b.cast(DType::I32));
        const Tensor want = a.cast(DType::I64).matmul(b.cast(DType::I64)).cast(DType::I32);
        EXPECT_TRUE((sums == want).all().item<bool>())
            << m.text() << " " << name(left) << " by " << n.text() << " " << name(right);
        // The same operands lying the other way round.
        const Tensor at = a.transpose(-1, -2).contiguous().realize().transpose(-1, -2);
        const Tensor bt = b.transpose(-1, -2).contiguous().realize().transpose(-1, -2);
        EXPECT_TRUE((at.cast(DType::I32).matmul(bt.cast(DType::I32)) == want).all().item<bool>());
      }
}

TEST_F(NarrowProducts, Bf16SumsAreFloats) {
  for (const auto& [k, n] : {std::pair{64, 150}, {67, 160}, {1500, 160}, {4500, 128}}) {
    const Tensor a = Tensor::randn({140, k}).cast(DType::BF16).realize();
    const Tensor b = Tensor::randn({k, n}).cast(DType::BF16).realize();
    const Tensor sums = a.cast(DType::F32).matmul(b.cast(DType::F32)).cast(DType::F64);
    const Tensor want = a.cast(DType::F64).matmul(b.cast(DType::F64));
    const Tensor sizes = a.abs().cast(DType::F64).matmul(b.abs().cast(DType::F64));
    EXPECT_LE(((sums - want).abs() / sizes).max().item<double>(), static_cast<double>(k) * 0x1p-24);
  }
}

// Epilogues, several readers, gradients.
TEST_F(NarrowProducts, InsideOfMore) {
  const Tensor a = random_bytes({150, 90}, DType::I8), b = random_bytes({90, 160}, DType::I8);
  const auto layer = [&](DType run) {
    const Tensor y = a.cast(run).matmul(b.cast(run)).cast(DType::F32) * 0.01;
    return (y.relu() + y.sum(0)).sum(1).contiguous();
  };
  const Tensor exact = layer(DType::I64);
  EXPECT_LT(((layer(DType::I32) - exact).abs() / exact.abs()).max().item<double>(), 1e-5);
  Tensor w = Tensor::randn({128, 128}).cast(DType::BF16).realize();
  w.requires_grad_();
  const Tensor x = Tensor::randn({128, 128}).cast(DType::BF16).realize();
  const Tensor gradient = x.matmul(w).sum().gradient({w})[0].cast(DType::F32);
  const Tensor want = x.cast(DType::F32).sum(0).unsqueeze(1).expand({128, 128});
  EXPECT_LT((gradient - want).abs().max().item<double>(), 0.01 * want.abs().max().item<double>());
}

/// Few rows, so that operands are laid out for the sake of the weights alone: captured calls, which
/// know that these do not change, against the same step by step.
TEST_F(NarrowProducts, WithConstantWeights) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::I8, DType::U8})
    for (const int64_t n : {1, 2, 5, 16})
      for (const auto& [k, m] : {std::pair<int64_t, int64_t>{64, 48}, {100, 32}, {16, 130}}) {
        const DType sums = is_float(dtype) ? DType::F32 : DType::I32;
        const auto numbers = [&](const Dims& shape) {
          return Tensor::randint(dtype == DType::U8 ? 0 : -9, 10, shape).cast(dtype).realize();
        };
        const Tensor x = numbers({n, k});
        Tensor w = numbers({k, m}), turned = numbers({m, k}), bias = numbers({m});
        const auto layers = [&](const Tensor& a) {
          const Tensor b = bias.cast(sums) * 3;
          return std::pair(a.cast(sums).matmul(w.cast(sums)) + b,
                           a.cast(sums).matmul(turned.cast(sums).transpose(0, 1)) - b);
        };
        auto captured = jit(layers);
        for (int call = 0; call < 5; ++call) {
          if (call == 4) turned.assign(numbers({m, k})), w.assign(numbers({k, m})).realize();
          const auto want = layers(x), got = captured(x);
          EXPECT_TRUE((got.first == want.first).all().item<bool>() &&
                      (got.second == want.second).all().item<bool>())
              << name(dtype) << " " << n << " by " << k << " by " << m << ", call " << call;
        }
      }
}

TEST_F(NarrowProducts, ConvolutionsWithConstantWeights) {
  const Tensor x = Tensor::randint(-9, 10, {2, 3, 9, 9}).cast(DType::F32).realize();
  const Tensor w = Tensor::randint(-9, 10, {16, 3, 3, 3}).cast(DType::F32).realize();
  auto captured = jit([&](const Tensor& a) { return a.conv2d(w).relu(); });
  for (int call = 0; call < 4; ++call)
    EXPECT_TRUE((captured(x + call) == (x + call).conv2d(w).relu()).all().item<bool>());
}

}  // namespace
}  // namespace weft
