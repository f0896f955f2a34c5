// What tests of the tensor room share: a context of their own, and values by the oracle alone.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weft/eval/array.h"
#include "weft/weft.h"

namespace weft {

/// A context whose default device runs kernels without a compiler.
class TensorTest : public ::testing::Test {
 protected:
  TensorTest();

  Context context_;
  ContextScope scope_;
};

/// The value of x's graph as eval/ defines it: no schedule, no kernel.
eval::Array evaluated(const Tensor& x);
std::vector<double> values(const Tensor& x);
/// "f32 (2, 2) [1, 2, 3, 4]".
std::string shown(const Tensor& x);

/// Every value within `tolerance` (absolute, and relative to the expected value).
void expect_near(const Tensor& x, const std::vector<double>& expected, double tolerance = 1e-6);

/// f64 numbers that are no special case of anything: well apart from each other and from 0.
Tensor sample(const Dims& shape, int seed = 1);

/// Checks the gradient of sum(f(inputs) * weights) for every element of every input by central
/// differences. Inputs are f64.
using TensorFunction = Tensor (*)(const std::vector<Tensor>&);
void expect_gradients(const std::vector<Tensor>& inputs, TensorFunction f, double tolerance = 1e-6);

/// What the Error thrown by `f` says.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace weft
