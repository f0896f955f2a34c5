#include "weft/tensor/custom_kernel.h"

#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/tensor/near.h"
#include "weft/base/context.h"
#include "weft/eval/evaluate.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/linalg.h"

namespace weft {
namespace {

Tensor sample32(const Dims& shape, uint64_t seed) { return sample(shape, seed, DType::F32); }
void expect_close(const Tensor& a, const Tensor& b, const std::string& what) {
  expect_near(a, b, what, 1e-5);
}

/// a @ b for (m, k) and (k, n).
void write_product(KernelWriter& k) {
  const int64_t m = k.output_shape(0)[0].max(), n = k.output_shape(0)[1].max();
  const auto i = k.range(m), j = k.range(n), l = k.range(k.input_shape(0)[1].max());
  k.store(0, {i, j}, k.sum(k.load(0, {i, l}) * k.load(1, {l, j}), {l}));
}

Tensor product(const Tensor& a, const Tensor& b) {
  return custom_kernel("my_product", {a, b}, {{{a.dim(0), b.dim(1)}}}, write_product,
                       [](const Tensors& in, const Tensors&, const Tensors& up) {
                         return Tensors{up[0].matmul(in[1].T()), in[0].T().matmul(up[0])};
                       })[0];
}

TEST(CustomKernel, ComputesWhatItSays) {
  const Tensor a = sample32({7, 33}, 1), b = sample32({33, 20}, 2);
  expect_close(product(a, b), a.matmul(b), "product");
  // What is before and after it stays lazy, and is fused among itself.
  expect_close((product(a.relu(), b * 2 + 1) - 1).exp().sum(),
               (a.relu().matmul(b * 2 + 1) - 1).exp().sum(), "within an expression");
}

TEST(CustomKernel, HasTheGradientItIsGiven) {
  const Tensor a = sample32({4, 5}, 1), b = sample32({5, 6}, 2);
  const Tensors got = product(a, b).tanh().sum().gradient({a, b});
  const Tensors want = a.matmul(b).tanh().sum().gradient({a, b});
  for (size_t i = 0; i < 2; ++i) expect_close(got[i], want[i], "gradient");
  const Tensor alone = custom_kernel("my_product", {a, b}, {{{4, 6}}}, write_product)[0];
  EXPECT_ERROR(alone.sum().gradient({a}), "this custom kernel has no gradient");
}

TEST(CustomKernel, IsBatchedAndScanned) {
  const Tensor a = sample32({3, 4, 5}, 1), b = sample32({5, 4}, 2);
  const Tensor got = vmap(of_two(product), {a, b}, {0, std::nullopt})[0];
  expect_close(got, a.matmul(b), "vmap");
  const auto loss = [&](const auto& f) { return f.sin().sum().gradient({a, b}); };
  const Tensors mine = loss(vmap(of_two(product), {a, b}, {0, std::nullopt})[0]);
  const Tensors plain = loss(a.matmul(b));
  for (size_t i = 0; i < 2; ++i) expect_close(mine[i], plain[i], "gradient of vmap");
  const ScanFunction body = [&](const Tensors& c, const Tensors& s) {
    return ScanResult{{product(product(c[0], s[0]), b)}, {}};
  };
  const Tensor x = sample32({2, 4}, 3);
  expect_close(scan(body, {x}, {a}).carried[0],
               x.matmul(a[0]).matmul(b).matmul(a[1]).matmul(b).matmul(a[2]).matmul(b), "scan");
}

TEST(CustomKernel, SeveralOutputsFoldsAndMasks) {
  const Tensor x = sample32({10}, 1);
  const Tensor classes = Tensor::of({0, 2, 2, 1, 0, 2, 7, -1, 1, 0});
  const Tensors out = custom_kernel(
      "histogram", {x, classes}, {{{3}}, {{3}, DType::I32}, {{12}}}, [](KernelWriter& k) {
        const auto i = k.range(10), j = k.range(12);
        const auto raw = k.load(1, {i});
        const auto c = k.position(raw, 3);
        const auto inside = (raw >= 0) & (raw < 3);
        k.store_if(inside, 0, {c}, k.load(0, {i}), Fold::Add);
        k.store_if(inside, 1, {c}, 1, Fold::Add);
        k.store(2, {j}, k.where(j % 2 == 0, k.load(0, {j / 2 - 1}), -1));
      });
  expect_close(out[0],
               Tensor::zeros({3}).scatter(0, classes.clamp(0, 3), x, Fold::Add) -
                   Tensor::zeros({3}).scatter(0, classes.where(classes, 0) * 0, x * (classes < 0),
                                              Fold::Add),
               "sums");
  EXPECT_EQ(out[1].to_vector<int>(), (std::vector<int>{3, 2, 3}));
  std::vector<float> wanted;
  const auto values = x.to_vector<float>();
  for (int j = 0; j < 12; ++j)
    wanted.push_back(j % 2 ? -1 : j < 2 ? 0 : values[static_cast<size_t>(j / 2 - 1)]);
  EXPECT_EQ(out[2].to_vector<float>(), wanted);
}

TEST(CustomKernel, WhatIsNotWrittenIsZero) {
  const Tensor y = custom_kernel("holes", {}, {{{3, 4}}}, [](KernelWriter& k) {
    const auto i = k.range(3);
    k.store(0, {i, i}, 5);
  })[0];
  EXPECT_EQ(y.to_vector<int>(), (std::vector<int>{5, 0, 0, 0, 0, 5, 0, 0, 0, 0, 5, 0}));
}

TEST(CustomKernel, IsWhatTheOracleSays) {
  const Tensor a = sample32({7, 9}, 1), b = sample32({9, 5}, 2);
  const Tensor y = product(a, b);
  eval::Inputs inputs;
  for (const Tensor& t : {a, b})
    inputs.buffers[buffer_id(t.node())] =
        eval::Array::of(DType::F32, t.shape(), t.to_vector<double>());
  const auto want = eval::evaluate(y.node(), inputs).doubles(), got = y.to_vector<double>();
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(want[i], got[i], 1e-5);
}

TEST(CustomKernel, SaysWhatIsWrong) {
  const Tensor x = sample32({4, 5}, 1);
  const auto with = [&](const std::function<void(KernelWriter&)>& write) {
    custom_kernel("mine", {x}, {{{4}}}, write);
  };
  EXPECT_ERROR(with([](KernelWriter& k) { k.store(0, {k.range(4)}, k.load(0, {0})); }),
               "load: 1 positions for a tensor of shape (4, 5)");
  EXPECT_ERROR(with([](KernelWriter& k) { k.store(1, {0}, 0); }), "output 1 of 1");
  EXPECT_ERROR(with([](KernelWriter&) {}), "nothing is stored to output 0");
  EXPECT_ERROR(with([](KernelWriter& k) { k.store(0, {k.load(0, {0, 0})}, 0); }),
               "position 0 is f32: use range()s, or position() for loaded integers");
  EXPECT_ERROR(with([](KernelWriter& k) { k.store(0, {0}, k.load(0, {0, 0}) & 1); }), "and of f32");
  EXPECT_ERROR(with([](KernelWriter& k) {
                 const auto i = k.range(4);
                 k.store(0, {i}, k.sum(k.load(0, {i, 0}), {i}));
               }),
               "custom_kernel");
  EXPECT_ERROR(custom_kernel("no name", {x}, {{{4}}}, [](KernelWriter&) {}), "is no name");
  EXPECT_ERROR(custom_kernel("mine", {x}, {}, [](KernelWriter&) {}), "has no output");
}

/// What is inside of kernels and given gradients is not realized by itself.
TEST(CustomKernel, IsReplayedAsAreGivenGradients) {
  const auto write = [](KernelWriter& k) {
    const KernelNumber i = k.range(3);
    k.store(0, {i}, k.load(0, {i}) * 2);
  };
  auto f = jit([&](const Tensor& x) {
    const Tensor twice = custom_kernel("twice", {x}, {{{3}, DType::F32}}, write)[0];
    return twice + linalg::eig(Tensor::eye(3) * x).first.sum(-1);
  });
  for (int i = 0; i < 4; ++i) {
    const auto at = static_cast<float>(i);
    const std::vector<float> got = f(Tensor::of({at, at + 1, at + 2})).to_vector<float>();
    float sum = 0, expected = 0;
    for (int k = 0; k < 3; ++k) sum += got[static_cast<size_t>(k)], expected += 3 * (at + k);
    EXPECT_NEAR(sum, expected, 1e-4) << "call " << i;
  }
}

}  // namespace
}  // namespace weft
