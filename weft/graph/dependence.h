// Dependence: which ranges the values of a kernel vary over. The one analysis of it, for the
// optimiser, for lowering and for the verifiers.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weft/graph/node_map.h"

namespace weft {

/// A set of ranges, by position in nest order. Of the first 64 it takes no memory of its own.
class RangeSet {
 public:
  void insert(size_t i) { word_to_change(i / 64) |= uint64_t{1} << (i % 64); }
  void erase(size_t i) {
    if (contains(i)) word_to_change(i / 64) &= ~(uint64_t{1} << (i % 64));
  }
  void clear() {
    first_ = 0;
    more_.clear();
  }
  bool contains(size_t i) const { return (word(i / 64) >> (i % 64) & 1) != 0; }
  bool empty() const { return last() < 0; }
  RangeSet& operator|=(const RangeSet& o) {
    first_ |= o.first_;
    for (size_t w = o.more_.size(); w > 0; --w) word_to_change(w) |= o.more_[w - 1];
    return *this;
  }
  friend RangeSet operator&(RangeSet a, const RangeSet& b) {
    a.first_ &= b.first_;
    for (size_t w = 1; w < a.words(); ++w) a.more_[w - 1] &= b.word(w);
    return a;
  }
  friend bool operator==(const RangeSet& a, const RangeSet& b) {
    for (size_t w = 0; w < std::max(a.words(), b.words()); ++w)
      if (a.word(w) != b.word(w)) return false;
    return true;
  }

  /// Calls f(position) in ascending order.
  template <class F>
  void each(F&& f) const {
    for (size_t w = 0; w < words(); ++w)
      for (uint64_t bits = word(w); bits != 0; bits &= bits - 1)
        f(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
  }
  /// The largest member; -1 when empty.
  int last() const {
    for (size_t w = words(); w-- > 0;)
      if (const uint64_t bits = word(w); bits != 0)
        return static_cast<int>(w * 64) + 63 - std::countl_zero(bits);
    return -1;
  }
  /// Members 64 w to 64 w + 63, as bits.
  uint64_t word(size_t w) const { return w == 0 ? first_ : w <= more_.size() ? more_[w - 1] : 0; }

 private:
  size_t words() const { return 1 + more_.size(); }
  uint64_t& word_to_change(size_t w) {
    if (w == 0) return first_;
    if (more_.size() < w) more_.resize(w);
    return more_[w - 1];
  }

  uint64_t first_ = 0;
  std::vector<uint64_t> more_;
};

/// By node, the ranges its value varies over: its own and its sources', without those that a
/// reduction ends. What a loop carries varies over all that the loop does.
class RangeDependence {
 public:
  /// `order` has sources before users; index_of(n) is where a node stands in it.
  template <class Index>
  RangeDependence(std::span<const NodeRef> order, Index&& index_of) : sets_(order.size()) {
    number_ranges(order);
    for (bool stable = false; !stable;) {
      stable = true;
      for (size_t i = 0; i < order.size(); ++i) {
        RangeSet& set = sets_[i];
        set.clear();
        for (NodeRef s : order[i]->src()) set |= sets_[index_of(s)];
        transfer(order[i], set);
        stable = carry(order[i], set) && stable;
      }
    }
  }

  /// In nest order: Core first, then by id.
  std::span<const NodeRef> ranges() const { return ranges_; }
  size_t position(NodeRef range) const { return positions_.at(range); }
  const RangeSet& at(size_t index) const { return sets_[index]; }
  RangeSet set_of(std::span<const NodeRef> ranges) const;

 private:
  void number_ranges(std::span<const NodeRef> order);
  /// From what its sources vary over to what `n` does.
  void transfer(NodeRef n, RangeSet& set) const;
  bool carry(NodeRef n, const RangeSet& set);

  std::vector<NodeRef> ranges_;
  NodeMap<size_t> positions_;
  std::vector<RangeSet> sets_;
  std::vector<std::pair<int64_t, RangeSet>> carried_;  // by loop id
};

}  // namespace weft
