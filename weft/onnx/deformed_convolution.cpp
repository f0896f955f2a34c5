// DeformConv: a convolution whose taps lie where the data says (Dai et al. 2017; with a mask Zhu et
// al. 2019). Semantics: the ONNX operator specification.
#include "weft/onnx/axes.h"
#include "weft/onnx/convolution_operators.h"
#include "weft/onnx/sampling.h"
#include "weft/onnx/spatial.h"

namespace weft::onnx {

namespace {

struct Deformed {
  Spatial s;
  int64_t groups, offset_groups, taps = 1;
  Ints outputs;  ///< of the spatial axes
};

Deformed deformed_of(const NodeCall& call, const Tensor& x, const Tensor& weight) {
  Deformed d{Spatial::of(call, x, kernel_of(call, weight)),
             call.integer("group", 1),
             call.integer("offset_group", 1),
             1,
             {}};
  for (size_t i = 0; i < d.s.axes(); ++i) {
    const int64_t n = x.size(static_cast<int64_t>(i) + 2) + d.s.before[i] + d.s.after[i];
    if (n < d.s.reach(i))
      call.refuse("a kernel that reaches over {} places and a padded axis of {}", d.s.reach(i), n);
    d.outputs.push_back((n - d.s.reach(i)) / d.s.stride[i] + 1);
    d.taps *= d.s.kernel[i];
  }
  if (d.groups < 1 || d.offset_groups < 1 || x.size(1) != weight.size(1) * d.groups ||
      x.size(1) % d.offset_groups != 0 || weight.size(0) % d.groups != 0)
    call.refuse(
        "input {} and weight {} with {} groups and {} of offsets: channels must be a "
        "multiple of both",
        x.dims().text(), weight.dims().text(), d.groups, d.offset_groups);
  return d;
}

/// (n * offset groups, taps * outputs...) along axis i: where the taps of a plain convolution lie,
/// moved by the offsets (n, groups, kernel..., axes, outputs...).
Tensor places_along(const Deformed& d, const Tensor& offsets, size_t i) {
  const size_t axes = d.s.axes(), rank = 2 * axes;
  const Tensor tap = counted(d.s.kernel[i], rank, static_cast<int64_t>(i)) * d.s.dilation[i];
  const Tensor output = counted(d.outputs[i], rank, static_cast<int64_t>(axes + i)) * d.s.stride[i];
  std::vector<Index> mine(2 + axes, Slice());
  mine.emplace_back(static_cast<int64_t>(i));
  const Tensor moved = offsets.index(mine);
  return (moved + (tap + output - d.s.before[i]).cast(moved.dtype())).flatten(0, 1).flatten(1);
}

}  // namespace

Values deformed_convolution(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor& weight = call.tensor(1);
  const Deformed d = deformed_of(call, x, weight);
  const DType run = wide(x.dtype());
  Dims by_tap{x.dim(0), d.offset_groups};
  for (const int64_t k : d.s.kernel) by_tap.push_back(k);
  Dims by_axis = by_tap, result{x.dim(0), weight.dim(0)};
  by_axis.push_back(d.s.axes());
  for (const int64_t n : d.outputs) {
    by_tap.push_back(n);
    by_axis.push_back(n);
    result.push_back(n);
  }
  const Tensor offsets = call.tensor(2).cast(run).reshape(by_axis);
  std::vector<Tensor> places;
  for (size_t i = 0; i < d.s.axes(); ++i) places.push_back(places_along(d, offsets, i));
  // Each group of channels with offsets of its own is a picture.
  const Tensor pictures = x.cast(run).unflatten(1, {d.offset_groups, -1}).flatten(0, 1);
  Tensor taken = between_pixels(pictures, places);
  if (call.has(4))
    taken = taken * call.tensor(4).cast(run).reshape(by_tap).flatten(0, 1).flatten(1).unsqueeze(1);
  // (n, groups, channels * taps, outputs), times (groups, out, channels * taps).
  const Tensor columns = taken.reshape({x.dim(0), d.groups, weight.dim(1) * d.taps, -1});
  const Tensor filters = weight.cast(run).reshape({d.groups, -1, weight.dim(1) * d.taps});
  Tensor y = filters.matmul(columns).reshape(result).cast(x.dtype());
  if (call.has(3)) y = y + along_axis(call.tensor(3), y.ndim(), 1);
  return {y};
}

}  // namespace weft::onnx
