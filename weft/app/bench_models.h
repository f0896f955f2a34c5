// The training steps whose graphs are measured: built anew by every call of step().
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

class BenchModel {
 public:
  virtual ~BenchModel() = default;
  // Forward, loss, backward and Adam, as a graph: what to realize.
  virtual std::vector<Tensor> step() = 0;
};

// "mnist": tinygrad's beautiful_mnist, batch 512. "gpt2": GPT-2 small, 1 x 32 tokens. Weights and
// inputs are realized.
std::unique_ptr<BenchModel> make_bench_model(const std::string& name);
bool is_bench_model(std::string_view name);

}  // namespace weft
