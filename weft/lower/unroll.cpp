// Unroll ranges: nodes become one version per combination of the unroll ranges they depend on.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/graph/fold.h"
#include "weft/lower/range_deps.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/rewrite/op_rules.h"

namespace weft::lower {
namespace {

// With at least this many accumulators side by side, each is folded in one chain: they hide each
// other's latency.
constexpr size_t kEnoughAccumulators = 6;
constexpr size_t kMaxVersions = 4096;

/// The versions of one node: numbered with the first range of `over` changing slowest.
struct Versions {
  size_t first = 0;
  RangeSet over;
};

/// One of so many.
struct Version {
  size_t number, of;
};

class Unroller {
 public:
  Unroller(Graph& g, const RangeDeps& deps, const Target& target)
      : g_(g),
        target_(target),
        deps_(deps),
        unrolled_(deps_.bound_to(Binding::Unroll)),
        done_(deps_) {}

  /// Makes the version of a node for the current digits.
  using Make = NodeRef (Unroller::*)(NodeRef, Version);
  NodeRef run(const OpRules<Make>& rules) {
    if (unrolled_.empty()) return deps_.order().back();
    digits_.resize(deps_.ranges().size());
    translate(rules, deps_.order(), [this](Make make, NodeRef n) { return expand(n, make); });
    return version(deps_.order().back());
  }

  NodeRef make_other(NodeRef n, Version) { return g_.with_sources(n, sources(n)); }
  NodeRef make_range(NodeRef n, Version v) {
    if (range_binding(n) != Binding::Unroll) return make_other(n, v);
    return g_.index(static_cast<int64_t>(digits_[deps_.position(n)]));
  }
  NodeRef make_scan(NodeRef n, Version v) {
    check_not_unrolled(n);
    return make_other(n, v);
  }
  NodeRef make_loop(NodeRef n, Version v) {
    check_not_unrolled(n);
    return with_own_id(n, 0, v);
  }
  NodeRef make_carry(NodeRef n, Version v) { return with_own_id(n, 1, v); }

  /// A store for each value of the unrolled ranges.
  NodeRef make_barrier(NodeRef n, Version v) {
    const LoopParts parts = loop_parts(n);
    SmallVector<NodeRef, 16> src{version(n->src(0))};
    each_version(deps_.set_of(parts.ranges) & unrolled_, [&](size_t) {
      for (NodeRef store : parts.values) src.push_back(version(store));
    });
    const int64_t ints[] = {own_id(n->int_arg(0), v), static_cast<int64_t>(src.size()) - 1,
                            n->int_arg(2)};
    for (NodeRef r : parts.ranges)
      if (range_binding(r) != Binding::Unroll) src.push_back(version(r));
    return g_.make({n->op, n->dtype, src, ints});
  }

  NodeRef make_reduce(NodeRef n, Version v) {
    const LoopParts parts = loop_parts(n);
    SmallVector<NodeRef, 4> ranges;
    for (NodeRef r : parts.ranges)
      if (range_binding(r) != Binding::Unroll) ranges.push_back(version(r));
    const RangeSet own = deps_.set_of(parts.ranges) & unrolled_;
    SmallVector<NodeRef, 16> values;
    each_version(own, [&](size_t) {
      for (NodeRef value : parts.values) values.push_back(version(value));
    });
    const Fold fold = fold_of(n);
    if (values.empty()) return g_.constant(fold_identity(fold, n->dtype));
    // Values are folded one by one into the loop's register; without a loop (lanes are none) there
    // is no register.
    const bool looped = std::any_of(ranges.begin(), ranges.end(),
                                    [](NodeRef r) { return range_binding(r) != Binding::Vector; });
    const bool chained =
        looped && v.of >= kEnoughAccumulators && may_contract(target_, fold, values[0]);
    if (!chained) {
      NodeRef folded = fold_all(g_, target_, fold, values);
      if (ranges.empty()) return folded_once(g_, fold, folded);
      values.assign(std::span<const NodeRef>(&folded, 1));
    }
    const int64_t ints[] = {n->int_arg(0), static_cast<int64_t>(values.size())};
    values.append(ranges);
    return g_.intern({Op::Reduce, n->dtype, values, ints});
  }

 private:
  size_t size_of(size_t position) const {
    NodeRef size = deps_.ranges()[position]->src(0);
    WEFT_CHECK(size->op == Op::Const, "an unrolled range needs a constant size");
    return static_cast<size_t>(std::max<int64_t>(0, size->vmin));
  }
  size_t count(const RangeSet& over) const {
    size_t n = 1;
    over.each([&](size_t r) { n *= size_of(r); });
    WEFT_CHECK(n <= kMaxVersions, "unrolling makes {} copies", n);
    return n;
  }
  /// Which version of a node over these ranges the current digits choose.
  size_t chosen(const RangeSet& over) const {
    size_t at = 0;
    over.each([&](size_t r) { at = at * size_of(r) + digits_[r]; });
    return at;
  }
  NodeRef version(NodeRef n) const {
    const Versions& v = done_[n];
    return nodes_[v.first + chosen(v.over)];
  }
  /// Calls f with the digits set to every combination.
  template <class F>
  void each_version(const RangeSet& over, F&& f) {
    const size_t n = count(over);
    SmallVector<size_t, 8> positions;
    over.each([&](size_t r) { positions.push_back(r); });
    for (size_t i = 0; i < n; ++i) {
      size_t rest = i;
      for (size_t k = positions.size(); k-- > 0;) {
        digits_[positions[k]] = rest % size_of(positions[k]);
        rest /= size_of(positions[k]);
      }
      f(i);
    }
  }

  NodeRef expand(NodeRef n, Make make) {
    if (n->op == Op::Sink) return expand_sink(n);
    const Versions v{nodes_.size(), deps_.of(n) & unrolled_};
    // Built apart: making one version may not see the others.
    SmallVector<NodeRef, 16> made;
    const size_t of = count(v.over);
    each_version(v.over, [&](size_t i) { made.push_back((this->*make)(n, {i, of})); });
    nodes_.insert(nodes_.end(), made.begin(), made.end());
    done_[n] = v;
    return made.empty() ? nullptr : made[0];
  }

  SmallVector<NodeRef, 8> sources(NodeRef n) const {
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src()) src.push_back(version(s));
    return src;
  }

  void check_not_unrolled(NodeRef n) const {
    const RangeSet own = deps_.set_of(listed_ranges(n)) & unrolled_;
    WEFT_CHECK(own.empty(), "{} cannot run its own range unrolled", info(n->op).mnemonic);
  }

  /// Every version of a loop carries its own values, and every one of a barrier may stand in a loop
  /// of its own: they need ids of their own.
  static int64_t own_id(int64_t id, Version v) {
    return v.of > 1 ? kFirstOwnId + (id << 16 | static_cast<int64_t>(v.number)) : id;
  }
  NodeRef with_own_id(NodeRef n, size_t which, Version v) {
    SmallVector<int64_t, 8> ints(n->ints());
    ints[which] = own_id(ints[which], v);
    return g_.make({n->op, n->dtype, sources(n), ints, n->text(), n->lanes});
  }

  NodeRef expand_sink(NodeRef sink) {
    SmallVector<NodeRef, 16> roots;
    for (NodeRef root : sink->src()) {
      const Versions v = done_[root];
      for (size_t i = 0; i < count(v.over); ++i) roots.push_back(nodes_[v.first + i]);
    }
    const Versions whole{nodes_.size(), {}};
    nodes_.push_back(g_.intern({Op::Sink, sink->dtype, roots}));
    done_[sink] = whole;
    return nodes_.back();
  }

  static constexpr int64_t kFirstOwnId = int64_t{1} << 40;

  Graph& g_;
  const Target& target_;
  const RangeDeps& deps_;
  RangeSet unrolled_;
  std::vector<size_t> digits_;  // current value of each unroll range, by position
  std::vector<NodeRef> nodes_;
  PerNode<Versions> done_;
};

constexpr OpRule<Unroller::Make> kRules[] = {
    on(Op::Range, "range.unrolled", &Unroller::make_range),
    on(Op::Reduce, "reduce.unrolled", &Unroller::make_reduce),
    on(Op::Scan, "scan.unrolled", &Unroller::make_scan),
    on(Op::Loop, "loop.unrolled", &Unroller::make_loop),
    on(Op::Carry, "carry.unrolled", &Unroller::make_carry),
    on(Op::Barrier, "barrier.unrolled", &Unroller::make_barrier),
    otherwise("any.unrolled", &Unroller::make_other),
};
constexpr OpRules kUnrollRules(
    "unroll", "Lowering: nodes are there once per combination of the unroll ranges they vary over.",
    kRules);

}  // namespace

NodeRef unroll(Graph& g, Analysis& of, const Target& target) {
  return Unroller(g, of.deps(), target).run(kUnrollRules);
}

RuleSetRow unroll_rules() { return kUnrollRules.row(); }

}  // namespace weft::lower
