// What the table of node_check.cpp is made of, by topic: each check returns null or what is wrong.
#pragma once
#include "weft/graph/graph.h"

namespace weft::check {

using Spec = NodeSpec;

// ---- parts of checks

// Every node may make a shape of its own: without a limit memory is the square of the input.
constexpr size_t kMaxRank = 64;

inline bool is_size(NodeRef n) { return n->dtype == DType::Index && n->rank() == 0; }
inline bool is_static_dim(NodeRef n) { return n->op == Op::Const; }
inline bool axis_of(int64_t axis, size_t rank) {
  return axis >= 0 && axis < static_cast<int64_t>(rank);
}
inline bool is_loop_integer(DType d) {
  return d == DType::Index || d == DType::I32 || d == DType::I64;
}
/// Sizes of a shape: an index known to be negative is none; what is symbolic is checked when it is
/// bound.
const char* sizes(std::span<const NodeRef> list);
const char* distinct_axes(std::span<const int64_t> axes, size_t rank);
const char* fold_kind(int64_t kind, DType dtype);
const char* same_dtype(const Spec& s);
bool all_ranges(std::span<const NodeRef> list);

// ---- movement and storage

const char* reshape(const Spec& s);
const char* expand(const Spec& s);
const char* permute(const Spec& s);
const char* pad(const Spec& s);
const char* shrink(const Spec& s);
const char* flip(const Spec& s);
const char* window(const Spec& s);
const char* unwindow(const Spec& s);
const char* gather(const Spec& s);
const char* copy(const Spec& s);
const char* assign(const Spec& s);
const char* cat(const Spec& s);
const char* scatter(const Spec& s);
const char* cumcount(const Spec& s);

// ---- loops with state, and the memory of kernels

const char* reduce(const Spec& s);
const char* scan(const Spec& s);
const char* loop(const Spec& s);
const char* get(const Spec& s);
const char* stage(const Spec& s);
const char* load(const Spec& s);
const char* store(const Spec& s);

}  // namespace weft::check
