// Comparing a tensor with numbers worked out in plain loops.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

// |got - wanted| <= tolerance * (1 + |wanted|) for every element.
inline void expect_close(const Tensor& got, const std::vector<double>& wanted,
                         double tolerance = 1e-5) {
  const std::vector<double> values = got.to_vector<double>();
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_LE(std::abs(values[i] - wanted[i]), tolerance * (1 + std::abs(wanted[i])))
        << "element " << i << ": " << values[i] << " instead of " << wanted[i];
  }
}

// Numbers of no particular pattern in (-1, 1), the same in every run.
inline std::vector<float> some_floats(size_t n, unsigned seed = 1) {
  std::vector<float> values(n);
  uint32_t state = seed * 2654435761u + 12345;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  }
  return values;
}
inline Tensor some_tensor(const std::vector<int64_t>& shape, unsigned seed = 1) {
  size_t n = 1;
  for (const int64_t dim : shape) n *= static_cast<size_t>(dim);
  return Tensor::from(some_floats(n, seed), Dims(shape));
}

}  // namespace weft
