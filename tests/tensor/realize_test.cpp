// Schedule, kernels and devices against the oracle, for everything that has a derivative.
#include <cmath>

#include "tests/tensor/differentiable.h"
#include "weft/eval/array.h"

namespace weft {
namespace {

class TensorKernels : public TensorTest {};

/// The value and the gradients of sum(f * weights).
std::vector<Tensor> value_and_gradients(const Differentiable& c) {
  const std::vector<Tensor> inputs = c.inputs(DType::F32);
  const Tensor y = c.f(inputs);
  std::vector<Tensor> all = (y * sample(y.dims(), 7).cast(DType::F32)).sum().gradient(inputs);
  all.push_back(y);
  return all;
}

/// Sums may run in another order than the oracle's.
void expect_close(const std::vector<float>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], expected[i], 2e-5 * std::max(1.0, std::fabs(expected[i])))
        << "element " << i;
}

TEST_F(TensorKernels, KernelsEqualTheOracle) {
  for (const Differentiable& c : differentiable()) {
    SCOPED_TRACE(c.name);
    try {
      for (const Tensor& t : value_and_gradients(c)) {
        const std::vector<double> expected = values(t);
        expect_close(t.to_vector<float>(), expected);
      }
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
}  // namespace weft
