#include <algorithm>
#include <cmath>

#include "weft/onnx/broadcast.h"
#include "weft/onnx/fold.h"
#include "weft/onnx/shapes.h"

namespace weft::onnx {

namespace {

/// The sizes, if they are numbers and small enough.
std::optional<std::vector<int64_t>> numbers_of(const Dims& dims) {
  std::vector<int64_t> sizes;
  for (const Dim& d : dims) {
    if (!d.is_static()) return std::nullopt;
    sizes.push_back(d.value());
  }
  const auto count = checked_numel(sizes);
  if (!count || *count > Value::kMostKnown) return std::nullopt;
  return sizes;
}

Folded in_shape(const KnownElements& x, const Dims& dims) {
  auto shape = numbers_of(dims);
  if (!shape || checked_numel(*shape) != static_cast<int64_t>(x.count())) return std::nullopt;
  KnownElements out = x;
  out.shape = *std::move(shape);
  return Known{std::move(out)};
}

Folded identity(const NodeCall&, const Known& in) { return Known{in[0]}; }
Folded reshape(const NodeCall& call, const Known& in) {
  if (call.opset() < 5) return std::nullopt;
  const Dims wanted(in[1].whole), of(in[0].shape);
  return in_shape(in[0], resolved_sizes(call, wanted, of, call.integer("allowzero", 0) != 0));
}
Folded flatten(const NodeCall& call, const Known& in) {
  return in_shape(in[0], flattened(call, Dims(in[0].shape)));
}
Folded squeeze(const NodeCall& call, const Known& in) {
  const Dims of(in[0].shape);
  return in_shape(in[0], squeezed(of, squeezed_axes(call, of)));
}
Folded unsqueeze(const NodeCall& call, const Known& in) {
  return in_shape(in[0], unsqueezed(call, Dims(in[0].shape)));
}

/// An axis seen from around it: how many rows are before it, how far its elements are apart.
struct AxisPlace {
  size_t outer = 1, size = 1, inner = 1;
};
AxisPlace axis_of(const std::vector<int64_t>& shape, int64_t axis) {
  AxisPlace place;
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto n = static_cast<size_t>(shape[i]);
    if (static_cast<int64_t>(i) < axis) place.outer *= n;
    if (static_cast<int64_t>(i) == axis) place.size = n;
    if (static_cast<int64_t>(i) > axis) place.inner *= n;
  }
  return place;
}

/// x at these positions along an axis.
KnownElements picked(const KnownElements& x, int64_t axis, const std::vector<size_t>& positions,
                     std::vector<int64_t> shape) {
  const AxisPlace a = axis_of(x.shape, axis);
  std::vector<size_t> places;
  for (size_t outer = 0; outer < a.outer; ++outer)
    for (const size_t position : positions)
      for (size_t inner = 0; inner < a.inner; ++inner)
        places.push_back((outer * a.size + position) * a.inner + inner);
  return x.at(places, std::move(shape));
}

Folded gather(const NodeCall& call, const Known& in) {
  const KnownElements& x = in[0];
  const int64_t axis = call.axis(call.integer("axis", 0), x.shape.size());
  const int64_t n = x.shape[static_cast<size_t>(axis)];
  std::vector<size_t> positions;
  for (const Dim& d : in[1].whole) {
    if (!d.is_static() || d.value() < -n || d.value() >= n) return std::nullopt;
    positions.push_back(static_cast<size_t>(d.value() < 0 ? d.value() + n : d.value()));
  }
  std::vector<int64_t> shape = x.shape;
  const auto at = shape.erase(shape.begin() + axis);
  shape.insert(at, in[1].shape.begin(), in[1].shape.end());
  if (checked_numel(shape).value_or(INT64_MAX) > Value::kMostKnown) return std::nullopt;
  return Known{picked(x, axis, positions, std::move(shape))};
}

/// Python's rule for the ends of slices.
std::vector<size_t> sliced(int64_t begin, int64_t end, int64_t step, int64_t n) {
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto place = [&](int64_t i) { return std::clamp(i < 0 ? i + n : i, low, high); };
  std::vector<size_t> positions;
  const int64_t last = place(end);
  for (int64_t i = place(begin); step > 0 ? i < last : i > last;) {
    positions.push_back(static_cast<size_t>(i));
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return positions;
}

Folded slice(const NodeCall& call, const Known& in) {
  KnownElements x = in[0];
  for (const SlicedAxis& s : sliced_axes(call, x.shape.size())) {
    if (!s.begin.is_static() || !s.end.is_static()) return std::nullopt;
    const auto axis = static_cast<size_t>(s.axis);
    const auto positions = sliced(s.begin.value(), s.end.value(), s.step, x.shape[axis]);
    std::vector<int64_t> shape = x.shape;
    shape[axis] = static_cast<int64_t>(positions.size());
    x = picked(x, s.axis, positions, std::move(shape));
  }
  return Known{std::move(x)};
}

Folded concat(const NodeCall& call, const Known& in) {
  const size_t rank = in[0].shape.size();
  const int64_t axis =
      call.axis(call.opset() < 4 ? call.integer("axis", 1) : call.integer("axis"), rank);
  std::vector<int64_t> shape = in[0].shape;
  shape[static_cast<size_t>(axis)] = 0;
  for (const KnownElements& x : in) {
    std::vector<int64_t> other = x.shape;
    if (x.dtype != in[0].dtype || other.size() != rank) return std::nullopt;
    shape[static_cast<size_t>(axis)] += std::exchange(other[static_cast<size_t>(axis)], 0);
    std::vector<int64_t> mine = shape;
    mine[static_cast<size_t>(axis)] = 0;
    if (mine != other) return std::nullopt;
  }
  if (checked_numel(shape).value_or(INT64_MAX) > Value::kMostKnown) return std::nullopt;
  KnownElements out{in[0].dtype, shape, {}, {}};
  for (size_t outer = 0; outer < axis_of(shape, axis).outer; ++outer)
    for (const KnownElements& x : in) {
      const AxisPlace a = axis_of(x.shape, axis);
      for (size_t i = 0; i < a.size * a.inner; ++i) out.append(x, outer * a.size * a.inner + i);
    }
  return Known{std::move(out)};
}

Folded split(const NodeCall& call, const Known& in) {
  const KnownElements& x = in[0];
  const int64_t axis = call.axis(call.integer("axis", 0), x.shape.size());
  const int64_t n = x.shape[static_cast<size_t>(axis)];
  std::vector<int64_t> sizes = call.has("split") ? call.ints("split") : std::vector<int64_t>();
  if (in.size() > 1) sizes = call.ints(1);
  const auto parts = static_cast<int64_t>(call.outputs());
  if (sizes.empty() && n % parts == 0) sizes.assign(call.outputs(), n / parts);
  int64_t all = 0;
  for (const int64_t size : sizes) all += size < 0 ? n + 1 : size;
  if (all != n) return std::nullopt;  // for the operator to refuse
  Known out;
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    std::vector<int64_t> shape = x.shape;
    shape[static_cast<size_t>(axis)] = size;
    out.push_back(picked(x, axis, sliced(begin, begin + size, 1, n), std::move(shape)));
    begin += size;
  }
  return out;
}

Folded transpose(const NodeCall& call, const Known& in) {
  const KnownElements& x = in[0];
  const size_t rank = x.shape.size();
  std::vector<int64_t> perm = call.ints("perm");
  if (perm.empty())
    for (size_t i = rank; i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  std::vector<int64_t> strides(rank, 1), shape(rank), seen(rank, 0);
  if (perm.size() != rank) return std::nullopt;
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * x.shape[i];
  for (size_t i = 0; i < rank; ++i) {
    const auto from = static_cast<size_t>(call.axis(perm[i], rank));
    if (seen[from]++ != 0) return std::nullopt;
    shape[i] = x.shape[from];
  }
  std::vector<size_t> places;
  for (size_t flat = 0; flat < x.count(); ++flat) {
    auto rest = static_cast<int64_t>(flat);
    int64_t at = 0;
    for (size_t i = rank; i-- > 0; rest /= shape[i])
      at += rest % shape[i] * strides[static_cast<size_t>(call.axis(perm[i], rank))];
    places.push_back(static_cast<size_t>(at));
  }
  return Known{x.at(places, std::move(shape))};
}

Folded expand(const NodeCall& call, const Known& in) {
  const auto wanted = numbers_of(Dims(in[1].whole));
  if (!wanted) return std::nullopt;
  const std::vector<int64_t> whole = broadcast_shape(call, {in[0].shape, *wanted});
  const auto count = checked_numel(whole);
  if (!count || *count > Value::kMostKnown) return std::nullopt;
  const BroadcastPlaces place(in[0].shape, whole);
  std::vector<size_t> places;
  for (size_t i = 0; i < static_cast<size_t>(*count); ++i) places.push_back(place.of(i));
  return Known{in[0].at(places, whole)};
}

Folded constant_of_shape(const NodeCall& call, const Known& in) {
  const auto shape = numbers_of(Dims(in[0].whole));
  if (!shape) return std::nullopt;
  KnownElements zero{DType::F32, {}, {}, {0.0}};
  if (call.has("value")) {
    const auto given = KnownElements::of(call.constant("value"));
    if (!given || given->count() != 1) return std::nullopt;
    zero = *given;
  }
  const auto count = static_cast<size_t>(*checked_numel(*shape));
  return Known{zero.at(std::vector<size_t>(count, 0), *shape)};
}

Folded range(const NodeCall&, const Known& in) {
  for (const KnownElements& x : in)
    if (x.count() != 1 || !x.is_static()) return std::nullopt;
  if (in.size() != 3 || in[0].is_real()) return std::nullopt;
  const int64_t start = in[0].whole[0].value(), limit = in[1].whole[0].value(),
                step = in[2].whole[0].value();
  KnownElements out{in[0].dtype, {}, {}, {}};
  if (step == 0) return std::nullopt;
  for (int64_t i = start; step > 0 ? i < limit : i > limit;) {
    if (static_cast<int64_t>(out.whole.size()) == Value::kMostKnown) return std::nullopt;
    out.whole.emplace_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  out.shape = {static_cast<int64_t>(out.whole.size())};
  return Known{std::move(out)};
}

/// (rank, count): where x is not 0.
Folded nonzero(const NodeCall&, const Known& in) {
  const KnownElements& x = in[0];
  if (!x.is_static()) return std::nullopt;
  const size_t rank = std::max<size_t>(x.shape.size(), 1);
  std::vector<std::vector<Dim>> places(rank);
  for (size_t flat = 0; flat < x.count(); ++flat) {
    if (x.is_real() ? x.real[flat] == 0 : x.whole[flat].value() == 0) continue;
    auto rest = static_cast<int64_t>(flat);
    if (x.shape.empty()) places[0].emplace_back(0);
    for (size_t i = x.shape.size(); i-- > 0; rest /= x.shape[i])
      places[i].emplace_back(rest % x.shape[i]);
  }
  KnownElements out{
      DType::I64, {static_cast<int64_t>(rank), static_cast<int64_t>(places[0].size())}, {}, {}};
  for (const auto& row : places) out.whole.insert(out.whole.end(), row.begin(), row.end());
  return Known{std::move(out)};
}

constexpr FoldRow kRows[] = {
    {"Concat", concat},       {"ConstantOfShape", constant_of_shape},
    {"Expand", expand},       {"Flatten", flatten},
    {"Gather", gather},       {"Identity", identity},
    {"NonZero", nonzero},     {"Range", range},
    {"Reshape", reshape},     {"Slice", slice},
    {"Split", split},         {"Squeeze", squeeze},
    {"Transpose", transpose}, {"Unsqueeze", unsqueeze},
};

}  // namespace

std::span<const FoldRow> movement_folds() { return kRows; }

}  // namespace weft::onnx
