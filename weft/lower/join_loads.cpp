// Short vectors that lie side by side and are spread over longer ones (scales of a packed block,
// one for each group of elements): they are loaded as one, and what is computed of each is computed
// of all at once.
#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <vector>

#include "weft/base/small_vector.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/node_map.h"
#include "weft/graph/walks.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/target/target.h"

namespace weft::lower {
namespace {

class LoadJoiner {
 public:
  LoadJoiner(Graph& g, const Target& target) : g_(g), most_(target.lanes(DType::F32)) {}

  /// False where there is nothing to join.
  bool find(std::span<const NodeRef> order) {
    if (std::ranges::count_if(order, [&](NodeRef n) { return is_short(n); }) < 2) return false;
    NodeMap<bool> written;
    for (NodeRef n : order)
      if (n->op == Op::Store) written.set(n->src(0), true);
    for (size_t i = order.size(); i-- > 0;) note_reads(order[i]);
    for (NodeRef n : order)
      if (is_short(n) && 2 * n->lanes <= spread_over(n) && !written.contains(n->src(0))) add(n);
    for (std::vector<Placed>& loads : groups_) join_all(loads);
    return joined_.size() > 0;
  }

  NodeRef made(NodeRef n, std::span<const NodeRef> src) {
    if (const Part* part = joined_.find(n)) return slice(*part, n->lanes);
    if (n->op == Op::Lane && part_of(src[0]))
      return lane(g_, src[0], static_cast<size_t>(n->int_arg(0)));
    const NodeRef together = is_alu(n->op) ? computed_together(n, src) : nullptr;
    return together ? together : g_.with_sources(n, src);
  }

 private:
  /// Lanes of a longer vector, from `first` on.
  struct Part {
    NodeRef of;
    size_t first;
  };
  /// Loads of one dtype and length from one buffer, as far as they differ by constants, and the
  /// lanes of what they are spread over.
  using Key = std::tuple<NodeRef, NodeRef, DType, uint16_t, uint16_t>;
  struct Placed {
    int64_t at;
    NodeRef load;
  };

  bool is_short(NodeRef n) const {
    return n->op == Op::Load && n->nsrc == 2 && n->lanes > 1 && 2 * n->lanes <= most_ &&
           n->src(0)->op == Op::Param && !is_bool(n->dtype);
  }

  /// Whether all lanes are of one shorter vector.
  static bool spreads(NodeRef n) {
    if (n->op != Op::Vec || n->src(0)->op != Op::Lane) return false;
    NodeRef of = n->src(0)->src(0);
    return of->lanes < n->lanes &&
           std::ranges::all_of(
               n->src(), [&](NodeRef s) { return s->op == Op::Lane && s->src(0) == of; });
  }

  /// The least number of lanes that a vector is spread over, or that what elementwise operations
  /// make of it is: as long as the longest vectors of the widest of these numbers. 0 where it is
  /// read otherwise, too.
  uint16_t spread_over(NodeRef n) const {
    const uint16_t* found = spread_over_.find(n);
    return found ? *found : 0;
  }
  void note(NodeRef n, uint16_t lanes) {
    uint16_t* found = spread_over_.find(n);
    spread_over_.set(n, found ? std::min(*found, lanes) : lanes);
  }
  void note_reads(NodeRef n) {
    const uint16_t spread = spreads(n) ? n->lanes : 0, passed = is_alu(n->op) ? spread_over(n) : 0;
    for (NodeRef s : n->src()) {
      if (s->op == Op::Lane) note(s->src(0), spread);
      if (s->lanes > 1 && n->op != Op::Lane) note(s, n->lanes == s->lanes ? passed : 0);
    }
  }

  void add(NodeRef n) {
    const Offset offset = split_offset(g_, n->src(1));
    const Key key{n->src(0), offset.rest, n->dtype, n->lanes, spread_over(n)};
    const auto [found, is_new] = group_of_.try_emplace(key, groups_.size());
    if (is_new) groups_.emplace_back();
    groups_[found->second].push_back({offset.constant, n});
  }

  void join_all(std::vector<Placed>& loads) {
    std::ranges::sort(loads, {}, &Placed::at);
    NodeRef one = loads[0].load;
    const int64_t step = bits(one->dtype) / bits(one->src(0)->dtype) * one->lanes;
    for (size_t i = 0; i < loads.size();) {
      size_t count = 1;
      while (i + count < loads.size() && loads[i + count].at == loads[i + count - 1].at + step)
        ++count;
      count = std::bit_floor(std::min(count, size_t{spread_over(one)} / one->lanes));
      if (count > 1) join(std::span(loads).subspan(i, count));
      i += count;
    }
  }

  void join(std::span<const Placed> loads) {
    NodeRef one = loads[0].load;
    const auto lanes = static_cast<uint16_t>(one->lanes * loads.size());
    NodeRef all = g_.intern({Op::Load, one->dtype, one->src(), one->ints(), {}, lanes});
    for (size_t i = 0; i < loads.size(); ++i) joined_.set(loads[i].load, {all, i * one->lanes});
  }

  NodeRef slice(const Part& part, uint16_t lanes) {
    SmallVector<NodeRef, 8> elements;
    for (size_t k = 0; k < lanes; ++k) elements.push_back(lane(g_, part.of, part.first + k));
    NodeRef made = vec(g_, elements);
    parts_.set(made, part);
    return made;
  }
  const Part* part_of(NodeRef n) const { return parts_.find(n); }

  /// An operation on the same lanes of longer vectors is one on these; null where it is not.
  NodeRef computed_together(NodeRef n, std::span<const NodeRef> src) {
    const auto found = std::ranges::find_if(src, [&](NodeRef s) { return part_of(s); });
    if (found == src.end()) return nullptr;
    const Part like = *part_of(*found);
    SmallVector<NodeRef, 4> operands;
    for (NodeRef s : src) {
      const Part* part = part_of(s);
      const bool alike = part && part->first == like.first && part->of->lanes == like.of->lanes;
      if (!alike && s->op != Op::Splat) return nullptr;
      operands.push_back(alike ? part->of : splat(g_, s->src(0), like.of->lanes));
    }
    return slice({elementwise(g_, n->op, n->dtype, operands), like.first}, n->lanes);
  }

  Graph& g_;
  const int most_;
  NodeMap<uint16_t> spread_over_;
  std::map<Key, size_t> group_of_;
  std::vector<std::vector<Placed>> groups_;  // as they are met
  NodeMap<Part> joined_;                     // loads
  NodeMap<Part> parts_;                      // what was made of them
};

}  // namespace

NodeRef join_loads(Graph& g, Analysis& of, const Target& target) {
  if (target.lanes(DType::F32) < 4) return of.sink();
  LoadJoiner joiner(g, target);
  if (!joiner.find(of.order().nodes())) return of.sink();
  const NodeRef roots[] = {of.sink()};
  return rebuild_all(
      roots, [&](NodeRef n, std::span<const NodeRef> src) { return joiner.made(n, src); })[0];
}

}  // namespace weft::lower
