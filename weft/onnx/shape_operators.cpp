// Operators that move elements and change shapes. Semantics: https://onnx.ai/onnx/operators
#include <algorithm>

#include "weft/onnx/operators.h"
#include "weft/onnx/shapes.h"
#include "weft/tensor/movement.h"

namespace weft::onnx {

namespace {

/// A result that has the element type of input 0.
Value like(const NodeCall& call, Tensor x) { return {std::move(x), call.input(0).type()}; }

// ---- what sizes there are

Values shape(const NodeCall& call) {
  const Dims dims = call.input(0).dims();
  const auto [first, last] = shape_range(call, dims.size());
  std::vector<Dim> sizes(dims.begin() + static_cast<std::ptrdiff_t>(first),
                         dims.begin() + static_cast<std::ptrdiff_t>(last));
  return {Value::known(std::move(sizes), DType::I64, false)};
}
Values size(const NodeCall& call) {
  return {Value::known({call.input(0).dims().product()}, DType::I64, true)};
}

// ---- the same elements in another shape

Values identity(const NodeCall& call) { return {call.input(0)}; }
Values reshape(const NodeCall& call) {
  const Dims wanted = call.opset() < 5 ? Dims(call.ints("shape")) : call.sizes(1);
  const Value& x = call.input(0);
  const bool zero_is_size = call.integer("allowzero", 0) != 0;
  return {reshaped(call, x, resolved_sizes(call, wanted, x.dims(), zero_is_size))};
}
Values flatten(const NodeCall& call) {
  return {reshaped(call, call.input(0), flattened(call, call.input(0).dims()))};
}
Values squeeze(const NodeCall& call) {
  const Dims of = call.input(0).dims();
  return {reshaped(call, call.input(0), squeezed(of, squeezed_axes(call, of)))};
}
Values unsqueeze(const NodeCall& call) {
  return {reshaped(call, call.input(0), unsqueezed(call, call.input(0).dims()))};
}

// ---- other places

Values transpose(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  std::vector<int64_t> axes = call.ints("perm");
  if (!call.has("perm"))
    for (size_t i = x.ndim(); i-- > 0;) axes.push_back(static_cast<int64_t>(i));
  return {like(call, x.permute(axes))};
}

Values concat(const NodeCall& call) {
  const int64_t axis = call.opset() < 4 ? call.integer("axis", 1) : call.integer("axis");
  return {like(call, Tensor::cat(call.tensors(), call.axis(axis, call.tensor(0).ndim())))};
}

/// `parts` pieces of equal size, the last one smaller where it must be.
std::vector<int64_t> equal_parts(const NodeCall& call, int64_t size, int64_t parts) {
  if (parts < 1) call.refuse("an axis cannot be split into {} parts", parts);
  const int64_t each = (size + parts - 1) / parts;
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < parts; ++i)
    sizes.push_back(std::clamp<int64_t>(size - i * each, 0, each));
  return sizes;
}

Values split(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t axis = call.axis(call.integer("axis", 0), x.ndim());
  std::vector<int64_t> sizes = call.has("split") ? call.ints("split") : std::vector<int64_t>();
  if (call.has(1)) sizes = call.ints(1);
  if (sizes.empty()) {
    const auto outputs = static_cast<int64_t>(call.outputs());
    sizes = equal_parts(call, x.size(axis), call.integer("num_outputs", outputs));
  }
  Values parts;
  for (Tensor& part : x.split(sizes, axis)) parts.push_back(like(call, std::move(part)));
  return parts;
}

Values slice(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  std::vector<Index> at(x.ndim(), Slice());
  for (const SlicedAxis& s : sliced_axes(call, x.ndim()))
    at[static_cast<size_t>(s.axis)] = Slice(s.begin, s.end, s.step);
  return {at.empty() ? call.input(0) : like(call, x.index(at))};
}

Values tile(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  if (call.opset() >= 6) return {like(call, x.repeat(call.ints(1)))};
  Ints counts = Ints::filled(x.ndim(), 1);
  counts[static_cast<size_t>(call.axis(call.integer(2), x.ndim()))] = call.integer(1);
  return {like(call, x.repeat(counts))};
}

/// Both broadcast: a size of 1 keeps x's.
Values expand(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  Dims dims = call.sizes(1);
  while (dims.size() < x.ndim()) dims.insert(0, 1);
  for (size_t i = 0; i < x.ndim(); ++i) {
    Dim& size = dims[dims.size() - x.ndim() + i];
    if (size == Dim(1)) size = x.dims()[i];
  }
  return {like(call, x.expand(dims))};
}

Values trilu(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Dim k = call.has(1) ? Dim(call.integer(1)) : Dim(0);
  return {like(call, call.integer("upper", 1) != 0 ? x.triu(k) : x.tril(k))};
}

/// The first lengths[b] elements of each row in reverse order.
Values reverse_sequence(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t batch = call.axis(call.integer("batch_axis", 1), x.ndim());
  const int64_t time = call.axis(call.integer("time_axis", 0), x.ndim());
  if (batch == time) call.refuse("batch_axis and time_axis are both {}", batch);
  Dims along_time, along_batch;
  for (size_t i = 0; i < x.ndim(); ++i) {
    along_time.push_back(static_cast<int64_t>(i) == time ? x.dims()[i] : Dim(1));
    along_batch.push_back(static_cast<int64_t>(i) == batch ? x.dims()[i] : Dim(1));
  }
  const Tensor step = Tensor::arange(x.dim(time)).reshape(along_time);
  const Tensor length = call.tensor(1).cast(DType::I32).reshape(along_batch);
  const Tensor places = (step < length).where(length - 1 - step, step);
  return {like(call, x.gather(time, places.expand(x.dims())))};
}

// ---- padding

struct Mode {
  std::string_view name;
  PadMode mode;
};
constexpr Mode kModes[] = {{"constant", PadMode::Constant},
                           {"reflect", PadMode::Reflect},
                           {"edge", PadMode::Replicate},
                           {"wrap", PadMode::Circular}};

PadMode mode_of(const NodeCall& call) {
  const std::string text = call.text("mode", "constant");
  for (const Mode& m : kModes)
    if (m.name == text) return m.mode;
  call.refuse("there is no mode '{}' of padding; use constant, reflect, edge or wrap", text);
}

/// (before, after) per axis, from all that come before and then all that come after.
std::vector<DimPair> pad_amounts(const NodeCall& call, size_t rank) {
  const char* attribute = call.opset() < 2 ? "paddings" : "pads";
  const Dims amounts = call.opset() >= 11 ? call.sizes(1) : Dims(call.ints(attribute));
  std::vector<int64_t> axes;
  if (call.has(3)) axes = call.ints(3);
  if (!call.has(3))
    for (size_t i = 0; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  if (amounts.size() != 2 * axes.size())
    call.refuse("{} amounts for {} axes; each needs one before and one after", amounts.size(),
                axes.size());
  std::vector<DimPair> pairs(rank, DimPair(0, 0));
  for (size_t i = 0; i < axes.size(); ++i)
    pairs[static_cast<size_t>(call.axis(axes[i], rank))] = {amounts[i], amounts[axes.size() + i]};
  return pairs;
}

Scalar pad_value(const NodeCall& call, DType dtype) {
  if (call.opset() < 11) return call.number("value", 0);
  if (!call.has(2)) return 0;
  if (is_float(dtype)) return call.number(2);
  return call.integer(2);
}

Values padded(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Tensor whole = is_bool(x.dtype()) ? x.cast(DType::U8) : x;
  const Tensor y =
      pad(whole, pad_amounts(call, x.ndim()), mode_of(call), pad_value(call, x.dtype()));
  return {like(call, y.cast(x.dtype()))};
}

Values center_crop_pad(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const Dims wanted = call.sizes(1);
  std::vector<int64_t> axes = call.ints("axes");
  if (!call.has("axes"))
    for (size_t i = 0; i < x.ndim(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (wanted.size() != axes.size())
    call.refuse("{} sizes are given for {} axes", wanted.size(), axes.size());
  std::vector<DimPair> amounts(x.ndim(), DimPair(0, 0));
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(call.axis(axes[i], x.ndim()));
    const int64_t more = (wanted[i] - x.dims()[axis]).value();
    // The odd one is at the end: of padding, and of what is cut off.
    const int64_t before = more / 2;
    amounts[axis] = {before, more - before};
  }
  return {like(call, x.pad(amounts))};
}

// ---- blocks

Values depth_to_space(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t b = call.integer("blocksize");
  if (x.ndim() != 4) call.refuse("input 0 has shape {}; 4 axes are expected", x.dims().text());
  if (b < 1) call.refuse("the block size is {}", b);
  const Dim n = x.dim(0), c = x.dim(1), h = x.dim(2), w = x.dim(3), inner = c / (b * b);
  const bool rows_first = call.text("mode", "DCR") == "DCR";
  const Tensor apart = rows_first ? x.reshape({n, b, b, inner, h, w}).permute({0, 3, 4, 1, 5, 2})
                                  : x.reshape({n, inner, b, b, h, w}).permute({0, 1, 4, 2, 5, 3});
  return {like(call, apart.reshape({n, inner, h * b, w * b}))};
}

Values space_to_depth(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const int64_t b = call.integer("blocksize");
  if (x.ndim() != 4) call.refuse("input 0 has shape {}; 4 axes are expected", x.dims().text());
  if (b < 1) call.refuse("the block size is {}", b);
  const Dim n = x.dim(0), c = x.dim(1), h = x.dim(2) / b, w = x.dim(3) / b;
  const bool rows_first = call.text("mode", "DCR") == "DCR";
  const Tensor apart = x.reshape({n, c, h, b, w, b});
  const Tensor moved =
      rows_first ? apart.permute({0, 3, 5, 1, 2, 4}) : apart.permute({0, 1, 3, 5, 2, 4});
  return {like(call, moved.reshape({n, c * (b * b), h, w}))};
}

constexpr Operator kRows[] = {
    {kOnnx, "CenterCropPad", 18, center_crop_pad},
    {kOnnx, "Concat", 1, concat},
    {kOnnx, "DepthToSpace", 1, depth_to_space},
    {kOnnx, "Expand", 8, expand},
    {kOnnx, "Flatten", 1, flatten},
    {kOnnx, "Identity", 1, identity},
    {kOnnx, "Pad", 1, padded},
    {kOnnx, "Reshape", 1, reshape},
    {kOnnx, "ReverseSequence", 10, reverse_sequence},
    {kOnnx, "Shape", 1, shape},
    {kOnnx, "Size", 1, size},
    {kOnnx, "Slice", 1, slice},
    {kOnnx, "SpaceToDepth", 1, space_to_depth},
    {kOnnx, "Split", 1, split},
    {kOnnx, "Squeeze", 1, squeeze},
    {kOnnx, "Tile", 1, tile},
    {kOnnx, "Transpose", 1, transpose},
    {kOnnx, "Trilu", 14, trilu},
    {kOnnx, "Unsqueeze", 1, unsqueeze},
};

}  // namespace

std::span<const Operator> shape_operators() { return kRows; }

}  // namespace weft::onnx
