// Node: the one IR node, immutable and hash-consed, from Tensor to linear program; equality is
// pointer equality.
#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "weft/dtype/dtype.h"
#include "weft/dtype/value.h"
#include "weft/graph/op.h"

namespace weft {

struct Node;
using NodeRef = const Node*;

/// An interned list of index expressions, outermost axis first. Equal shapes of one Graph are the
/// same pointer.
struct Shape {
  uint64_t hash;
  uint32_t rank;

  std::span<const NodeRef> span() const {
    return {reinterpret_cast<const NodeRef*>(this + 1), rank};
  }
};

/// Device of a node: 0 = none (constants and index expressions live everywhere), else 1 + ordinal
/// in the Context's device table.
using DeviceId = uint16_t;

struct Node {
  // One cache line: everything rewriting and walks look at.
  Op op;
  DType dtype;
  uint16_t lanes;     ///< 1 for scalars; > 1 only in linear programs
  uint8_t src_op[3];  ///< ops of the first three sources (0 where absent), so that dispatch touches
                      ///< one line
  uint32_t nsrc;
  uint16_t nints;
  DeviceId device;
  uint64_t hash;  ///< structural: independent of buffer ids, the values variables are bound to,
                  ///< addresses and history; orders operands
  uint64_t key;   ///< like hash, but with ids and values: where the intern table looks
  const Shape* shape;  ///< never null; rank 0 for kernel-level nodes
  int64_t vmin, vmax;  ///< bounds of an integer, bool or index value; the dtype's range where
                       ///< nothing is known
  mutable std::atomic<uint32_t> recorded;  ///< a hint: the number it was last given (NodeNumbers)
  mutable uint32_t mark;  ///< shared graphs: scratch of the sweep, only under its exclusive lock;
                          ///< private ones: the number a NumberedOrder gave
  mutable std::atomic<uint64_t> normal;   ///< bit i: in normal form under context-free rule set i
  mutable std::atomic<uint32_t> roots;    ///< handles and caches that keep this node alive
  mutable std::atomic<uint32_t> readers;  ///< Buffer nodes only: interned nodes that have it as a
                                          ///< source, unswept garbage included
  uint16_t levels;                        ///< of inner slots (tuple.h) below it that are taken
  uint32_t text_size;

  std::span<const NodeRef> src() const {
    return {reinterpret_cast<const NodeRef*>(this + 1), nsrc};
  }
  NodeRef src(size_t i) const { return reinterpret_cast<const NodeRef*>(this + 1)[i]; }
  std::span<const int64_t> ints() const {
    return {reinterpret_cast<const int64_t*>(reinterpret_cast<const NodeRef*>(this + 1) + nsrc),
            nints};
  }
  int64_t int_arg(size_t i) const { return ints()[i]; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(ints().data() + nints), text_size};
  }
  uint32_t rank() const { return shape->rank; }
  NodeRef dim(size_t axis) const { return shape->span()[axis]; }
};

// ---- typed views of arguments; each requires the op it names
inline Value const_value(NodeRef n) {
  return Value::from_raw_bits(n->dtype, static_cast<uint64_t>(n->int_arg(0))).value_or(Value());
}
inline bool contains(std::span<const NodeRef> list, NodeRef n) {
  for (NodeRef x : list)
    if (x == n) return true;
  return false;
}
inline bool is_const(NodeRef n) { return n->op == Op::Const; }
/// True for an integer, bool or index constant equal to `v`.
inline bool is_int_const(NodeRef n, int64_t v) {
  return n->op == Op::Const && !is_float(n->dtype) && n->vmin == v;
}
inline Fold fold_of(NodeRef n) { return static_cast<Fold>(n->int_arg(0)); }
inline std::span<const int64_t> reduce_axes(NodeRef n) { return n->ints().subspan(1); }
inline int64_t range_id(NodeRef n) { return n->int_arg(0); }
inline Binding range_binding(NodeRef n) { return static_cast<Binding>(n->int_arg(1)); }
/// The axis of the grid or of the group that it is bound to.
inline size_t range_axis(NodeRef n) {
  return n->nints > 2 ? static_cast<size_t>(n->int_arg(2)) : 0;
}
inline int64_t buffer_id(NodeRef n) { return n->int_arg(0); }
inline int64_t param_slot(NodeRef n) { return n->int_arg(0); }

/// The extents of a node as numbers, or false in `known` when any is symbolic.
inline bool is_static(NodeRef n) {
  for (NodeRef d : n->shape->span())
    if (d->op != Op::Const) return false;
  return true;
}
/// Number of elements of a node whose shape is static.
inline int64_t static_numel(NodeRef n) {
  int64_t count = 1;
  for (NodeRef d : n->shape->span()) count *= d->vmin;
  return count;
}

}  // namespace weft
