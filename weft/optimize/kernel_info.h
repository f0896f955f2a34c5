// What the optimiser knows about a kernel: which ranges each value depends on, how every access
// moves with every range, and which ranges may be reordered.
#pragma once
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/small_vector.h"
#include "weft/graph/dependence.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"

namespace weft::optimize {

/// A set of ranges, by position in KernelInfo::ranges.
using RangeMask = uint64_t;
constexpr RangeMask bit(size_t range) { return RangeMask{1} << range; }
template <class F>
void each(RangeMask mask, F&& f) {
  for (; mask != 0; mask &= mask - 1) f(static_cast<size_t>(std::countr_zero(mask)));
}

struct RangeInfo {
  NodeRef node;
  int64_t extent = 1;       ///< iterations; the maximum where the size is symbolic
  bool constant = false;    ///< the size is a number
  bool parallel = false;    ///< a store depends on it
  bool sequential = false;  ///< a scan's or loop's: iterations carry state
  bool in_order = false;    ///< a store that must happen in order depends on it
  /// Iterations may be interchanged and run at once.
  bool free() const { return !sequential && !in_order; }
};

constexpr size_t kMaxRanges = 64;  ///< with more, a kernel stays as it is

/// A load or a store and how its address moves.
struct Access {
  /// A sum of ranges divided by a number, in steps of the address: places of a window over an image
  /// whose gradient has a stride.
  struct Quotient {
    RangeMask deps;
    int64_t stride, values;  ///< how many it takes at most
  };
  NodeRef node;
  RangeMask deps = 0;    ///< ranges it depends on (for stores: also the value's)
  RangeMask opaque = 0;  ///< ranges the index depends on, but not as coefficient * range
  RangeMask masked = 0;  ///< ranges the validity depends on
  SmallVector<int64_t, 12> stride = {};     ///< by range, in elements
  SmallVector<Quotient, 2> quotients = {};  ///< of the opaque
  int64_t rest =
      0;  ///< divides what the address is made of beside these: constants, looked-up rows
  bool is_store() const { return node->op == Op::Store; }
  /// Elements of the buffer that it covers: several where it loads a word of them.
  int64_t unit() const { return is_store() ? 1 : bits(node->dtype) / bits(node->src(0)->dtype); }
  /// The largest number known to divide the address at the first iteration of `range`.
  int64_t granule(size_t range) const;
};

class KernelInfo {
 public:
  explicit KernelInfo(NodeRef sink);

  NodeRef sink;
  std::vector<NodeRef> order;     ///< every node, sources first
  std::vector<RangeInfo> ranges;  ///< in nest order: by id
  std::vector<Access> accesses;   ///< in `order`
  std::vector<NodeRef> reduces;   ///< Op::Reduce nodes, in `order`
  RangeMask data_use = 0;         ///< ranges whose value is used as data, not only in addresses
  /// Ranges that every reduction depends on or closes: around a loop over any other range, some
  /// reduction would be computed again in each iteration.
  RangeMask common = ~RangeMask{0};
  /// Nothing may be changed: more ranges than a mask holds, ranges already bound or with bounds
  /// that depend on others, or elements that are stored and loaded at different places.
  bool frozen = false;
  /// Elements may be computed twice with the same result: no store folds or reads its own buffer.
  bool repeatable = true;
  bool has_loops = false;  ///< tuple folds: what is inside one cannot be unrolled freely

  /// Ranges that `n` depends on.
  RangeMask deps(NodeRef n) const { return masks_[index_.at(n)]; }
  size_t position(NodeRef range) const { return dependence_.position(range); }
  /// Ranges a Reduce closes.
  RangeMask reduced_by(NodeRef reduce) const;
  /// Whether all that loads read along a range lies in a line, as the columns of a panel's row do.
  bool in_a_line(size_t range) const;
  /// Sums and running ones, which have a state for each iteration of the loops around them.
  bool has_folds() const;

 private:
  void describe_ranges();
  void describe_uses();
  void describe_accesses();
  void order_stores();
  void check_aliasing();

  NodeMap<uint32_t> index_;
  RangeDependence dependence_;
  std::vector<RangeMask> masks_;  // the same, by node
};

}  // namespace weft::optimize
