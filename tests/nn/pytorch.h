// Comparing layers with PyTorch's, whose values tests/nn/reference.py wrote down.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/nn/close.h"
#include "tests/nn/pytorch_names.h"
#include "tests/nn/pytorch_values.h"
#include "weft/nn/state.h"

namespace weft {

inline const std::vector<double>& pytorch_values(const std::string& name) {
  static const std::vector<double> none;
  const auto found = kPyTorchValues.find(name);
  if (found != kPyTorchValues.end()) return found->second;
  ADD_FAILURE() << "reference.py computes no " << name;
  return none;
}

// The parameters and buffers that fill() of reference.py gives.
template <Module M>
void fill(M& module) {
  unsigned seed = 10;
  for (const NamedTensor& named : state_dict(module)) {
    Tensor t = named.tensor;
    const Tensor value = some_tensor(t.shape(), seed++);
    if (!is_float(t.dtype())) continue;
    const bool is_var = named.name.ends_with("running_var");
    t.assign(is_var ? value.abs() + 0.5 : value);
    t.realize();
    t.zero_grad();
  }
}

inline Tensor some_input(const std::vector<int64_t>& shape, unsigned seed = 1) {
  Tensor x = some_tensor(shape, seed);
  return x.requires_grad_();
}

// What layer() of reference.py does with `call`, an output from the inputs.
template <Module M, class Call>
void expect_like_pytorch(const std::string& name, M& module,
                         const std::vector<std::vector<int64_t>>& shapes, Call call) {
  SCOPED_TRACE(name);
  fill(module);
  std::string names;
  for (const NamedTensor& named : state_dict(module)) names += named.name + " ";
  EXPECT_EQ(names, kPyTorchNames.at(name));
  std::vector<Tensor> inputs;
  for (const auto& shape : shapes) {
    inputs.push_back(some_input(shape, static_cast<unsigned>(inputs.size()) + 1));
  }
  const Tensor y = call(inputs);
  const Tensor weights = some_tensor({y.numel()}, 99).reshape(y.dims());
  (y * weights).sum().backward();
  expect_close(y, pytorch_values(name), 2e-5);
  expect_close(inputs[0].grad(), pytorch_values(name + ".x"), 1e-4);
  const std::vector<Tensor> trained = parameters(module);
  if (!trained.empty()) expect_close(trained[0].grad().sum(0), pytorch_values(name + ".w"), 1e-4);
}

template <Module M>
void expect_like_pytorch(const std::string& name, M module, const std::vector<int64_t>& shape) {
  expect_like_pytorch(name, module, {shape},
                      [&](const std::vector<Tensor>& in) { return module(in[0]); });
}

}  // namespace weft
