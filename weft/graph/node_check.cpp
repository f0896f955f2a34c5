// node_problem: one row per op says in which dialects it may appear and what its sources, integers
// and dtypes must be. Everything infer() relies on is checked here.
#include <algorithm>
#include <array>

#include "weft/base/checked.h"
#include "weft/graph/program.h"
#include "weft/graph/schema.h"
#include "weft/graph/stage.h"
#include "weft/graph/tuple.h"
#include "weft/graph/verify_parts.h"

namespace weft {
namespace {

constexpr uint8_t T = static_cast<uint8_t>(Dialect::Tensor);
constexpr uint8_t K = static_cast<uint8_t>(Dialect::Kernel);
constexpr uint8_t L = static_cast<uint8_t>(Dialect::Linear);

using Spec = NodeSpec;
using Check = const char* (*)(const Spec& s);

// Window geometry beyond this is a mistake, and would overflow the size formula.
constexpr int64_t kMaxWindow = int64_t{1} << 31;
// Every node may make a shape of its own: without a limit memory is the square of the input.
constexpr size_t kMaxRank = 64;

// ---- what rows are made of; each returns null or what is wrong

bool is_size(NodeRef n) { return n->dtype == DType::Index && n->rank() == 0; }
/// An index known to be negative is no size; what is symbolic is checked when it is bound.
bool may_be_size(NodeRef n) { return is_size(n) && n->vmax >= 0; }

const char* sizes(std::span<const NodeRef> list) {
  if (list.size() > kMaxRank) return "has more than 64 axes";
  for (NodeRef n : list)
    if (!may_be_size(n)) return "sizes must be index scalars of at least 0";
  int64_t count = 1;
  for (NodeRef n : list) {
    if (n->op != Op::Const) continue;
    const auto product = checked_mul(count, std::max<int64_t>(n->vmin, 1));
    if (!product || *product > (int64_t{1} << 56)) return "has too many elements";
    count = *product;
  }
  return nullptr;
}

bool axis_of(int64_t axis, size_t rank) { return axis >= 0 && axis < static_cast<int64_t>(rank); }

const char* distinct_axes(std::span<const int64_t> axes, size_t rank) {
  uint64_t seen = 0;  // ranks are at most 64
  for (const int64_t axis : axes) {
    if (!axis_of(axis, rank)) return "an axis is out of range";
    if (seen >> axis & 1) return "an axis is listed twice";
    seen |= uint64_t{1} << axis;
  }
  return nullptr;
}

const char* fold_kind(int64_t kind, DType dtype) {
  if (kind < 1 || kind >= kFoldCount) return "is no fold";
  const bool bitwise =
      kind == static_cast<int64_t>(Fold::And) || kind == static_cast<int64_t>(Fold::Or);
  return bitwise && is_float(dtype) ? "folds floats bit by bit" : nullptr;
}

const char* same_dtype(const Spec& s) {
  return s.dtype == s.src[0]->dtype ? nullptr : "changes the dtype";
}
bool is_static_dim(NodeRef n) { return n->op == Op::Const; }

// ---- leaves

const char* constant(const Spec& s) {
  if (s.dtype == DType::Void) return "a constant has a dtype";
  const bool value = Value::from_raw_bits(s.dtype, static_cast<uint64_t>(s.ints[0])).has_value();
  return value ? nullptr : "bits are no value of the dtype";
}

const char* variable(const Spec& s) {
  if (s.dtype != DType::Index) return "a variable is an index";
  if (s.text.empty()) return "a variable has a name";
  if (s.ints[0] > s.ints[1]) return "min is above max";
  return s.ints[2] >= 1 ? nullptr : "multiple must be at least 1";
}

const char* bind(const Spec& s) {
  if (s.src[0]->op != Op::Variable || s.src[1]->op != Op::Const ||
      s.src[1]->dtype != DType::Index || s.dtype != DType::Index)
    return "binds a variable to an index constant";
  const int64_t v = s.src[1]->vmin;
  const auto limits = s.src[0]->ints();
  return v >= limits[0] && v <= limits[1] && v % limits[2] == 0 ? nullptr
                                                                : "the value is not allowed";
}

const char* stored(const Spec& s) {
  return is_data(s.dtype) ? sizes(s.src) : "its dtype cannot live in a buffer";
}

const char* buffer(const Spec& s) {
  return s.ints[1] < 0 || s.ints[1] > UINT16_MAX ? "no such device" : stored(s);
}

const char* param(const Spec& s) {
  if (s.ints[0] < 0 || s.ints[0] > INT32_MAX) return "no such slot";
  if (s.ints.size() > 2) return "it has a slot and at most a device";
  if (s.ints.size() == 2 && (s.ints[1] <= 0 || s.ints[1] > UINT16_MAX)) return "no such device";
  return stored(s);
}

bool is_loop_integer(DType d) { return d == DType::Index || d == DType::I32 || d == DType::I64; }

const char* range(const Spec& s) {
  if (!is_loop_integer(s.dtype) || s.src[0]->dtype != s.dtype || s.src[0]->rank() != 0)
    return "a range and its size are indices";
  if (s.ints[0] < 0) return "its id must be at least 0";
  if (s.ints[1] < 0 || s.ints[1] >= kBindingCount) return "no such binding";
  if (s.ints.size() == 2) return nullptr;
  const auto binding = static_cast<Binding>(s.ints[1]);
  if (binding != Binding::Grid && binding != Binding::Group) return "only grid and group have axes";
  return s.ints.size() == 3 && s.ints[2] > 0 && s.ints[2] < kLaunchAxes ? nullptr : "no such axis";
}

const char* loop_value(const Spec& s) {
  if (s.dtype == DType::Void) return "has no dtype";
  return s.ints[0] >= 0 && s.ints[0] < 256 ? nullptr : "k is out of range";
}

const char* iota(const Spec& s) {
  if (!is_int(s.dtype) && s.dtype != DType::Index) return "positions are integers";
  if (!axis_of(s.ints[0], s.src.size())) return "axis is out of range";
  return sizes(s.src);
}

// ---- movement

const char* reshape(const Spec& s) {
  const auto dims = s.src.subspan(1);
  if (const char* problem = sizes(dims)) return problem;
  const auto old = s.src[0]->shape->span();
  if (!std::all_of(dims.begin(), dims.end(), is_static_dim)) return same_dtype(s);
  if (!std::all_of(old.begin(), old.end(), is_static_dim)) return same_dtype(s);
  int64_t count = 1;
  for (NodeRef d : dims) count *= d->vmin;
  return count == static_numel(s.src[0]) ? same_dtype(s) : "changes the number of elements";
}

const char* expand(const Spec& s) {
  const auto dims = s.src.subspan(1);
  NodeRef x = s.src[0];
  if (const char* problem = sizes(dims)) return problem;
  if (dims.size() != x->rank()) return "changes the rank";
  for (size_t i = 0; i < dims.size(); ++i)
    if (dims[i] != x->dim(i) && !is_int_const(x->dim(i), 1)) return "expands an axis that is not 1";
  return same_dtype(s);
}

const char* permute(const Spec& s) {
  if (s.ints.size() != s.src[0]->rank()) return "lists every axis";
  const char* problem = distinct_axes(s.ints, s.src[0]->rank());
  return problem ? problem : same_dtype(s);
}

const char* pad(const Spec& s) {
  NodeRef x = s.src[0];
  if (s.src.size() != 1 + 2 * x->rank() || s.ints.size() != x->rank())
    return "needs before, after and interior for every axis";
  for (const int64_t interior : s.ints)
    if (interior < 0 || interior > kMaxWindow) return "interior is out of range";
  if (const char* problem = sizes(s.src.subspan(1, x->rank()))) return problem;
  const char* problem = sizes(s.src.subspan(1 + x->rank()));
  return problem ? problem : same_dtype(s);
}

/// Last element read: begin + step*(size-1) < n, where all of it is known.
bool shrink_fits(NodeRef begin, NodeRef size, int64_t step, NodeRef n) {
  if (!is_static_dim(begin) || !is_static_dim(size) || !is_static_dim(n)) return true;
  if (begin->vmin < 0 || begin->vmin > n->vmin) return false;
  return size->vmin == 0 || size->vmin - 1 <= (n->vmin - 1 - begin->vmin) / step;
}

const char* shrink(const Spec& s) {
  NodeRef x = s.src[0];
  const size_t rank = x->rank();
  if (s.src.size() != 1 + 2 * rank || s.ints.size() != rank)
    return "needs begin, size and step for every axis";
  if (const char* problem = sizes(s.src.subspan(1, rank))) return problem;
  if (const char* problem = sizes(s.src.subspan(1 + rank))) return problem;
  for (size_t i = 0; i < rank; ++i) {
    if (s.ints[i] < 1) return "steps must be at least 1";
    if (!shrink_fits(s.src[1 + i], s.src[1 + rank + i], s.ints[i], x->dim(i)))
      return "reaches past its source";
  }
  return same_dtype(s);
}

const char* flip(const Spec& s) {
  const char* problem = distinct_axes(s.ints, s.src[0]->rank());
  return problem ? problem : same_dtype(s);
}

const char* window_geometry(const Spec& s, size_t rank) {
  if (!axis_of(s.ints[0], rank)) return "axis is out of range";
  for (const int64_t v : s.ints.subspan(1))
    if (v < 1 || v > kMaxWindow) return "size, stride and dilation are at least 1";
  return same_dtype(s);
}

const char* window(const Spec& s) {
  const size_t rank = s.src[0]->rank();
  if (const char* problem = window_geometry(s, rank)) return problem;
  if (rank == kMaxRank) return "has more than 64 axes";
  NodeRef n = s.src[0]->dim(static_cast<size_t>(s.ints[0]));
  const int64_t reach = s.ints[3] * (s.ints[1] - 1) + 1;
  return n->vmax < reach ? "the window is larger than the axis" : nullptr;
}

const char* unwindow(const Spec& s) {
  const size_t rank = s.src[0]->rank();
  if (rank < 2) return "needs a window axis";
  if (const char* problem = window_geometry(s, rank - 1)) return problem;
  if (!is_int_const(s.src[0]->dim(rank - 1), s.ints[1])) return "the last axis is not the window";
  return sizes(s.src.subspan(1));
}

/// Axes of `inner` other than `axis` are no longer than those of `outer`, where that is known.
bool axes_fit(NodeRef inner, NodeRef outer, int64_t axis) {
  for (size_t i = 0; i < inner->rank(); ++i) {
    NodeRef a = inner->dim(i), b = outer->dim(i);
    if (static_cast<int64_t>(i) != axis && is_static_dim(a) && is_static_dim(b) &&
        a->vmin > b->vmin)
      return false;
  }
  return true;
}

const char* gather(const Spec& s) {
  NodeRef x = s.src[0], index = s.src[1];
  if (!is_int(index->dtype)) return "indices are integers";
  if (index->rank() != x->rank()) return "index and source have different ranks";
  if (!axis_of(s.ints[0], x->rank())) return "axis is out of range";
  return axes_fit(index, x, s.ints[0]) ? same_dtype(s) : "index is larger than its source";
}

// ---- elementwise

bool takes(Op op, DType d) {
  if (d == DType::Void) return false;
  if (has_trait(op, kFloatOnly)) return is_float(d);
  if (has_trait(op, kIntOnly) && is_float(d)) return false;
  return d != DType::Bool || (op != Op::IDiv && op != Op::Mod && op != Op::Shl && op != Op::Shr);
}

const char* shapes_agree(const Spec& s) {
  const Shape* shape = nullptr;
  for (NodeRef x : s.src) {
    if (x->rank() == 0) continue;
    if (shape && shape != x->shape) return "operands have different shapes";
    shape = x->shape;
  }
  return nullptr;
}

const char* lanes_agree(const Spec& s) {
  for (NodeRef x : s.src)
    if (x->lanes != s.lanes) return "operands have different lanes";
  return nullptr;
}

const char* elementwise(const Spec& s) {
  const bool words = has_trait(s.op, kWords);
  const size_t first = s.op == Op::Where ? 1 : words ? 2 : 0;
  if (first == 1 && s.src[0]->dtype != DType::Bool) return "the condition is not bool";
  const DType operand = s.src[first]->dtype, sum = s.op == Op::Dot2 ? DType::F32 : DType::I32;
  if (words && (s.src[0]->dtype != DType::U32 || s.src[1]->dtype != DType::U32 || operand != sum))
    return "takes words of 32 bits and its sum";
  for (NodeRef x : s.src.subspan(first))
    if (x->dtype != operand) return "operands have different dtypes";
  if (!takes(s.op, operand)) return "does not take this dtype";
  if (s.dtype != (has_trait(s.op, kBoolResult) ? DType::Bool : operand))
    return "the result has another dtype";
  if (const char* problem = shapes_agree(s)) return problem;
  return lanes_agree(s);
}

const char* cast(const Spec& s) {
  const DType from = s.src[0]->dtype, to = s.dtype;
  if (from == DType::Void || to == DType::Void) return "casts void";
  if (to == DType::Index && from != DType::Index) return "data becomes an index by toindex only";
  if (from == DType::Index && !is_int(to) && to != DType::Index)
    return "an index becomes an integer";
  return lanes_agree(s);
}

const char* bitcast(const Spec& s) {
  if (!is_data(s.src[0]->dtype) || !is_data(s.dtype)) return "only data has bits";
  if (bits(s.src[0]->dtype) != bits(s.dtype)) return "widths differ";
  return s.dtype == DType::Bool ? "bits may be no bool" : lanes_agree(s);
}

const char* to_index(const Spec& s) {
  if (!is_int(s.src[0]->dtype)) return "takes an integer";
  if (!is_size(s.src[1]) || s.dtype != DType::Index) return "the size and the result are indices";
  return nullptr;
}

// ---- loops with state

bool all_ranges(std::span<const NodeRef> list) {
  return std::all_of(list.begin(), list.end(), [](NodeRef n) { return n->op == Op::Range; });
}

/// Tensor: (x) over axes; kernel: (value, ranges...).
const char* reduce(const Spec& s) {
  if (const char* problem = fold_kind(s.ints[0], s.dtype)) return problem;
  if (s.src.size() > 1 && (s.ints.size() > 1 || !all_ranges(s.src.subspan(1))))
    return "takes one tensor and axes, or a value and ranges";
  if (s.src.size() > 1 && s.src[0]->rank() > 0) return "a kernel reduces scalars";
  const char* problem = distinct_axes(s.ints.subspan(1), s.src[0]->rank());
  return problem ? problem : same_dtype(s);
}

const char* scan(const Spec& s) {
  if (const char* problem = fold_kind(s.ints[0], s.dtype)) return problem;
  if (s.src.size() == 1 && s.ints.size() == 2)
    return axis_of(s.ints[1], s.src[0]->rank()) ? same_dtype(s) : "axis is out of range";
  const bool kernel = s.src.size() == 2 && s.ints.size() == 1 && all_ranges(s.src.subspan(1));
  return kernel && s.src[0]->rank() == 0 ? same_dtype(s)
                                         : "takes one tensor and an axis, or a value and a range";
}

const char* loop_states(std::span<const NodeRef> inits, std::span<const NodeRef> bodies) {
  for (size_t k = 0; k < inits.size(); ++k) {
    if (inits[k]->rank() != 0 || bodies[k]->rank() != 0) return "carries are scalars";
    if (inits[k]->dtype != bodies[k]->dtype) return "a body has another dtype than its carry";
  }
  return nullptr;
}

const char* tensor_loop(const Spec& s, size_t elems) {
  for (NodeRef x : s.src.first(elems))
    if (x->shape != s.src[0]->shape || x->rank() == 0) return "elements have different shapes";
  const auto axes = s.ints.subspan(4);
  if (!std::is_sorted(axes.begin(), axes.end())) return "axes are listed in order";
  return distinct_axes(axes, s.src[0]->rank());
}

const char* loop(const Spec& s) {
  const int64_t elems = s.ints[1], carries = s.ints[2];
  if (elems < 0 || elems > 255 || carries < 1 || carries > 255) return "has 1 to 255 carries";
  if (s.ints[3] < 0 || s.ints[3] > 1) return "stacked is 0 or 1";
  const auto e = static_cast<size_t>(elems), c = static_cast<size_t>(carries);
  if (s.src.size() < e + 2 * c) return "needs an init and a body for every carry";
  if (const char* problem = loop_states(s.src.subspan(e, c), s.src.subspan(e + c, c)))
    return problem;
  const auto rest = s.src.subspan(e + 2 * c);
  if (elems == 0 && s.ints.size() == 4 && !rest.empty() && all_ranges(rest)) return nullptr;
  if (elems == 0 || s.ints.size() == 4 || !rest.empty())
    return "runs over elements and axes, or over ranges";
  return tensor_loop(s, e);
}

/// Folds into one place happen once each and in order, so what they find is defined.
const char* fetched(const Spec& s, NodeRef store) {
  if (s.ints[0] != 0 || !counts_repeats(static_cast<Fold>(store->int_arg(0))))
    return "takes what a store that adds or multiplies found";
  return s.dtype == store->src(2)->dtype ? nullptr : "changes the dtype";
}

const char* get(const Spec& s) {
  NodeRef tuple = s.src[0];
  if (tuple->op == Op::Store) return fetched(s, tuple);
  if (!is_tuple(tuple->op)) return "takes one of several results";
  if (s.ints[0] < 0 || s.ints[0] >= static_cast<int64_t>(result_count(tuple)))
    return "there are fewer results";
  NodeRef like = result_like(tuple, static_cast<size_t>(s.ints[0]));
  return s.dtype == like->dtype ? nullptr : "changes the dtype";
}

// ---- storage

const char* copy(const Spec& s) {
  return s.ints[0] >= 0 && s.ints[0] <= UINT16_MAX ? same_dtype(s) : "no such device";
}

const char* assign(const Spec& s) {
  NodeRef view = s.src[1], value = s.src[2];
  if (value->shape != view->shape) return "value and view have different shapes";
  if (view->dtype != s.dtype || value->dtype != s.dtype) return "changes the dtype";
  return same_dtype(s);
}

const char* cat(const Spec& s) {
  NodeRef first = s.src[0];
  if (!axis_of(s.ints[0], first->rank())) return "axis is out of range";
  for (NodeRef x : s.src) {
    if (x->dtype != s.dtype) return "changes the dtype";
    if (x->rank() != first->rank()) return "parts have different ranks";
    for (size_t a = 0; a < x->rank(); ++a)
      if (static_cast<int64_t>(a) != s.ints[0] && x->dim(a) != first->dim(a))
        return "parts differ outside the axis";
  }
  return nullptr;
}

const char* scatter(const Spec& s) {
  NodeRef base = s.src[0], index = s.src[1], value = s.src[2];
  if (const char* problem = gather(s)) return problem;
  if (index->shape != value->shape) return "index and value have different shapes";
  if (value->dtype != s.dtype) return "changes the dtype";
  if (s.ints[1] != 0 && is_float8(s.dtype)) return "8-bit floats are combined in f32";
  if (s.ints[1] != 0)
    if (const char* problem = fold_kind(s.ints[1], s.dtype)) return problem;
  if (s.ints[2] == 2 && (s.ints[1] != 0 || base->shape != index->shape)) return "permutes nothing";
  return s.ints[2] >= 0 && s.ints[2] <= 2 ? nullptr : "unique is 0, 1 or 2";
}

const char* cumcount(const Spec& s) { return is_int(s.dtype) ? gather(s) : "counts are integers"; }

const char* stage(const Spec& s) {
  if (s.src.empty() || !all_ranges(s.src.subspan(1))) return "takes a value and ranges";
  if (const char* problem = stage_problem(s)) return problem;
  return same_dtype(s);
}

// ---- kernels

const char* access(const Spec& s, size_t valid_at) {
  const bool ranges = valid_at + 1 == kStoreRanges;
  if (s.src.size() < valid_at || (!ranges && s.src.size() > valid_at + 1))
    return "takes param, index, valid";
  const bool shared = s.src[0]->op == Op::Local || s.src[0]->op == Op::Barrier;
  if (s.src[0]->op != Op::Param && !shared) return "accesses no param";
  if (!is_loop_integer(s.src[1]->dtype) || s.src[1]->rank() != 0) return "the index is no index";
  if (s.src.size() > valid_at && s.src[valid_at]->dtype != DType::Bool) return "valid is not bool";
  return nullptr;
}

const char* load(const Spec& s) {
  if (const char* problem = access(s, 2)) return problem;
  return same_dtype(s);
}

const char* store(const Spec& s) {
  if (const char* problem = access(s, 3)) return problem;
  if (s.dtype != DType::Void) return "has no dtype";
  if (s.src[2]->rank() != 0) return "stores scalars";
  if (s.src[2]->dtype != s.src[0]->dtype) return "stores another dtype than the param's";
  for (size_t i = kStoreRanges; i < s.src.size(); ++i)
    if (!is_loop_integer(s.src[i]->dtype) || s.src[i]->rank() != 0) return "a range is no index";
  if (s.ints[0] != 0)
    if (const char* problem = fold_kind(s.ints[0], s.src[2]->dtype)) return problem;
  return s.ints[1] == 0 || s.ints[1] == 1 ? nullptr : "unique is 0 or 1";
}

// ---- linear programs

template <Op kOpener>
const char* follows(const Spec& s) {
  return s.src[0]->op == kOpener ? nullptr : "does not close what it names";
}

const char* set_acc(const Spec& s) {
  if (s.src[0]->op != Op::Acc) return "sets no register";
  if (s.src[1]->dtype != s.src[0]->dtype || s.src[1]->lanes != s.src[0]->lanes)
    return "the register has another dtype";
  return nullptr;
}

const char* get_acc(const Spec& s) {
  if (s.src[0]->op != Op::Acc) return "reads no register";
  return s.lanes == s.src[0]->lanes ? same_dtype(s) : "the register has other lanes";
}

const char* vec(const Spec& s) {
  if (s.src.size() != s.lanes) return "has as many scalars as lanes";
  for (NodeRef x : s.src)
    if (x->dtype != s.dtype || x->lanes != 1) return "is made from scalars of its dtype";
  return nullptr;
}

const char* lane(const Spec& s) {
  if (s.ints[0] < 0 || s.ints[0] >= s.src[0]->lanes) return "no such lane";
  return s.lanes == 1 ? same_dtype(s) : "a lane is a scalar";
}

const char* splat(const Spec& s) { return s.src[0]->lanes == 1 ? same_dtype(s) : "takes a scalar"; }

const char* condition(const Spec& s) {
  return s.src[0]->dtype == DType::Bool ? nullptr : "the condition is not bool";
}

const char* sink(const Spec& s) { return s.dtype == DType::Void ? nullptr : "has no dtype"; }

// ---- the table

struct Row {
  Op op;
  uint8_t dialects;
  size_t least_sources;  // for ops of variable arity
  Check check;
};

constexpr Row kRows[] = {
    {Op::Const, T | K | L, 0, constant},
    {Op::Variable, T | K | L, 0, variable},
    {Op::Bind, T, 2, bind},
    {Op::Buffer, T, 0, buffer},
    {Op::Param, T | K | L, 0, param},
    {Op::Range, K | L, 1, range},
    {Op::Carry, T | K, 0, loop_value},
    {Op::Elem, T, 0, loop_value},
    {Op::Iota, T, 1, iota},
    {Op::Reshape, T, 1, reshape},
    {Op::Expand, T, 1, expand},
    {Op::Permute, T, 1, permute},
    {Op::Pad, T, 1, pad},
    {Op::Shrink, T, 1, shrink},
    {Op::Flip, T, 1, flip},
    {Op::Window, T, 1, window},
    {Op::Unwindow, T, 2, unwindow},
    {Op::Gather, T, 2, gather},
    {Op::Cast, T | K | L, 1, cast},
    {Op::Bitcast, T | K | L, 1, bitcast},
    {Op::ToIndex, K, 2, to_index},
    {Op::Reduce, T | K, 1, reduce},
    {Op::Scan, T | K, 1, scan},
    {Op::Loop, T | K, 1, loop},
    {Op::CumCount, T, 2, cumcount},
    {Op::Get, T | K, 1, get},
    {Op::Function, T, 1, function_problem},
    {Op::Repeat, T, 1, repeat_problem},
    {Op::Call, T, 1, call_problem},
    {Op::Custom, T, 2, custom_problem},
    {Op::Contiguous, T, 1, same_dtype},
    {Op::Detach, T, 1, same_dtype},
    {Op::Copy, T, 1, copy},
    {Op::Assign, T, 3, assign},
    {Op::Scatter, T, 3, scatter},
    {Op::Cat, T, 1, cat},
    {Op::Stage, K, 1, stage},
    {Op::Load, K | L, 2, load},
    {Op::Store, K | L, 3, store},
    {Op::Sink, T | K, 0, sink},
    {Op::Local, L, 1, local_problem},
    {Op::WorkId, L, 1, work_id_problem},
    {Op::Barrier, L, 0, barrier_problem},
    {Op::Shuffle, L, 1, shuffle_problem},
    {Op::EndRange, L, 1, follows<Op::Range>},
    {Op::Acc, L, 1, same_dtype},
    {Op::SetAcc, L, 2, set_acc},
    {Op::GetAcc, L, 1, get_acc},
    {Op::Vec, L, 1, vec},
    {Op::Lane, L, 1, lane},
    {Op::Splat, L, 1, splat},
    {Op::CDiv, L, 2, elementwise},
    {Op::CMod, L, 2, elementwise},
    {Op::If, L, 1, condition},
    {Op::EndIf, L, 1, follows<Op::If>},
};

constexpr Row kElementwise = {Op::Add, T | K | L, 1, elementwise};

constexpr auto kRowOfOp = [] {
  std::array<uint8_t, 256> index{};  // 1 + place in kRows
  for (size_t i = 0; i < std::size(kRows); ++i)
    index[static_cast<uint8_t>(kRows[i].op)] = static_cast<uint8_t>(i + 1);
  return index;
}();

const Row* row_of(Op op) {
  if (const uint8_t at = kRowOfOp[static_cast<uint8_t>(op)]) return &kRows[at - 1];
  return is_alu(op) ? &kElementwise : nullptr;
}

/// Ops whose kernel form has fewer integers than ops.def lists: a range takes the axis' place.
bool count_of_ints_fits(const Spec& s) {
  const Schema& names = schema(s.op);
  if (s.op == Op::Scan) return s.ints.size() == 1 || s.ints.size() == 2;
  return names.open_ended() ? s.ints.size() >= names.fixed() : s.ints.size() == names.fixed();
}

}  // namespace

const char* node_problem(const NodeSpec& s, uint8_t dialects) {
  const Row* row = row_of(s.op);
  if (!row || !(row->dialects & dialects)) return "does not belong in this kind of graph";
  const int arity = info(s.op).arity;
  if (arity >= 0 && s.op != Op::Scan && s.src.size() != static_cast<size_t>(arity))
    return "has another number of sources";
  if (s.src.size() < row->least_sources) return "has too few sources";
  if (!count_of_ints_fits(s)) return "has another number of integers";
  if (!schema(s.op).text && !s.text.empty()) return "has no text";
  if (s.lanes == 0 || (s.lanes > 1 && !(dialects & L))) return "has lanes";
  if (const char* problem = source_without_value(s)) return problem;
  return row->check(s);
}

}  // namespace weft
