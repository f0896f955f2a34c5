// A program in C++20 that uses an installed weft: layers, linear algebra, a file, a captured
// function.
#include <weft/io/tensors.h>
#include <weft/nn/layers.h>
#include <weft/nn/optim.h>
#include <weft/tensor/linalg.h>
#include <weft/weft.h>

#include <cmath>
#include <cstdio>

int main() {
  using weft::Tensor;
  Tensor::manual_seed(1);
  const weft::nn::Linear layer(3, 2);
  weft::realize({layer.weight, layer.bias});
  auto forward = weft::jit([&](const Tensor& x) { return layer(x).relu().sum(); });
  float sum = 0;
  for (int i = 0; i < 3; ++i) sum = forward(Tensor::ones({4, 3})).item<float>();
  const Tensor a = Tensor::of({{4.f, 1.f}, {1.f, 3.f}});
  const Tensor one = a.matmul(weft::linalg::inv(a));
  const bool identity = one.isclose(Tensor::eye(2), 1e-5, 1e-6).all().item<bool>();
  std::printf("c++20: sum %.3f, %zu kernels, identity %d\n", sum, forward.kernels(), identity);
  return identity && std::isfinite(sum) && forward.kernels() > 0 ? 0 : 1;
}
