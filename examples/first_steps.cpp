// Tensors are lazy: each line below only builds a graph; reading a value runs it as few kernels.
#include <cstdio>

#include "weft/weft.h"

using namespace weft;

int main() {
  const Tensor a = Tensor::of({{1, 2}, {3, 4}}).cast(DType::F32);
  const Tensor b = Tensor::ones({2, 2});
  std::printf("sum of a + b: %g\n", (a + b).sum().item<double>());
  std::printf("a @ a:        %s\n", a.matmul(a).text().c_str());

  // Views share memory, as in NumPy.
  Tensor c = Tensor::zeros({2, 3});
  c.T()[0] += 5;
  std::printf("c:            %s\n", c.text().c_str());

  // Gradients are graphs too, so a gradient has gradients.
  Tensor x(3.0);
  x.requires_grad_();
  const Tensor first = (x * x * x).gradient({x})[0];
  const Tensor second = first.gradient({x})[0];
  std::printf("x^3 at 3:     slope %g, curvature %g\n", first.item<double>(),
              second.item<double>());
}
