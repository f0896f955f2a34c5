// Random scalar functions of one tensor, whose steps fold, normalise, sort, look up and move along
// different axes.
#pragma once

#include <string>
#include <vector>

#include "weft/tensor/tensor.h"
#include "weft/trust/random.h"

namespace weft {

/// The same function for the same seed, on whatever it is called. What decides by order adds noise
/// first, as equal numbers would be told apart by rounding alone; no step's values grow much faster
/// than its operand's.
class RandomFunction {
 public:
  RandomFunction(uint64_t seed, int64_t least_steps, int64_t most_steps, DType dtype = DType::F64);

  const Dims& shape() const { return shape_; }
  /// In [-2, 2): of shape(), or `count` of them stacked.
  Tensor point(uint64_t seed, int64_t count = 0) const;
  /// The sum of all values that no other step used, each times weights of its own.
  Tensor operator()(const Tensor& x);
  /// The steps of the last call, a line each.
  std::string text() const { return text_; }

 private:
  using Method = Tensor (RandomFunction::*)(const Tensor& x);

  void step();
  Tensor noise(const Dims& dims);
  Tensor positions(const Dims& dims, int64_t below);
  int64_t axis_of(const Tensor& x);
  Tensor partner(const Tensor& x);

  Tensor elementwise(const Tensor& x);
  Tensor combine(const Tensor& x);
  Tensor running(const Tensor& x);
  Tensor running_of(const Tensor& x, int64_t axis);
  Tensor normalise(const Tensor& x);
  Tensor reduce(const Tensor& x);
  Tensor sort(const Tensor& x);
  Tensor look_up(const Tensor& x);
  Tensor scatter(const Tensor& x);
  Tensor move(const Tensor& x);
  Tensor regroup(const Tensor& x);
  Tensor window(const Tensor& x);
  int64_t choice(const char* name, int64_t of);

  uint64_t seed_;
  DType dtype_;
  int64_t steps_;
  Dims shape_;
  Random random_;
  std::vector<Tensor> pool_;
  std::vector<bool> used_;
  std::string text_;
};

}  // namespace weft
