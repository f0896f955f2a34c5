#include "weft/app/bench_cases.h"

#include <functional>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/format.h"

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
  for (const auto add :
       {add_products, add_constant_weights, add_packed_weights, add_convolutions, add_attention,
        add_networks, add_functions, add_movement, add_selection, add_linear_algebra})
    add(cases);
  return cases;
}

std::string SizedCase::name() const { return fmt::format(fmt::runtime(which.name), size); }

BenchValues SizedCase::operands() const {
  BenchValues values;
  for (const BenchOperand& o : which.operands(size)) values.push_back(o.make());
  return values;
}

std::function<BenchValues(const BenchValues&)> SizedCase::computation() const {
  return which.network ? which.network() : which.compute;
}

std::vector<SizedCase> chosen_cases(std::string_view text, int64_t size) {
  std::vector<SizedCase> found;
  for (const BenchCase& which : bench_cases()) {
    for (const int64_t n : size > 0 ? std::vector<int64_t>{size} : which.sizes) {
      SizedCase one{which, n};
      if ((which.group + ": " + one.name()).find(text) != std::string::npos)
        found.push_back(std::move(one));
    }
  }
  if (found.empty())
    fail("bench", "no case has \"{}\" in its name; `weft bench cases` runs them all", text);
  return found;
}

}  // namespace weft
