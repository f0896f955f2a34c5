// node_problem: one row per op says in which dialects it may appear and what its sources, integers
// and dtypes must be. Everything infer() relies on is checked here.
#include <algorithm>
#include <array>

#include "weft/base/checked.h"
#include "weft/graph/lanes.h"
#include "weft/graph/node_check.h"
#include "weft/graph/program.h"
#include "weft/graph/schema.h"
#include "weft/graph/stage.h"
#include "weft/graph/tuple.h"
#include "weft/graph/verify_parts.h"

namespace weft {
namespace check {

const char* sizes(std::span<const NodeRef> list) {
  if (list.size() > kMaxRank) return "has more than 64 axes";
  for (NodeRef n : list)
    if (!is_size(n) || n->vmax < 0) return "sizes must be index scalars of at least 0";
  int64_t count = 1;
  for (NodeRef n : list) {
    if (n->op != Op::Const) continue;
    const auto product = checked_mul(count, std::max<int64_t>(n->vmin, 1));
    if (!product || *product > (int64_t{1} << 56)) return "has too many elements";
    count = *product;
  }
  return nullptr;
}

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

bool all_ranges(std::span<const NodeRef> list) {
  return std::all_of(list.begin(), list.end(), [](NodeRef n) { return n->op == Op::Range; });
}

}  // namespace check

namespace {

using namespace check;

constexpr uint8_t T = static_cast<uint8_t>(Dialect::Tensor);
constexpr uint8_t K = static_cast<uint8_t>(Dialect::Kernel);
constexpr uint8_t L = static_cast<uint8_t>(Dialect::Linear);

using Check = const char* (*)(const Spec& s);

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
  if (has_trait(s.op, kTable) && operand != DType::U32) return "takes words of 32 bits";
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

// ---- linear programs

template <Op kOpener>
const char* follows(const Spec& s) {
  return s.src[0]->op == kOpener ? nullptr : "does not close what it names";
}

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
    {Op::SetAcc, L, 2, set_acc_problem},
    {Op::GetAcc, L, 1, get_acc_problem},
    {Op::Vec, L, 1, vec_problem},
    {Op::Lane, L, 1, lane_problem},
    {Op::Splat, L, 1, splat_problem},
    {Op::Trn, L, 2, trn_problem},
    {Op::TileLoad, L, 3, tile_load_problem},
    {Op::TileDot2, L, 3, tile_dot_problem},
    {Op::TileDot4, L, 3, tile_dot_problem},
    {Op::TileDot4Signed, L, 3, tile_dot_problem},
    {Op::CDiv, L, 2, elementwise},
    {Op::CMod, L, 2, elementwise},
    {Op::DotPairs, L, 2, elementwise},
    {Op::Ldexp, L, 2, elementwise},
    {Op::Logb, L, 1, elementwise},
    {Op::Mantissa, L, 1, elementwise},
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

/// Scan's kernel form has fewer integers than ops.def lists: a range takes the axis' place. Few
/// Repeats can end early.
bool count_of_ints_fits(const Spec& s) {
  const Schema& names = schema(s.op);
  if (s.op == Op::Scan) return s.ints.size() == 1 || s.ints.size() == 2;
  if (s.op == Op::Repeat) return s.ints.size() == 6 || s.ints.size() == 7;
  return names.open_ended() ? s.ints.size() >= names.fixed() : s.ints.size() == names.fixed();
}

}  // namespace

const char* node_problem(const NodeSpec& s, uint8_t dialects) {
  const Row* row = row_of(s.op);
  if (!row || !(row->dialects & dialects)) return "does not belong in this kind of graph";
  const int arity = info(s.op).arity;
  if (arity >= 0 && s.op != Op::Scan && s.src.size() != static_cast<size_t>(arity))
    return "has another number of sources";
  if (s.ints.size() > UINT16_MAX) return "has too many integers";
  if (s.src.size() < row->least_sources) return "has too few sources";
  if (!count_of_ints_fits(s)) return "has another number of integers";
  if (!schema(s.op).text && !s.text.empty()) return "has no text";
  if (s.lanes == 0 || (s.lanes > 1 && !(dialects & L))) return "has lanes";
  if (const char* problem = source_without_value(s)) return problem;
  return row->check(s);
}

}  // namespace weft
