#include "weft/onnx/sampling.h"

#include "weft/onnx/axes.h"

namespace weft::onnx {

Tensor pixels_at(const Tensor& x, const std::vector<Tensor>& places) {
  Tensor flat, inside;
  int64_t all = 1;
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t n = x.size(static_cast<int64_t>(i) + 2);
    const Tensor there = (places[i] >= 0) & (places[i] < static_cast<double>(n));
    const Tensor place = places[i].cast(DType::I64);
    flat = flat.defined() ? flat * n + place : place;
    inside = inside.defined() ? inside & there : there;
    all *= n;
  }
  // A place outside of the axis reads 0.
  const Tensor at = inside.where(flat, all).unsqueeze(1);
  return x.flatten(2, -1).gather(2, at.expand({x.dim(0), x.dim(1), at.dim(2)}));
}

Tensor between_pixels(const Tensor& x, const std::vector<Tensor>& places) {
  const size_t axes = places.size();
  std::vector<Tensor> below, above;
  for (const Tensor& place : places) {
    below.push_back(place.floor().detach());
    above.push_back(place - below.back());
  }
  Tensor sum;
  for (size_t corner = 0; corner < size_t{1} << axes; ++corner) {
    std::vector<Tensor> at;
    Tensor weight;
    for (size_t i = 0; i < axes; ++i) {
      const bool up = (corner >> i & 1) != 0;
      at.push_back(up ? below[i] + 1 : below[i]);
      const Tensor share = up ? above[i] : 1 - above[i];
      weight = weight.defined() ? weight * share : share;
    }
    const Tensor part = pixels_at(x, at) * weight.unsqueeze(1);
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

}  // namespace weft::onnx
