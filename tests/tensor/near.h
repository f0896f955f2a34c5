// Random tensors, and tensors compared element by element.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "weft/weft.h"

namespace weft {

/// Realized: gradients with respect to it stay known after its values were looked at.
inline Tensor sample(const Dims& shape, uint64_t seed, DType dtype = DType::F64) {
  Tensor::manual_seed(seed);
  return (Tensor::randn(shape, dtype) * 0.5).realize();
}

inline void expect_near(const Tensor& a, const Tensor& b, const std::string& what,
                        double tolerance = 1e-9) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(x[i], y[i], tolerance * (1 + std::fabs(y[i]))) << what << " at " << i;
}

}  // namespace weft
