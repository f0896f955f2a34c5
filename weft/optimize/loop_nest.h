// The schedule vocabulary: split, fuse, reorder and bind loops of a kernel; apply() rebuilds the
// kernel once. Every step keeps the kernel's value and is recorded in words.
#pragma once
#include <string>
#include <vector>

#include "weft/optimize/kernel_info.h"

namespace weft::optimize {

/// What happens to the remainder when a split does not divide.
enum class Tail : uint8_t {
  Exact,    ///< the factor divides the size
  Overlap,  ///< the last tile starts early and computes some elements again; where that may not
            ///< be, it does not store them again
  Mask,     ///< the last tile is guarded
};

class LoopNest {
 public:
  /// A loop; the handle stays valid through later steps.
  using Axis = size_t;

  /// One axis per range of the kernel, with the range's position as handle, in nest order.
  LoopNest(Graph& g, const KernelInfo& info, bool record);

  /// Splits `a` into an outer loop, which takes its place, and the returned inner one of `factor`
  /// iterations. Overlap needs a parallel range and a size of none or at least `factor`; Mask a
  /// parallel range.
  struct Parts {
    Axis outer, inner;
  };
  Parts split(Axis a, int64_t factor, Tail tail);
  /// One loop over all pairs, in the place of `outer`; both must be parallel or reductions
  /// together.
  Axis fuse(Axis outer, Axis inner);
  /// A split whose inner loop becomes vector lanes, innermost.
  Parts vectorise(Axis a, int64_t lanes, Tail tail);
  /// `axis`: of the grid or of the group.
  void bind(Axis a, Binding binding, size_t axis = 0);
  /// Materialises the kernel's `value` over these axes in memory that a group shares, with these
  /// strides, in buffers that iterations of the loop around take in turn.
  void stage(NodeRef value, std::initializer_list<Axis> axes,
             std::initializer_list<int64_t> strides, int64_t buffers);
  /// Moves `a` to just outside or just inside another loop.
  void move_before(Axis a, Axis before);
  void move_after(Axis a, Axis after);

  /// Loops that still run as loops, outermost first.
  const std::vector<Axis>& loops() const { return order_; }
  /// Whether nothing is unrolled, nor in vectors or tiles.
  bool is_of_elements() const { return inner_.empty(); }
  int64_t extent(Axis a) const { return axes_[a].extent; }
  NodeRef size(Axis a) const { return axes_[a].size; }
  Binding binding(Axis a) const { return axes_[a].binding; }
  /// The kernel's ranges this axis is a part of.
  RangeMask parts_of(Axis a) const { return axes_[a].ranges; }

  /// The kernel with these loops.
  NodeRef apply() const;
  const std::vector<std::string>& applied() const { return applied_; }

 private:
  enum class Kind : uint8_t { Leaf, One, Split, FusedOuter, FusedInner };
  struct AxisData {
    Kind kind = Kind::Leaf;
    Tail tail = Tail::Exact;
    Binding binding = Binding::Loop;
    size_t launch_axis = 0;
    Axis first = 0, second = 0;  // Split: outer, inner. Fused: the fused axis
    int64_t factor = 1;          // Split: of the inner axis
    int64_t extent = 1;
    NodeRef size = nullptr;     // also FusedOuter, FusedInner: their own size
    NodeRef divisor = nullptr;  // Fused: size of the inner axis
    RangeMask ranges = 0;
  };
  struct Resolved {
    NodeRef value = nullptr;
    NodeRef guard = nullptr;              // null: always valid
    NodeRef first = nullptr;              // no other tile has it; null: none has, or none minds
    SmallVector<NodeRef, 4> leaves = {};  // ranges it became
  };

  struct Staged {
    NodeRef value;
    SmallVector<Axis, 4> axes;
    SmallVector<int64_t, 4> strides;
    int64_t buffers;
  };

  Axis add_axis(NodeRef size, RangeMask ranges);
  void check_tail(const AxisData& a, int64_t factor, Tail tail) const;
  void resolve(std::vector<Resolved>& out) const;
  Resolved resolve_one(Axis a, const std::vector<Resolved>& known) const;
  NodeRef rebuild(NodeRef n, const std::vector<Resolved>& axes, const NodeMap<NodeRef>& done) const;
  NodeRef staged(const Staged& s, NodeRef value, const std::vector<Resolved>& axes) const;
  NodeRef guard_of(NodeRef access, const std::vector<Resolved>& axes) const;

  Graph& g_;
  const KernelInfo& info_;
  bool record_;
  std::vector<AxisData> axes_;
  std::vector<Axis> order_;  // leaves bound to Loop or Core, outermost first
  std::vector<Axis> inner_;  // leaves bound to Unroll, Vector or Tile
  std::vector<Staged> staged_;
  std::vector<std::string> applied_;
};

/// The kernel with every reduction over `range` split in two, added at the end: the first `main`
/// iterations, and the others in a loop of their own. The first loop keeps the range's id.
NodeRef peel_reduction(Graph& g, const KernelInfo& info, size_t range, NodeRef main);

/// The kernel with every reduction over `range`, of `lanes` iterations or more, split in three:
/// what whole tiles of `size` take, whole vectors, and last the vector that ends where the range
/// does, in which what was folded before counts for nothing. Never are all vectors whole. The first
/// keeps the range's id, the others are added at the end; the second only where a tile is several
/// vectors.
NodeRef peel_vectors(Graph& g, const KernelInfo& info, size_t range, int64_t size, int64_t lanes);

/// The kernel twice: where `range` has `least` iterations or more, all are in the first, which
/// keeps the range's id, otherwise all are in the second. The second's range is added at the end,
/// and after it those of the sums in its loop, which are `copied` ones. Null where it cannot be
/// proved that the first has no iteration or as many.
NodeRef split_short(Graph& g, const KernelInfo& info, size_t range, int64_t least,
                    SmallVector<size_t, 8>& copied);
/// Whether a loop of this size has no iteration or so many at least.
bool none_or_at_least(NodeRef size, int64_t least);

}  // namespace weft::optimize
