// Functions of tensors with derivatives: every op at least once, in the ways it can be called.
#pragma once

#include "tests/tensor/tensor_test.h"

namespace weft {

struct Differentiable {
  const char* name;
  std::vector<Dims> shapes;
  TensorFunction f;

  std::vector<Tensor> inputs(DType dtype = DType::F64) const;
};

const std::vector<Differentiable>& differentiable();

}  // namespace weft
