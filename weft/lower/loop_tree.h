// Where each range of a kernel runs: one loop per range, each inside one other loop or at the top.
#pragma once
#include "weft/base/small_vector.h"
#include "weft/lower/range_deps.h"

namespace weft::lower {

/// Open ranges of a store nest by position. The ranges of a closed Reduce or Loop nest inside the
/// deepest loop it depends on; those with the same ranges and no dependence between them share
/// their loops.
class LoopTree {
 public:
  static constexpr int kTop = -1;
  static constexpr int kNowhere = -2;

  /// Ranges that `user`, a store or loop, needs a copy of, because they already run elsewhere.
  struct Conflict {
    NodeRef user;
    int group;  ///< users of the same conflict in the same group share the copies
    SmallVector<size_t, 4> positions;
  };

  explicit LoopTree(const RangeDeps& deps);

  std::span<const Conflict> conflicts() const { return conflicts_; }
  /// The loop around a range's loop: a position, or kTop.
  int parent(size_t position) const { return loops_[position].parent; }
  /// 0 at the top.
  int depth(int position) const {
    return position == kTop ? 0 : loops_[static_cast<size_t>(position)].depth;
  }
  /// The deepest loop of these.
  int deepest(const RangeSet& open) const;
  /// The loop in which a closed loop's result lives.
  int place(NodeRef n) const;

 private:
  struct Place {
    int parent = kNowhere;
    int depth = 0;
    int group = -1;  // of the closed loops that run it; kOpen where it is a store's
  };
  struct Group {
    NodeRef first;  // any of its loops: they have the same ranges
    int place;
    uint32_t level;
  };

  void number_levels();
  bool number_by_ranges();
  void number_by_stage();
  bool groups_are_acyclic() const;
  SmallVector<NodeRef, 8> sorted_ranges(NodeRef loop) const;
  int group_of(NodeRef loop, int place);
  void claim(NodeRef user, std::span<const NodeRef> chain, int parent, int group);
  int top() const;

  const RangeDeps& deps_;
  std::vector<NodeRef> closed_;  // Reduce and closed Loop nodes, sources first
  NodeMap<uint32_t> level_;      // of each: loops that depend on each other are on different levels
  std::vector<Place> loops_;     // by position
  std::vector<Group> groups_;
  std::vector<Conflict> conflicts_;
};

}  // namespace weft::lower
