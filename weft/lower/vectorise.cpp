// Vector ranges: data that depends on one gets lanes; index arithmetic stays scalar, once per lane
// where it must.
#include <algorithm>
#include <bit>

#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/graph/fold.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/walks.h"
#include "weft/lower/range_deps.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/rewrite/op_rules.h"

namespace weft::lower {
namespace {

constexpr int64_t kMaxLanes = 64;

bool is_logic(Op op) { return op == Op::And || op == Op::Or || op == Op::Not || op == Op::Xor; }

/// Comparisons of index values, and logic over bools: masks, which are worth having as one scalar
/// per lane.
bool is_mask(NodeRef n) {
  if (n->dtype != DType::Bool || !is_alu(n->op)) return false;
  return is_logic(n->op) || (has_trait(n->op, kBoolResult) && is_index(n->src(0)->dtype));
}

class Vectoriser {
 public:
  Vectoriser(Graph& g, const RangeDeps& deps)
      : g_(g),
        deps_(deps),
        vectors_(deps_.bound_to(Binding::Vector)),
        done_(deps_),
        shared_(deps_) {}

  /// From a node and the vector range it varies over, or null, to the node to use instead: null for
  /// index expressions of a vector range, made where they are used.
  using Convert = NodeRef (Vectoriser::*)(NodeRef, NodeRef);
  NodeRef run(const OpRules<Convert>& rules) {
    if (vectors_.empty()) return deps_.order().back();
    translate(rules, deps_.order(), [this](Convert convert, NodeRef n) {
      return done_[n] = (this->*convert)(n, vector_range(n));
    });
    return made(deps_.order().back());
  }

  /// Vectors whose lanes were loaded one by one.
  std::span<const NodeRef> gathered() const { return gathered_; }
  /// Whether there are vectors whose lanes are stored one by one.
  bool scatters() const { return lane_stores_.size() > 0; }

  // ---- nodes

  NodeRef convert_other(NodeRef n, NodeRef range) {
    if (!range) return g_.with_sources(n, sources(n));
    if (n == range || (is_index(n->dtype) && is_alu(n->op))) return nullptr;
    WEFT_CHECK(is_alu(n->op), "{} in a vector", info(n->op).mnemonic);
    return convert_alu(n, range);
  }

  NodeRef convert_alu(NodeRef n, NodeRef range) {
    shared_[n] = std::ranges::all_of(n->src(), [&](NodeRef s) {
      return vector_range(s) != range || shared_[s] ||
             (is_index(s->dtype) && is_of_few(lanes(s, range)));
    });
    if (is_mask(n)) {
      const auto masks = lanes(n, range);
      NodeRef one = vec(g_, masks);
      if (one->op == Op::Splat) return one->src(0);
    }
    SmallVector<NodeRef, 4> src;
    for (NodeRef s : n->src()) src.push_back(operand(s, range));
    return elementwise(g_, n->op, n->dtype, src);
  }

  // ---- loops

  NodeRef convert_carry(NodeRef n, NodeRef range) {
    return range ? with_lanes(n, {}, lanes_of(range)) : n;
  }

  NodeRef convert_loop(NodeRef n, NodeRef range) {
    if (!range) return g_.with_sources(n, sources(n));
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src())
      src.push_back(s->op == Op::Range || s->op == Op::Loop
                        ? made(s)
                        : splat(g_, operand(s, range), lanes_of(range)));
    return with_lanes(n, src, lanes_of(range));
  }

  NodeRef convert_reduce(NodeRef n, NodeRef outer) {
    const LoopParts parts = loop_parts(n);
    const RangeSet own = deps_.set_of(parts.ranges) & vectors_;
    NodeRef inner = own.empty() ? nullptr : deps_.ranges()[static_cast<size_t>(own.last())];
    WEFT_CHECK(!inner || !outer, "a vector reduction inside a vector range");
    NodeRef over = inner ? inner : outer;
    const uint16_t count = over ? lanes_of(over) : 1;
    SmallVector<NodeRef, 8> src;
    for (NodeRef v : parts.values)
      src.push_back(splat(g_, over ? operand(v, over) : made(v), count));
    for (NodeRef r : parts.ranges)
      if (r != inner) src.push_back(made(r));
    NodeRef folded = src[0];
    // A value folded over the vector range alone needs no loop (and unrolling left exactly one).
    const bool looped = src.size() > parts.values.size();
    if (looped) folded = with_lanes(n, src, count);
    if (inner) folded = fold_lanes(g_, fold_of(n), folded);
    return looped ? folded : folded_once(g_, fold_of(n), folded);
  }

  // ---- memory

  NodeRef convert_load(NodeRef n, NodeRef range) {
    if (!range) return g_.with_sources(n, sources(n));
    NodeRef valid;
    Stride stride{};
    const bool uniform = uniform_valid(n->src(), 2, range, valid);
    const bool even = split_stride(g_, n->src(1), range, stride), affine = uniform && even;
    const uint16_t count = lanes_of(range);
    if (affine && stride.coefficient == 0) {
      shared_[n] = true;
      return load(n, at_lane(n->src(1), range, 0), valid, 1);
    }
    const int64_t unit = bits(n->dtype) / bits(n->src(0)->dtype);
    if (affine && stride.coefficient == unit)
      return load(n, at_lane(n->src(1), range, 0), valid, count);
    if (affine && stride.coefficient == -1 && unit == 1)
      return reversed_load(n, range, valid, count);
    if (!uniform && even && stride.coefficient == 0 && is_inside_anyway(n) &&
        is_computed(n->src(2), range)) {
      NodeRef one = load(n, at_lane(n->src(1), range, 0), nullptr, 1);
      return taken_if(operand(n->src(2), range), splat(g_, one, count));
    }
    // A row that data choose: its lanes are loaded without a test for each, and may be transposed.
    const bool either = valid && uniform && is_inside_anyway(n);
    SmallVector<NodeRef, 16> elements;
    for (size_t k = 0; k < count; ++k) {
      NodeRef mask = n->nsrc > 2 && !either ? at_lane(n->src(2), range, k) : nullptr;
      elements.push_back(load(n, index_at(n->src(1), range, even ? &stride : nullptr, k), mask, 1));
    }
    shared_[n] = is_of_few(elements);
    NodeRef all = loaded_once(elements);
    if (!all) gathered_.push_back(all = vec(g_, elements));
    return either ? taken_if(valid, all) : all;
  }

  /// Whether a mask, that differs from lane to lane, takes computing in most of them.
  bool is_computed(NodeRef mask, NodeRef range) {
    const auto masks = lanes(mask, range);
    const auto known = std::ranges::count_if(masks, [](NodeRef m) { return m->op == Op::Const; });
    return 2 * static_cast<size_t>(known) < masks.size();
  }
  NodeRef taken_if(NodeRef valid, NodeRef all) {
    if (is_int_const(valid, 1)) return all;
    NodeRef src[] = {splat(g_, valid, all->lanes), all,
                     splat(g_, g_.constant(Value::of(all->dtype, 0)), all->lanes)};
    return elementwise(g_, Op::Where, all->dtype, src);
  }

  /// A store, or the stores of its lanes: those go to lane_stores_ and the first stands for all.
  NodeRef convert_store(NodeRef n, NodeRef range) {
    if (!range) return g_.with_sources(n, sources(n));
    NodeRef valid;
    Stride stride{};
    const uint16_t count = lanes_of(range);
    const bool uniform = uniform_valid(n->src(), 3, range, valid);
    NodeRef value = splat(g_, operand(n->src(2), range), count);
    const bool even = split_stride(g_, n->src(1), range, stride);
    if (uniform && even && stride.coefficient == 1)
      return store(n, at_lane(n->src(1), range, 0), value, valid);
    auto& stores = lane_stores_[n];
    for (size_t k = 0; k < count; ++k) {
      NodeRef mask = n->nsrc > 3 ? at_lane(n->src(3), range, k) : nullptr;
      NodeRef at = index_at(n->src(1), range, even ? &stride : nullptr, k);
      stores.push_back(store(n, at, lane(g_, value, k), mask));
    }
    return stores[0];
  }

  /// A loop's result, or what a store that combines found: of all lanes at once, or of each lane's
  /// own store.
  NodeRef convert_get(NodeRef n, NodeRef range) {
    if (!range || n->src(0)->op != Op::Store) return convert_loop(n, range);
    const auto* stores = lane_stores_.find(n->src(0));
    const NodeRef together[] = {made(n->src(0))};
    if (!stores) return with_lanes(n, together, lanes_of(range));
    SmallVector<NodeRef, 16> found;
    for (NodeRef store : *stores) found.push_back(with_lanes(n, {&store, 1}, 1));
    return vec(g_, found);
  }

  NodeRef convert_sink(NodeRef sink, NodeRef) {
    SmallVector<NodeRef, 16> roots;
    for (NodeRef root : sink->src()) {
      if (const auto* stores = lane_stores_.find(root))
        roots.append(*stores);
      else
        roots.push_back(made(root));
    }
    return g_.intern({Op::Sink, sink->dtype, roots});
  }

 private:
  NodeRef made(NodeRef n) const {
    NodeRef found = done_[n];
    WEFT_CHECK(found, "an index {} is used as data", info(n->op).mnemonic);
    return found;
  }
  /// An operand as data: index expressions of the vector range become vectors.
  NodeRef operand(NodeRef n, NodeRef range) {
    if (NodeRef done = done_[n]) return done;
    return index_vector(n, range);
  }

  // ---- what a node depends on

  /// The vector range that is open at `n`; null when there is none. Each store may have another.
  NodeRef vector_range(NodeRef n) const {
    if (n->op == Op::Sink) return nullptr;
    const RangeSet open = deps_.of(n) & vectors_;
    if (open.empty()) return nullptr;
    NodeRef v = deps_.ranges()[static_cast<size_t>(open.last())];
    RangeSet others = open;
    others.erase(static_cast<size_t>(open.last()));
    WEFT_CHECK(others.empty(), "two vector ranges meet in one {}", info(n->op).mnemonic);
    return v;
  }
  static uint16_t lanes_of(NodeRef range) {
    NodeRef size = range->src(0);
    WEFT_CHECK(size->op == Op::Const && size->vmin >= 1 && size->vmin <= kMaxLanes,
               "a vector range needs a constant size of at most {}", kMaxLanes);
    return static_cast<uint16_t>(size->vmin);
  }

  // ---- per lane

  /// `n`, an index or mask, with the vector range at k. Iterative: index expressions may be deep.
  NodeRef at_lane(NodeRef root, NodeRef range, size_t k) {
    NodeMap<NodeRef>& memo = lane_memo(range, k);
    const auto is_known = [&](NodeRef n) {
      if (memo.contains(n)) return true;
      NodeRef known = known_at_lane(n, range, k);
      if (known) memo.set(n, known);
      return known != nullptr;
    };
    make_needed(root, is_known, [&](NodeRef n) {
      SmallVector<NodeRef, 8> src;
      for (NodeRef s : n->src()) src.push_back(memo.at(s));
      memo.set(n, g_.with_sources(n, src));
    });
    return memo.at(root);
  }

  /// The same of an index that, where that is known, takes even steps from lane to lane.
  NodeRef index_at(NodeRef index, NodeRef range, const Stride* even, size_t k) {
    if (!even || k == 0) return at_lane(index, range, k);
    return g_.add(at_lane(index, range, 0), g_.index(even->coefficient * static_cast<int64_t>(k)));
  }

  NodeRef known_at_lane(NodeRef n, NodeRef range, size_t k) {
    if (n == range) return g_.index(static_cast<int64_t>(k));
    if (vector_range(n) != range) return made(n);
    if (is_mask(n) || (is_index(n->dtype) && is_alu(n->op))) return nullptr;
    // What groups of lanes share is computed once for each of them, and never put in a vector.
    if (is_alu(n->op) && shared_[n]) return nullptr;
    return lane(g_, made(n), k);
  }

  /// Whether groups of lanes have one value each: few loads, and few lanes of whatever is made of
  /// them.
  static bool is_of_few(std::span<const NodeRef> elements) {
    constexpr size_t kLanesOfOne = 4;
    NodeMap<bool> different;
    for (NodeRef e : elements) different[e] = true;
    return different.size() * kLanesOfOne <= elements.size();
  }

  NodeMap<NodeRef>& lane_memo(NodeRef range, size_t k) {
    auto& memos = memos_[range];
    if (memos.empty()) memos.resize(lanes_of(range));
    return memos[k];
  }

  SmallVector<NodeRef, 16> lanes(NodeRef n, NodeRef range) {
    SmallVector<NodeRef, 16> out;
    for (size_t k = 0; k < lanes_of(range); ++k) out.push_back(at_lane(n, range, k));
    return out;
  }

  /// An index expression as a vector: base + k*stride where it is that, else lane by lane.
  NodeRef index_vector(NodeRef n, NodeRef range) {
    const uint16_t count = lanes_of(range);
    Stride stride{};
    if (!split_stride(g_, n, range, stride)) return vec(g_, lanes(n, range));
    NodeRef base = splat(g_, at_lane(n, range, 0), count);
    if (stride.coefficient == 0) return base;
    SmallVector<NodeRef, 16> steps;
    for (int64_t k = 0; k < count; ++k) steps.push_back(g_.index(k * stride.coefficient));
    const NodeRef src[] = {base, vec(g_, steps)};
    return g_.intern({Op::Add, DType::Index, src, {}, {}, count});
  }

  SmallVector<NodeRef, 8> sources(NodeRef n) const {
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src()) src.push_back(made(s));
    return src;
  }

  NodeRef with_lanes(NodeRef n, std::span<const NodeRef> src, uint16_t count) {
    return g_.intern({n->op, n->dtype, src, n->ints(), n->text(), count});
  }

  // ---- memory

  /// One validity for all lanes; false where lanes differ.
  bool uniform_valid(std::span<const NodeRef> access, size_t at, NodeRef range, NodeRef& valid) {
    valid = nullptr;
    if (access.size() <= at) return true;
    if (!vector_range(access[at])) {
      valid = made(access[at]);
      return true;
    }
    const auto masks = lanes(access[at], range);
    valid = masks[0];
    for (NodeRef m : masks)
      if (m != valid) return false;
    return true;
  }

  NodeRef load(NodeRef n, NodeRef index, NodeRef valid, uint16_t count) {
    SmallVector<NodeRef, 3> src{made(n->src(0)), index};
    if (valid) src.push_back(valid);
    return g_.intern({Op::Load, n->dtype, src, n->ints(), {}, count});
  }

  NodeRef reversed_load(NodeRef n, NodeRef range, NodeRef valid, uint16_t count) {
    NodeRef forward = load(n, at_lane(n->src(1), range, count - size_t{1}), valid, count);
    SmallVector<NodeRef, 16> elements;
    for (size_t k = count; k-- > 0;) elements.push_back(lane(g_, forward, k));
    return vec(g_, elements);
  }

  /// Lanes of one shorter vector where that holds all that is loaded, which lies side by side; null
  /// where it is anything else.
  NodeRef loaded_once(std::span<const NodeRef> loads) {
    NodeRef one = loads[0];
    const int64_t step = bits(one->dtype) / bits(one->src(0)->dtype);
    NodeRef rest = split_offset(g_, one->src(1)).rest;
    std::vector<int64_t> at;
    for (NodeRef load : loads) {
      const Offset offset = split_offset(g_, load->src(1));
      if (is_bool(load->dtype) || load->nsrc > 2 || offset.rest != rest) return nullptr;
      at.push_back(offset.constant);
    }
    std::vector<int64_t> places = at;
    std::ranges::sort(places);
    places.erase(std::unique(places.begin(), places.end()), places.end());
    const auto count = static_cast<uint16_t>(places.size());
    if (count == 1 || 2 * count > loads.size() || !std::has_single_bit(count)) return nullptr;
    for (size_t k = 0; k < count; ++k)
      if (places[k] != places[0] + static_cast<int64_t>(k) * step) return nullptr;
    NodeRef lowest = loads[static_cast<size_t>(std::ranges::find(at, places[0]) - at.begin())];
    NodeRef all = g_.intern({Op::Load, one->dtype, lowest->src(), one->ints(), {}, count});
    SmallVector<NodeRef, 16> lanes;
    for (const int64_t place : at)
      lanes.push_back(lane(g_, all, static_cast<size_t>((place - places[0]) / step)));
    return vec(g_, lanes);
  }

  /// The vector range itself is one whose values differ in the index.
  NodeRef store(NodeRef n, NodeRef index, NodeRef value, NodeRef valid) {
    SmallVector<NodeRef, 4> src{made(n->src(0)), index, value};
    if (valid) src.push_back(valid);
    for (size_t i = kStoreRanges; i < n->nsrc; ++i)
      if (!vector_range(n->src(i))) src.push_back(made(n->src(i)));
    return g_.intern({Op::Store, n->dtype, src, n->ints(), {}, value->lanes});
  }

  Graph& g_;
  const RangeDeps& deps_;
  RangeSet vectors_;
  PerNode<NodeRef> done_;    // null for index expressions of a vector range
  PerNode<uint8_t> shared_;  // data of which groups of lanes have one value each
  NodeMap<std::vector<NodeMap<NodeRef>>> memos_;
  NodeMap<std::vector<NodeRef>> lane_stores_;
  std::vector<NodeRef> gathered_;
};

constexpr OpRule<Vectoriser::Convert> kRules[] = {
    on(Op::Reduce, "reduce.vector", &Vectoriser::convert_reduce),
    on(Op::Scan, "scan.vector", &Vectoriser::convert_loop),
    on(Op::Loop, "loop.vector", &Vectoriser::convert_loop),
    on(Op::Carry, "carry.vector", &Vectoriser::convert_carry),
    on(Op::Get, "get.vector", &Vectoriser::convert_get),
    on(Op::Load, "load.vector", &Vectoriser::convert_load),
    on(Op::Store, "store.vector", &Vectoriser::convert_store),
    on(Op::Sink, "sink.vector", &Vectoriser::convert_sink),
    otherwise("any.vector", &Vectoriser::convert_other),
};
constexpr OpRules kVectorRules(
    "vectorise",
    "Lowering: what varies over a vector range has lanes; accesses of stride 1 stay one.", kRules);

}  // namespace

NodeRef vectorise(Graph& g, Analysis& of, const Target& target) {
  Vectoriser vectoriser(g, of.deps());
  NodeRef made = vectoriser.run(kVectorRules);
  made = transpose_loads(g, made, vectoriser.gathered(), target);
  return vectoriser.scatters() ? transpose_stores(g, made, target) : made;
}

RuleSetRow vector_rules() { return kVectorRules.row(); }

}  // namespace weft::lower
