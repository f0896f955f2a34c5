// Pools as layers: of windows over the last axes, or to a given number of places.
#pragma once

#include "weft/nn/initialise.h"

namespace weft::nn {

// x (..., spatial...) to (..., places...) over the last axes, as many as the kernel lists.
struct MaxPool {
  explicit MaxPool(const Ints& size, PoolOptions pool = {})
      : kernel(size), options(std::move(pool)) {}
  Tensor operator()(const Tensor& x, CallSite at = CallSite::here()) const {
    return x.max_pool2d(kernel, options, at);
  }
  void visit(StateVisitor&) {}

  Ints kernel;
  PoolOptions options;
};
struct AvgPool : MaxPool {
  using MaxPool::MaxPool;
  Tensor operator()(const Tensor& x, CallSite at = CallSite::here()) const {
    return x.avg_pool2d(kernel, options, at);
  }
};

// To (..., places...) whatever the size was: place i of o folds the elements floor(i n / o) to
// ceil((i + 1) n / o) of an axis of n, which must be a number.
struct AdaptiveAvgPool {
  explicit AdaptiveAvgPool(const Ints& sizes) : places(sizes) {}
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
  void visit(StateVisitor&) {}

  Ints places;
};
struct AdaptiveMaxPool : AdaptiveAvgPool {
  using AdaptiveAvgPool::AdaptiveAvgPool;
  Tensor operator()(const Tensor& x, CallSite = CallSite::here()) const;
};

// Of so many axes; one size stands for all of them: MaxPool2d(3, {.stride = 2}).
template <class Pool, size_t kAxes>
struct PoolAxes : Pool {
  explicit PoolAxes(const Ints& size, PoolOptions pool = {})
      : Pool(for_axes("pool", "the kernel", size, kAxes), std::move(pool)) {}
};
template <class Pool, size_t kAxes>
struct PlaceAxes : Pool {
  explicit PlaceAxes(const Ints& sizes)
      : Pool(for_axes("adaptive pool", "the list of places", sizes, kAxes)) {}
};
using MaxPool1d = PoolAxes<MaxPool, 1>;
using MaxPool2d = PoolAxes<MaxPool, 2>;
using MaxPool3d = PoolAxes<MaxPool, 3>;
using AvgPool1d = PoolAxes<AvgPool, 1>;
using AvgPool2d = PoolAxes<AvgPool, 2>;
using AvgPool3d = PoolAxes<AvgPool, 3>;
using AdaptiveAvgPool1d = PlaceAxes<AdaptiveAvgPool, 1>;
using AdaptiveAvgPool2d = PlaceAxes<AdaptiveAvgPool, 2>;
using AdaptiveAvgPool3d = PlaceAxes<AdaptiveAvgPool, 3>;
using AdaptiveMaxPool1d = PlaceAxes<AdaptiveMaxPool, 1>;
using AdaptiveMaxPool2d = PlaceAxes<AdaptiveMaxPool, 2>;
using AdaptiveMaxPool3d = PlaceAxes<AdaptiveMaxPool, 3>;

}  // namespace weft::nn
