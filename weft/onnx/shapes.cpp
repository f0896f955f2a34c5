#include "weft/onnx/shapes.h"

#include <algorithm>

#include "weft/tensor/access.h"

namespace weft::onnx {

Value reshaped(const NodeCall& call, const Value& x, const Dims& dims) {
  const bool known = dims.is_static() && x.dims().is_static();
  if (known && !(dims.product() == x.dims().product()))
    call.refuse("{} elements of shape {} do not fit into shape {}", x.dims().product().text(),
                x.dims().text(), dims.text());
  std::vector<int64_t> shape;
  if (known)
    for (const Dim& d : dims) shape.push_back(d.value());
  if (x.kind() == Value::Kind::Strings) return Value::strings(x.texts(), shape);
  if (const auto array = x.constant(); array && known) {
    HostArray again = *array;
    again.shape = shape;
    return Value(again, x.type());
  }
  return Value(x.tensor().reshape(dims), x.type());
}

Dims resolved_sizes(const NodeCall& call, const Dims& wanted, const Dims& of, bool zero_is_size) {
  Dims dims = wanted;
  std::optional<size_t> open;
  Dim rest = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == Dim(-1)) {
      if (open) call.refuse("more than one size of {} is -1", wanted.text());
      open = i;
      continue;
    }
    if (dims[i] == Dim(0) && !zero_is_size) {
      if (i >= of.size())
        call.refuse("size {} of {} is 0, which means that of an axis that {} does not have", i,
                    wanted.text(), of.text());
      dims[i] = of[i];
    }
    rest = rest * dims[i];
  }
  if (open) dims[*open] = rest == Dim(0) ? Dim(0) : of.product() / rest;
  return dims;
}

std::vector<int64_t> squeezed_axes(const NodeCall& call, const Dims& of) {
  std::vector<int64_t> axes = call.ints_of(1, "axes", 13);
  for (int64_t& axis : axes) {
    axis = call.axis(axis, of.size());
    const Dim& size = of[static_cast<size_t>(axis)];
    if (size.is_static() && size.value() != 1)
      call.refuse("axis {} of shape {} has size {}, and only those of size 1 can go", axis,
                  of.text(), size.value());
  }
  if (axes.empty())
    for (size_t i = 0; i < of.size(); ++i)
      // Where a size varies and may be 1, how many axes are left does: value() wants a number.
      if (of[i].min() <= 1 && of[i].value() == 1) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

Dims squeezed(const Dims& of, const std::vector<int64_t>& axes) {
  Dims left;
  for (size_t i = 0; i < of.size(); ++i)
    if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end()) left.push_back(of[i]);
  return left;
}

Dims unsqueezed(const NodeCall& call, const Dims& of) {
  std::vector<int64_t> axes = call.ints_of(1, "axes", 13);
  const size_t rank = of.size() + axes.size();
  for (int64_t& axis : axes) axis = call.axis(axis, rank);
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) call.refuse("an axis is listed twice");
  Dims dims = of;
  for (const int64_t axis : axes) dims.insert(static_cast<size_t>(axis), 1);
  return dims;
}

Dims flattened(const NodeCall& call, const Dims& of) {
  int64_t axis = call.integer("axis", 1);
  const auto rank = static_cast<int64_t>(of.size());
  if (axis < -rank || axis > rank)
    call.refuse("axis {} is out of range for a tensor of {} axes; use {} to {}", axis, rank, -rank,
                rank);
  if (axis < 0) axis += rank;
  Dims two{1, 1};
  for (int64_t i = 0; i < rank; ++i) {
    Dim& size = two[i < axis ? 0 : 1];
    size = size * of[static_cast<size_t>(i)];
  }
  return two;
}

namespace {

/// Numbers that mean "to the end" stay far outside and far from overflow.
Dim near(const Dim& d) {
  constexpr int64_t kFar = int64_t{1} << 48;
  return d.is_static() ? Dim(std::clamp(d.value(), -kFar, kFar)) : d;
}

}  // namespace

std::vector<SlicedAxis> sliced_axes(const NodeCall& call, size_t rank) {
  const bool inputs = call.opset() >= 10;
  const Dims begins = inputs ? call.sizes(1) : Dims(call.ints("starts"));
  const Dims ends = inputs ? call.sizes(2) : Dims(call.ints("ends"));
  std::vector<int64_t> axes = call.ints_of(3, "axes", 10), steps;
  if (inputs && call.has(4)) steps = call.ints(4);
  if (axes.empty())
    for (size_t i = 0; i < begins.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (begins.size() != ends.size() || axes.size() != begins.size() ||
      (!steps.empty() && steps.size() != axes.size()))
    call.refuse("{} starts, {} ends, {} axes and {} steps; there must be as many of each",
                begins.size(), ends.size(), axes.size(), steps.size());
  std::vector<SlicedAxis> all;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t step = steps.empty() ? 1 : steps[i];
    if (step == 0) call.refuse("the step of axis {} is 0", axes[i]);
    all.push_back({near(begins[i]), near(ends[i]), call.axis(axes[i], rank), step});
  }
  return all;
}

std::pair<size_t, size_t> shape_range(const NodeCall& call, size_t rank) {
  const auto n = static_cast<int64_t>(rank);
  const auto place = [n](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  const int64_t first = place(call.integer("start", 0)), last = place(call.integer("end", n));
  return {static_cast<size_t>(first), static_cast<size_t>(std::max(first, last))};
}

}  // namespace weft::onnx
