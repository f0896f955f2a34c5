#include "weft/graph/infer.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/int128.h"
#include "weft/graph/tuple.h"

namespace weft {
namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

int64_t saturating(Int128 v) {
  if (v < kMin) return kMin;
  if (v > kMax) return kMax;
  return static_cast<int64_t>(v);
}

void require(bool ok, const NodeSpec& s, const char* what) {
  if (!ok) internal_error("graph", "{}: {}", info(s.op).mnemonic, what);
}

// ---- shapes

std::span<const NodeRef> dims_from(const NodeSpec& s, size_t first) { return s.src.subspan(first); }

const Shape* alu_shape(Graph& g, const NodeSpec& s) {
  const Shape* shape = g.scalar_shape();
  for (NodeRef x : s.src) {
    if (x->rank() == 0) continue;
    require(shape->rank == 0 || shape == x->shape, s, "operands have different shapes");
    shape = x->shape;
  }
  return shape;
}

const Shape* permute_shape(Graph& g, const NodeSpec& s) {
  require(s.ints.size() == s.src[0]->rank(), s, "axes do not match the rank");
  std::vector<NodeRef> dims;
  for (int64_t axis : s.ints) {
    require(axis >= 0 && axis < s.src[0]->rank(), s, "axis out of range");
    dims.push_back(s.src[0]->dim(static_cast<size_t>(axis)));
  }
  return g.shape(dims);
}

const Shape* pad_shape(Graph& g, const NodeSpec& s) {
  NodeRef x = s.src[0];
  const size_t rank = x->rank();
  require(s.src.size() == 1 + 2 * rank && s.ints.size() == rank, s,
          "needs before, after and interior for every axis");
  std::vector<NodeRef> dims;
  for (size_t i = 0; i < rank; ++i) {
    NodeRef inner = x->dim(i);
    // n elements with k zeros between them take n + (n-1)*k places; none when n is 0.
    if (s.ints[i] > 0)
      inner = g.alu(Op::Max,
                    {g.index(0), g.sub(g.mul(inner, g.index(s.ints[i] + 1)), g.index(s.ints[i]))});
    dims.push_back(g.add(g.add(inner, s.src[1 + i]), s.src[1 + rank + i]));
  }
  return g.shape(dims);
}

const Shape* window_shape(Graph& g, const NodeSpec& s) {
  require(s.ints.size() == 4, s, "needs axis, size, stride, dilation");
  NodeRef x = s.src[0];
  std::vector<NodeRef> dims(x->shape->span().begin(), x->shape->span().end());
  const int64_t axis = s.ints[0], size = s.ints[1], stride = s.ints[2], dilation = s.ints[3];
  require(axis >= 0 && axis < x->rank(), s, "axis out of range");
  NodeRef& o = dims[static_cast<size_t>(axis)];
  // outputs = (n - dilation*(size-1) - 1) // stride + 1
  o = g.add(g.idiv(g.sub(o, g.index(dilation * (size - 1) + 1)), g.index(stride)), g.index(1));
  dims.push_back(g.index(size));
  return g.shape(dims);
}

const Shape* unwindow_shape(Graph& g, const NodeSpec& s) {
  require(s.ints.size() == 4 && s.src[0]->rank() >= 2, s,
          "needs axis, size, stride, dilation and a window axis");
  std::vector<NodeRef> dims(s.src[0]->shape->span().begin(), s.src[0]->shape->span().end());
  dims[static_cast<size_t>(s.ints[0])] = s.src[1];
  return g.shape(dims);
}

const Shape* gather_shape(Graph& g, const NodeSpec& s) {
  NodeRef x = s.src[0], index = s.src[1];
  require(x->rank() == index->rank() && s.ints.size() == 1, s,
          "index and source have different ranks");
  return g.shape(index->shape->span());
}

const Shape* cat_shape(Graph& g, const NodeSpec& s) {
  NodeRef first = s.src[0];
  require(s.ints.size() == 1 && s.ints[0] >= 0 && s.ints[0] < first->rank(), s,
          "axis out of range");
  std::vector<NodeRef> dims(first->shape->span().begin(), first->shape->span().end());
  NodeRef& total = dims[static_cast<size_t>(s.ints[0])];
  for (NodeRef x : s.src.subspan(1)) {
    require(x->rank() == first->rank(), s, "parts have different ranks");
    total = g.add(total, x->dim(static_cast<size_t>(s.ints[0])));
  }
  return g.shape(dims);
}

const Shape* without_axes(Graph& g, NodeRef x, std::span<const int64_t> axes) {
  std::vector<NodeRef> dims;
  for (size_t i = 0; i < x->rank(); ++i)
    if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end())
      dims.push_back(x->dim(i));
  return g.shape(dims);
}

const Shape* loop_shape(Graph& g, const NodeSpec& s) {
  // ints: loop, elems, carries, stacked, axes...
  require(s.ints.size() >= 4, s, "needs loop, elems, carries, stacked");
  const bool tensor = s.ints[1] > 0 && s.ints.size() > 4;
  if (!tensor) return g.scalar_shape();
  if (s.ints[3] != 0) return s.src[0]->shape;
  return without_axes(g, s.src[0], s.ints.subspan(4));
}

const Shape* get_shape(Graph& g, const NodeSpec& s) {
  if (s.src.size() == 1 && s.src[0]->op == Op::Store) return g.scalar_shape();
  require(s.src.size() == 1 && s.ints.size() == 1 && is_tuple(s.src[0]->op), s,
          "takes a node of several results");
  const auto k = static_cast<size_t>(s.ints[0]);
  require(k < result_count(s.src[0]), s, "there are fewer results");
  return result_shape(g, s.src[0], k);
}

const Shape* shrink_shape(Graph& g, const NodeSpec& s) {
  const size_t rank = s.src[0]->rank();
  require(s.src.size() == 1 + 2 * rank && s.ints.size() == rank, s,
          "needs begin, size and step for every axis");
  return g.shape(dims_from(s, 1 + rank));
}

const Shape* infer_shape(Graph& g, const NodeSpec& s) {
  switch (s.op) {
    case Op::Iota:
    case Op::Buffer:
    case Op::Param: return g.shape(s.src);
    case Op::Reshape:
    case Op::Expand: return g.shape(dims_from(s, 1));
    case Op::Permute: return permute_shape(g, s);
    case Op::Pad: return pad_shape(g, s);
    case Op::Shrink: return shrink_shape(g, s);
    case Op::Window: return window_shape(g, s);
    case Op::Unwindow: return unwindow_shape(g, s);
    case Op::Gather: return gather_shape(g, s);
    case Op::Cat: return cat_shape(g, s);
    case Op::CumCount: return s.src[1]->shape;
    case Op::Reduce:
      return s.ints.size() > 1  ? without_axes(g, s.src[0], s.ints.subspan(1))
             : s.src[0]->rank() ? s.src[0]->shape
                                : g.scalar_shape();
    case Op::Loop: return loop_shape(g, s);
    case Op::Get: return get_shape(g, s);
    case Op::Flip:
    case Op::Scan:
    case Op::Contiguous:
    case Op::Detach:
    case Op::Copy:
    case Op::Assign:
    case Op::Scatter:
    case Op::Stage:
    case Op::ToIndex: return s.src[0]->shape;
    default: return is_alu(s.op) ? alu_shape(g, s) : g.scalar_shape();
  }
}

DeviceId infer_device(const NodeSpec& s) {
  if (s.op == Op::Buffer) return static_cast<DeviceId>(s.ints[1]);
  if (s.op == Op::Param) return s.ints.size() > 1 ? static_cast<DeviceId>(s.ints[1]) : 0;
  if (s.op == Op::Copy) return static_cast<DeviceId>(s.ints[0]);
  for (NodeRef x : s.src)
    if (x->device) return x->device;
  return 0;
}

// ---- bounds

Bounds mul_bounds(Bounds a, Bounds b) {
  const Int128 p[] = {static_cast<Int128>(a.min) * b.min, static_cast<Int128>(a.min) * b.max,
                      static_cast<Int128>(a.max) * b.min, static_cast<Int128>(a.max) * b.max};
  return {saturating(*std::min_element(p, p + 4)), saturating(*std::max_element(p, p + 4))};
}

Int128 floor_div(Int128 a, Int128 b) {
  const Int128 q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

Bounds idiv_bounds(Bounds a, Bounds b) {
  if (b.min <= 0 && b.max >= 0) {
    // The divisor may be 0 (result 0) or +-1 (result +-a).
    const int64_t m = saturating(std::max(-static_cast<Int128>(a.min), static_cast<Int128>(a.max)));
    const int64_t largest = std::max<int64_t>(std::max<int64_t>(m, a.max), 0);
    return {saturating(-static_cast<Int128>(largest) - 1), largest};
  }
  const Int128 q[] = {floor_div(a.min, b.min), floor_div(a.min, b.max), floor_div(a.max, b.min),
                      floor_div(a.max, b.max)};
  return {saturating(*std::min_element(q, q + 4)), saturating(*std::max_element(q, q + 4))};
}

Bounds mod_bounds(Bounds a, Bounds b) {
  if (b.min > 0) {
    if (a.min >= 0 && a.max < b.min) return a;
    return {0, b.max - 1};
  }
  return {std::min<int64_t>(0, saturating(static_cast<Int128>(b.min) + 1)),
          std::max<int64_t>(0, saturating(static_cast<Int128>(b.max) - 1))};
}

Bounds compare_bounds(Op op, Bounds a, Bounds b) {
  const bool never_lt = a.min >= b.max, always_lt = a.max < b.min;
  const bool never_le = a.min > b.max, always_le = a.max <= b.min;
  const bool never_eq = a.max < b.min || a.min > b.max;
  const bool always_eq = a.min == a.max && b.min == b.max && a.min == b.min;
  switch (op) {
    case Op::Lt: return {always_lt, !never_lt};
    case Op::Le: return {always_le, !never_le};
    case Op::Eq: return {always_eq, !never_eq};
    default: return {never_eq, !always_eq};
  }
}

/// True where a u64 value may lie above int64's maximum, which bounds cannot say: nothing that
/// grows with the value is then known.
bool unknown_u64(NodeRef n) {
  return n->dtype == DType::U64 && n->vmax == std::numeric_limits<int64_t>::max();
}

/// Sums and products of 64-bit data wrap; bounds that met int64's limits may have.
bool may_wrap(Op op, DType dtype, Bounds r) {
  if (dtype != DType::I64 && dtype != DType::U64) return false;
  const bool grows = op == Op::Add || op == Op::Mul || op == Op::Neg || op == Op::IDiv;
  return grows && (r.min == kMin || r.max == kMax);
}

bool within(Bounds inner, Bounds outer) { return inner.min >= outer.min && inner.max <= outer.max; }

}  // namespace

Bounds dtype_bounds(DType dtype) {
  switch (dtype) {
    case DType::Bool: return {0, 1};
    case DType::U64: return {0, kMax};
    default: break;
  }
  if (!is_int(dtype)) return {kMin, kMax};
  const int width = bits(dtype);
  if (is_unsigned(dtype)) return {0, (int64_t{1} << width) - 1};
  if (width == 64) return {kMin, kMax};
  return {-(int64_t{1} << (width - 1)), (int64_t{1} << (width - 1)) - 1};
}

namespace {
/// What is known although an operand may be larger than bounds can say.
Bounds unknown_u64_bounds(const NodeSpec& s, Bounds a, Bounds b) {
  switch (s.op) {
    case Op::And: return {0, std::min(a.max, b.max)};
    case Op::Min: return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case Op::Max: return {std::max(a.min, b.min), kMax};
    case Op::Mod: return b.min > 0 && b.max < kMax ? Bounds{0, b.max - 1} : Bounds{0, kMax};
    case Op::Where: return {std::min(b.min, s.src[2]->vmin), kMax};
    default: return dtype_bounds(s.dtype);
  }
}
}  // namespace

namespace {

Bounds bounds_of(NodeRef n) { return {n->vmin, n->vmax}; }

Bounds cast_bounds(const NodeSpec& s, Bounds full) {
  if (is_float(s.src[0]->dtype) || s.dtype == DType::Bool) return full;
  const Bounds from = bounds_of(s.src[0]);
  return within(from, full) && !unknown_u64(s.src[0]) ? from : full;
}

/// Clamped to [0, size).
Bounds to_index_bounds(const NodeSpec& s) {
  const int64_t last = std::max<int64_t>(0, s.src[1]->vmax - 1);
  return {std::clamp<int64_t>(s.src[0]->vmin, 0, last),
          std::clamp<int64_t>(s.src[0]->vmax, 0, last)};
}

/// And, Or, Not and shifts.
Bounds bitwise_bounds(const NodeSpec& s, Bounds a, Bounds b, Bounds full) {
  const bool boolean = s.dtype == DType::Bool, natural = a.min >= 0 && b.min >= 0;
  switch (s.op) {
    case Op::Not: return boolean ? Bounds{1 - a.max, 1 - a.min} : full;
    case Op::Or: return boolean ? Bounds{std::max(a.min, b.min), std::max(a.max, b.max)} : full;
    case Op::And:
      if (boolean) return {std::min(a.min, b.min), std::min(a.max, b.max)};
      if (natural) return {0, std::min(a.max, b.max)};
      // One of them alone: the other has no bit that counts above it.
      return a.min >= 0 ? Bounds{0, a.max} : b.min >= 0 ? Bounds{0, b.max} : full;
    case Op::Shr:
      if (!natural) return full;
      return b.min == b.max && b.max < 63 ? Bounds{a.min >> b.min, a.max >> b.min}
                                          : Bounds{0, a.max};
    default: return full;
  }
}

/// Bounds by exact arithmetic; whether the dtype can hold them is the caller's question.
Bounds arithmetic_bounds(const NodeSpec& s, Bounds a, Bounds b, Bounds full) {
  const bool natural = a.min >= 0 && b.min > 0;
  switch (s.op) {
    case Op::Neg:
      return {saturating(-static_cast<Int128>(a.max)), saturating(-static_cast<Int128>(a.min))};
    case Op::Add:
      return {saturating(static_cast<Int128>(a.min) + b.min),
              saturating(static_cast<Int128>(a.max) + b.max)};
    case Op::Mul: return mul_bounds(a, b);
    case Op::IDiv: return idiv_bounds(a, b);
    case Op::Mod: return mod_bounds(a, b);
    case Op::CDiv: return natural ? idiv_bounds(a, b) : full;
    case Op::CMod: return natural ? mod_bounds(a, b) : full;
    case Op::Max: return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case Op::Min: return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case Op::Where: return {std::min(b.min, s.src[2]->vmin), std::max(b.max, s.src[2]->vmax)};
    default: return bitwise_bounds(s, a, b, full);
  }
}

Bounds const_bounds(const NodeSpec& s) {
  if (is_float(s.dtype)) return dtype_bounds(s.dtype);
  // u64 constants above int64's maximum clamp: bounds are then [max, max], which no proof relies on
  // exactly.
  const bool huge = s.dtype == DType::U64 && s.ints[0] < 0;
  return huge ? Bounds{kMax, kMax} : Bounds{s.ints[0], s.ints[0]};
}

Bounds positions_below(NodeRef size) { return {0, std::max<int64_t>(0, size->vmax - 1)}; }

Bounds union_bounds(std::span<const NodeRef> parts) {
  Bounds b = bounds_of(parts[0]);
  for (NodeRef x : parts) b = {std::min(b.min, x->vmin), std::max(b.max, x->vmax)};
  return b;
}

/// A loop that runs once or not at all has one position, yet no constant may take its place: a term
/// without the range would be computed in any case.
Bounds loop_bounds(NodeRef size) {
  Bounds b = positions_below(size);
  if (size->vmin < size->vmax && b.max == 0) b.max = 1;
  return b;
}

}  // namespace

Bounds alu_bounds(const NodeSpec& s) {
  const Bounds full = dtype_bounds(s.dtype);
  if (is_float(s.dtype)) return full;
  if (s.op == Op::ToIndex) return to_index_bounds(s);
  if (s.op == Op::Cast) return cast_bounds(s, full);
  if (s.op == Op::Bitcast || has_trait(s.op, kWords) || has_trait(s.op, kTable) ||
      is_float(s.src.back()->dtype))
    return full;
  const Bounds a = bounds_of(s.src[0]);
  const Bounds b = s.src.size() > 1 ? bounds_of(s.src[1]) : Bounds{0, 0};
  if (unknown_u64(s.src[0]) || (s.src.size() > 1 && unknown_u64(s.src[1])))
    return unknown_u64_bounds(s, a, b);
  if (has_trait(s.op, kBoolResult)) return compare_bounds(s.op, a, b);
  const Bounds r = arithmetic_bounds(s, a, b, full);
  return within(r, full) && !may_wrap(s.op, s.dtype, r) ? r : full;
}

namespace {

Bounds infer_bounds(const NodeSpec& s) {
  if (is_alu(s.op) || s.op == Op::CDiv || s.op == Op::CMod) return alu_bounds(s);
  switch (s.op) {
    case Op::Const: return const_bounds(s);
    case Op::Variable: return {s.ints[0], s.ints[1]};
    case Op::WorkId:
    case Op::Range: return loop_bounds(s.src[0]);
    case Op::Iota: return positions_below(s.src[static_cast<size_t>(s.ints[0])]);
    // A Bind is as wide as its variable: a graph must not fold what is only true of this run.
    case Op::Bind:
    case Op::Splat:
    case Op::Lane:
    case Op::Contiguous:
    case Op::Detach:
    case Op::Copy:
    case Op::Reshape:
    case Op::Expand:
    case Op::Permute:
    case Op::Shrink:
    case Op::Flip:
    case Op::Window:
    case Op::Stage: return bounds_of(s.src[0]);
    case Op::Pad:
    case Op::Unwindow:
    case Op::Gather:
      return {std::min<int64_t>(0, s.src[0]->vmin), std::max<int64_t>(0, s.src[0]->vmax)};
    case Op::Vec:
    case Op::Cat: return union_bounds(s.src);
    default: return dtype_bounds(s.dtype);
  }
}

}  // namespace

Inferred infer(Graph& g, const NodeSpec& s) {
  const Bounds b = infer_bounds(s);
  return {infer_shape(g, s), infer_device(s), b.min, b.max};
}

}  // namespace weft
