// Whole networks, captured: weights are constants.
#include <memory>

#include "weft/app/bench_cases.h"
#include "weft/app/resnet50.h"
#include "weft/tensor/jit.h"

namespace weft {
namespace {

/// A network with weights of its own, and what calls it.
template <class Network>
std::function<BenchValues(const BenchValues&)> captured() {
  auto network = std::make_shared<Network>();
  std::vector<Tensor> state;
  for (const NamedTensor& named : state_dict(*network)) state.push_back(named.tensor);
  realize(state);
  const auto forward = [network](const Tensor& x) { return (*network)(x); };
  auto call = std::make_shared<Jit<std::decay_t<decltype(forward)>>>(jit(forward, "forward"));
  return [call](const BenchValues& v) -> BenchValues { return {(*call)(v[0])}; };
}

}  // namespace

void add_networks(std::vector<BenchCase>& cases) {
  cases.push_back({.group = "networks",
                   .name = "ResNet-50 forward, batch {}",
                   .sizes = {1, 8},
                   .operands = [](int64_t n) -> BenchOperands { return {{{n, 3, 224, 224}}}; },
                   .compute = {},
                   .torch = "resnet50(a)",
                   // 4.09e9 products of a picture, counted from the layers.
                   .flops = [](int64_t n) { return 2 * 4.09e9 * double(n); },
                   .onnx = "resnet50(a)",
                   .network = captured<ResNet50>});
}

}  // namespace weft
