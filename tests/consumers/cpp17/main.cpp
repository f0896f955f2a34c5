// A program in C++17 that uses an installed weft: a least-squares fit by gradient descent,
// captured.
#include <cmath>
#include <cstdio>
#include <weft/c/weft.hpp>

namespace wt = weft::c;

int main() {
  const wt::Context context;
  const wt::Tensor x = context.of<float>({0, 1, 2, 3}, {4});
  wt::Tensor slope = context.zeros({1}).requires_grad();
  wt::Program step(context, [&](const std::vector<wt::Tensor>& in) {
    const wt::Tensor error = in[0] * slope - in[1], loss = wt::apply("mean", error * error);
    slope.zero_grad();
    loss.backward();
    slope.assign(wt::apply("detach", slope) - 0.1 * slope.grad());
    return std::vector<wt::Tensor>{wt::apply("detach", loss)};
  });
  float loss = 0;
  for (int i = 0; i < 30; ++i) loss = step({x, x * 3})[0].item<float>();
  const float found = slope.to_vector<float>()[0];
  std::printf("c++17: slope %.4f, loss %.2g, %zu kernels\n", found, loss, step.kernels());
  return std::fabs(found - 3) < 1e-3 && step.kernels() > 0 ? 0 : 1;
}
