#include "weft/nn/pooling.h"

#include "weft/base/error.h"
#include "weft/base/function_ref.h"

namespace weft::nn {

namespace {

using Fold = FunctionRef<Tensor(const Tensor& x, int64_t axis)>;

Tensor fold_axis(const Tensor& x, int64_t axis, int64_t places, Fold fold) {
  check_positive("adaptive pool", "every number of places", places);
  const int64_t n = x.size(axis);
  if (n % places == 0) return fold(x.unflatten(axis, {places, n / places}), axis + 1);
  std::vector<Tensor> folded;
  for (int64_t i = 0; i < places; ++i) {
    std::vector<Index> at(static_cast<size_t>(axis), Slice());
    at.emplace_back(Slice(Dim(i * n / places), Dim(((i + 1) * n + places - 1) / places)));
    folded.push_back(fold(x.index(at), axis));
  }
  return Tensor::stack(folded, axis);
}

// Axis by axis: every element of a window is in all of the product's factors, so the mean of means
// is the mean.
Tensor fold_places(const Tensor& x, const Ints& places, CallSite at, Fold fold) {
  const CallSiteScope site(at);
  if (x.ndim() < places.size()) {
    fail("adaptive pool", "shape {} has fewer axes than the {} to pool", x.dims().text(),
         places.size());
  }
  Tensor y = x;
  const auto first = static_cast<int64_t>(x.ndim() - places.size());
  for (size_t i = 0; i < places.size(); ++i) {
    y = fold_axis(y, first + static_cast<int64_t>(i), places[i], fold);
  }
  return y;
}

}  // namespace

Tensor AdaptiveAvgPool::operator()(const Tensor& x, CallSite at) const {
  return fold_places(x, places, at, [](const Tensor& y, int64_t axis) { return y.mean(axis); });
}

Tensor AdaptiveMaxPool::operator()(const Tensor& x, CallSite at) const {
  return fold_places(x, places, at, [](const Tensor& y, int64_t axis) { return y.max(axis); });
}

}  // namespace weft::nn
