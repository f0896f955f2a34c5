// Loops that cannot share: ranges that would have to run in two places get copies with their own
// ids.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/walks.h"
#include "weft/lower/loop_tree.h"
#include "weft/lower/steps.h"

namespace weft::lower {
namespace {

/// Of the Loops and Barriers of a kernel; one that is copied gets another.
bool has_own_id(NodeRef n) { return n->op == Op::Loop || n->op == Op::Barrier; }

constexpr int kMaxRounds = 64;  // each round settles at least one level of nesting

/// The nodes of a kernel with some ranges replaced by others.
struct Renaming {
  int group;
  SmallVector<size_t, 4> positions;
  RangeSet renamed;
  NodeMap<NodeRef> done;
  std::vector<std::pair<int64_t, int64_t>> loop_ids;
};

class Separator {
 public:
  Separator(Graph& g, Analysis& of) : g_(g), deps_(of.deps()), done_(deps_) {
    for (NodeRef n : deps_.order()) {
      if (n->op == Op::Range) next_id_ = std::max(next_id_, range_id(n) + 1);
      if (has_own_id(n)) next_loop_ = std::max(next_loop_, n->int_arg(0) + 1);
    }
    for (const LoopTree::Conflict& c : of.loops().conflicts())
      renaming_of_.set(c.user, renaming(c));
  }

  NodeRef run() {
    for (NodeRef n : deps_.order()) {
      const size_t* renaming = renaming_of_.find(n);
      done_[n] = renaming ? renamed_user(n, renamings_[*renaming]) : rebuilt(n);
    }
    return done_[deps_.order().back()];
  }

 private:
  size_t renaming(const LoopTree::Conflict& c) {
    for (size_t i = 0; i < renamings_.size(); ++i)
      if (renamings_[i].group == c.group && renamings_[i].positions == c.positions) return i;
    Renaming r{c.group, c.positions, {}, {}, {}};
    for (size_t p : c.positions) r.renamed.insert(p);
    renamings_.push_back(std::move(r));
    return renamings_.size() - 1;
  }

  NodeRef rebuilt(NodeRef n) {
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src()) src.push_back(done_[s]);
    return g_.with_sources(n, src);
  }

  NodeRef renamed_user(NodeRef n, Renaming& r) {
    // Ids first: bodies name the loop they are in.
    if (has_own_id(n)) loop_id(r, n->int_arg(0));
    for (NodeRef s : n->src())
      make_needed(
          s, [&](NodeRef x) { return !touched(x, r) || r.done.contains(x); },
          [&](NodeRef x) { r.done.set(x, copy(x, r)); });
    return copy(n, r);
  }

  int64_t loop_id(Renaming& r, int64_t old) {
    for (const auto& [from, to] : r.loop_ids)
      if (from == old) return to;
    r.loop_ids.emplace_back(old, next_loop_++);
    return r.loop_ids.back().second;
  }

  bool touched(NodeRef n, const Renaming& r) const { return !(deps_.of(n) & r.renamed).empty(); }

  NodeRef copy(NodeRef n, Renaming& r) {
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src()) src.push_back(touched(s, r) ? r.done.at(s) : done_[s]);
    SmallVector<int64_t, 8> ints(n->ints());
    if (n->op == Op::Range && r.renamed.contains(deps_.position(n))) ints[0] = fresh_id(n, r);
    if (n->op == Op::Carry) ints[1] = loop_id(r, ints[1]);
    if (has_own_id(n)) ints[0] = loop_id(r, ints[0]);
    return g_.make({n->op, n->dtype, src, ints, n->text(), n->lanes});
  }

  /// Ascending with the old ids, above all others.
  int64_t fresh_id(NodeRef range, Renaming& r) {
    const size_t position = deps_.position(range);
    const auto at = std::find(r.positions.begin(), r.positions.end(), position);
    const auto which = static_cast<size_t>(&r - renamings_.data());
    return next_id_ + static_cast<int64_t>(which * deps_.ranges().size()) +
           (at - r.positions.begin());
  }

  Graph& g_;
  const RangeDeps& deps_;
  PerNode<NodeRef> done_;
  NodeMap<size_t> renaming_of_;
  std::vector<Renaming> renamings_;
  int64_t next_id_ = 0, next_loop_ = 0;
};

}  // namespace

NodeRef separate_loops(Graph& g, Analysis& of) {
  if (of.loops().conflicts().empty()) return of.sink();
  NodeRef sink = Separator(g, of).run();
  for (int round = 1; round < kMaxRounds; ++round) {
    Analysis next(sink);
    if (next.loops().conflicts().empty()) return sink;
    sink = Separator(g, next).run();
  }
  internal_error("lower", "the loops of a kernel do not settle");
}

}  // namespace weft::lower
