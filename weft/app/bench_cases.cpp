#include "weft/app/bench_cases.h"

#include <numeric>

namespace weft {

int64_t BenchOperand::elements() const {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

Tensor BenchOperand::make() const {
  const Dims shape = dims;
  switch (fill) {
    case Fill::Normal: return Tensor::randn(shape).cast(dtype).realize();
    case Fill::Positive: return (Tensor::rand(shape) + 0.1).cast(dtype).realize();
    case Fill::Below: return Tensor::randint(0, below, shape).cast(dtype).realize();
    case Fill::Definite: break;
  }
  const Tensor x = Tensor::randn(shape), n = Tensor::eye(dims.back()) * dims.back();
  return (x.matmul(x.T()) + n).cast(dtype).realize();
}

std::vector<BenchCase> bench_cases() {
  std::vector<BenchCase> cases;
  for (const auto add : {add_products, add_convolutions, add_functions, add_movement, add_selection,
                         add_linear_algebra})
    add(cases);
  return cases;
}

}  // namespace weft
