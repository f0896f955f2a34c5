// Which loop ranges each node of a kernel depends on.
#pragma once
#include <bit>
#include <span>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"

namespace weft::lower {

/// A set of ranges by position in nest order.
class RangeSet {
 public:
  static constexpr size_t kCapacity = 256;

  void insert(size_t i) { words_[i / 64] |= uint64_t{1} << (i % 64); }
  void erase(size_t i) { words_[i / 64] &= ~(uint64_t{1} << (i % 64)); }
  bool contains(size_t i) const { return (words_[i / 64] >> (i % 64) & 1) != 0; }
  bool empty() const { return (words_[0] | words_[1] | words_[2] | words_[3]) == 0; }
  RangeSet& operator|=(const RangeSet& o) {
    for (size_t w = 0; w < 4; ++w) words_[w] |= o.words_[w];
    return *this;
  }
  friend RangeSet operator&(RangeSet a, const RangeSet& b) {
    for (size_t w = 0; w < 4; ++w) a.words_[w] &= b.words_[w];
    return a;
  }
  friend bool operator==(const RangeSet&, const RangeSet&) = default;

  /// Calls f(position) in ascending order.
  template <class F>
  void each(F&& f) const {
    for (size_t w = 0; w < 4; ++w)
      for (uint64_t bits = words_[w]; bits != 0; bits &= bits - 1)
        f(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
  }
  /// The largest member; -1 when empty.
  int last() const;

 private:
  uint64_t words_[4] = {};
};

/// The parts of a Reduce, Scan or Loop in a kernel.
struct LoopParts {
  std::span<const NodeRef> inits;   ///< of a Loop
  std::span<const NodeRef> values;  ///< the folded values, or the bodies of a Loop
  std::span<const NodeRef> ranges;
  bool open = false;  ///< ranges stay open: users run inside
};
LoopParts loop_parts(NodeRef n);
constexpr bool is_loop_op(Op op) { return op == Op::Reduce || op == Op::Scan || op == Op::Loop; }
/// A Reduce may fold several values per iteration, in order (made by unrolling): ints are [fold,
/// values].
size_t reduced_values(NodeRef reduce);

/// The ranges that are open at every node under a sink. Numbers the nodes (NumberedOrder): a step
/// has one at a time.
class RangeDeps {
 public:
  explicit RangeDeps(NodeRef sink);

  std::span<const NodeRef> order() const { return order_.nodes(); }  ///< sources first
  size_t index(NodeRef n) const { return order_.index(n); }          ///< of `n` in order()
  bool contains(NodeRef n) const { return order_.contains(n); }
  std::span<const NodeRef> ranges() const {
    return ranges_;
  }  ///< by position: Core first, then by id
  size_t position(NodeRef range) const { return positions_.at(range); }
  const RangeSet& of(NodeRef n) const { return sets_[index(n)]; }
  /// Ranges with this binding.
  RangeSet bound_to(Binding binding) const;
  RangeSet set_of(std::span<const NodeRef> ranges) const;

 private:
  void number_ranges();
  bool compute();  // false when the carries of a loop turned out to depend on more
  RangeSet open_at(NodeRef n) const;

  NumberedOrder order_;
  std::vector<NodeRef> ranges_;
  NodeMap<size_t> positions_;
  std::vector<RangeSet> sets_;
  std::vector<std::pair<int64_t, RangeSet>> carried_;  // by loop id
};

/// What a step makes of each node that a RangeDeps numbers.
template <class T>
class PerNode {
 public:
  explicit PerNode(const RangeDeps& deps) : deps_(deps), values_(deps.order().size()) {}
  T& operator[](NodeRef n) { return values_[deps_.index(n)]; }
  const T& operator[](NodeRef n) const { return values_[deps_.index(n)]; }

 private:
  const RangeDeps& deps_;
  std::vector<T> values_;
};

}  // namespace weft::lower
