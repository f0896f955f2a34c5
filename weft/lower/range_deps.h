// Which ranges each node of a kernel varies over, for steps that ask by node.
#pragma once
#include <span>
#include <vector>

#include "weft/graph/dependence.h"
#include "weft/graph/graph.h"
#include "weft/graph/loops.h"

namespace weft::lower {

/// The ranges that are open at every node under a sink.
class RangeDeps {
 public:
  explicit RangeDeps(const NumberedOrder& order)
      : order_(order), found_(order.nodes(), [&order](NodeRef n) { return order.index(n); }) {}

  const NumberedOrder& numbers() const { return order_; }
  std::span<const NodeRef> order() const { return order_.nodes(); }  ///< sources first
  size_t index(NodeRef n) const { return order_.index(n); }          ///< of `n` in order()
  bool contains(NodeRef n) const { return order_.contains(n); }
  /// By position: Core first, then by id.
  std::span<const NodeRef> ranges() const { return found_.ranges(); }
  size_t position(NodeRef range) const { return found_.position(range); }
  const RangeSet& of(NodeRef n) const { return found_.at(index(n)); }
  /// Ranges with this binding.
  RangeSet bound_to(Binding binding) const;
  RangeSet set_of(std::span<const NodeRef> ranges) const { return found_.set_of(ranges); }

 private:
  const NumberedOrder& order_;
  RangeDependence found_;
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
