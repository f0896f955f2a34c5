// Work groups: what their items share goes through local memory, with barriers in between.
//
// A Stage becomes copies that all items of the group share out among them, a barrier, and a load
// where the value was. A Reduce over group ranges becomes each item's own part, and a tree in local
// memory, whose root every item reads, or shuffles in its wave where machines have those. Ranges of
// grid and group are gone: one item's program asks which item it is.
//
// A Barrier is local memory as it is after it; so loads name the barrier that they come after, and
// nothing else has to be kept in order.
#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "weft/base/error.h"
#include "weft/graph/fold.h"
#include "weft/graph/stage.h"
#include "weft/lower/range_deps.h"
#include "weft/lower/steps.h"
#include "weft/rewrite/driver.h"
#include "weft/rewrite/op_rules.h"
#include "weft/target/target.h"

namespace weft::lower {
namespace {

constexpr int64_t kSpeltOut = 16;  // rounds of a copy

bool is_launched(NodeRef n) {
  return n->op == Op::Range &&
         (range_binding(n) == Binding::Grid || range_binding(n) == Binding::Group);
}

class GroupLowering {
 public:
  /// The image of a node, given those of its sources.
  using Make = NodeRef (GroupLowering::*)(NodeRef);

  GroupLowering(Graph& g, const RangeDeps& deps, const Target& target, const OpRules<Make>& rules)
      : g_(g), target_(target), rules_(rules), deps_(deps) {
    for (NodeRef r : deps_.ranges()) next_range_ = std::max(next_range_, range_id(r) + 1);
    for (NodeRef r : deps_.ranges())
      if (is_launched(r)) id_of(r);
  }

  NodeRef run() {
    NodeRef made = image(deps_.order().back());
    WEFT_CHECK(local_bits_ <= 8 * target_.groups.local_bytes,
               "a kernel's groups share {} bytes, and the machine has {}", local_bits_ / 8,
               target_.groups.local_bytes);
    return made;
  }

  // ---- nodes

  NodeRef make_other(NodeRef n) { return g_.with_sources(n, sources(n)); }
  NodeRef make_range(NodeRef n) { return is_launched(n) ? id_of(n) : make_other(n); }

  /// Of the items that would all store the same, the first one does.
  NodeRef make_store(NodeRef store) {
    SmallVector<NodeRef, 8> src = sources(store);
    const RangeSet& open = deps_.of(store);
    SmallVector<NodeRef, 8> others;
    for (const auto& [key, id] : ids_) {
      bool varies = false;
      open.each([&](size_t r) {
        NodeRef range = deps_.ranges()[r];
        varies |= is_launched(range) && done_.at(range) == id;
      });
      if (!varies) others.push_back(g_.alu(Op::Eq, {id, g_.index(0)}));
    }
    if (others.empty()) return g_.with_sources(store, src);
    NodeRef first = src.size() > 3 ? src[3] : g_.boolean(true);
    for (NodeRef o : others) first = g_.logical_and(first, o);
    if (src.size() < 4) src.resize(4);
    src[3] = first;
    return g_.with_sources(store, src);
  }

  // ---- stages

  NodeRef read_staged(NodeRef n) {
    WEFT_CHECK(deps_.contains(n), "a stage in what another one's copies compute");
    SmallVector<NodeRef, 8> ranges;
    const StageParts parts = parts_of(n, ranges);
    NodeRef memory = copied(n, parts), at = buffer_of(n, parts);
    for (size_t i = 0; i < ranges.size(); ++i)
      at = g_.add(at, g_.mul(image(ranges[i]), g_.index(parts.strides[i])));
    return load(memory, at);
  }

  // ---- reductions

  NodeRef make_reduce(NodeRef n) {
    const SmallVector<NodeRef, 8> src = sources(n);
    SmallVector<NodeRef, 8> own{src[0]}, group;
    for (NodeRef r : std::span<const NodeRef>(src).subspan(1))
      (r->op == Op::WorkId ? group : own).push_back(r);
    if (group.empty()) return g_.with_sources(n, src);
    // As the machine counts items.
    std::ranges::sort(group, std::greater(), [](NodeRef id) { return id->int_arg(1); });
    WEFT_CHECK(deps_.contains(n), "a staged value is reduced across its group");
    NodeRef part = own.size() > 1 ? g_.make({Op::Reduce, n->dtype, own, n->ints()})
                                  : folded_once(g_, fold_of(n), own[0]);
    return shuffled(n, group) ? across_waves(n, part, group) : tree(n, part, group);
  }

 private:
  // ---- which item

  /// The WorkId that stands for a range of the grid or of the group.
  NodeRef id_of(NodeRef range) {
    const auto binding = range_binding(range);
    NodeRef& id = ids_[{binding, range_axis(range)}];
    if (id) return id;
    const NodeRef src[] = {range->src(0)};
    const int64_t ints[] = {static_cast<int64_t>(binding), static_cast<int64_t>(range_axis(range))};
    return id = g_.make({Op::WorkId, DType::Index, src, ints});
  }

  struct Flat {
    NodeRef at;
    int64_t size;
  };
  /// A row-major number of these, which have constant sizes.
  Flat flat(std::span<const NodeRef> ids) {
    Flat f{g_.index(0), 1};
    for (NodeRef id : ids) {
      f.at = g_.add(g_.mul(f.at, id->src(0)), id);
      f.size *= id->src(0)->vmin;
    }
    return f;
  }
  /// The item's number in its group; x steps fastest, as neighbours of a wave do.
  Flat item() {
    SmallVector<NodeRef, 4> ids;
    for (size_t axis = kLaunchAxes; axis-- > 0;)
      if (const auto id = ids_.find({Binding::Group, axis}); id != ids_.end())
        ids.push_back(id->second);
    return flat(ids);
  }

  // ---- nodes

  SmallVector<NodeRef, 8> sources(NodeRef n) const {
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src()) src.push_back(done_.at(s));
    return src;
  }

  NodeRef image(NodeRef root) {
    std::vector<NodeRef> stack{root};
    while (!stack.empty()) {
      NodeRef n = stack.back();
      if (done_.contains(n)) {
        stack.pop_back();
        continue;
      }
      const size_t before = stack.size();
      // A staged value is read, not computed here; its copy is.
      const bool staged = n->op == Op::Stage;
      for (NodeRef s : n->src().subspan(staged ? 1 : 0))
        if (!done_.contains(s)) stack.push_back(s);
      if (stack.size() != before) continue;
      translate(rules_, {&n, 1}, [this](Make make, NodeRef of) {
        NodeRef made = (this->*make)(of);
        return done_.set(of, made);
      });
    }
    return done_.at(root);
  }

  // ---- local memory

  NodeRef local(DType dtype, int64_t elements) {
    local_bits_ += elements * std::max<int64_t>(target_.groups.least_local_bits, bits(dtype));
    const NodeRef src[] = {g_.index(elements)};
    const int64_t ints[] = {next_local_++, 0};
    return g_.make({Op::Local, dtype, src, ints});
  }
  NodeRef store(NodeRef memory, NodeRef at, NodeRef value, NodeRef valid) {
    SmallVector<NodeRef, 4> src{memory, at, value};
    if (valid) src.push_back(valid);
    const int64_t ints[] = {static_cast<int64_t>(Fold::Set), 1};
    return g_.make({Op::Store, DType::Void, src, ints});
  }
  NodeRef load(NodeRef memory, NodeRef at, NodeRef valid = nullptr) {
    SmallVector<NodeRef, 4> src{memory, at};
    if (valid) src.push_back(valid);
    return g_.make({Op::Load, memory->dtype, src});
  }
  /// `memory` after a barrier that follows the store, which happens for all values of `range`.
  NodeRef barrier(NodeRef memory, NodeRef stored, NodeRef range, int64_t id, int64_t buffers = 1) {
    SmallVector<NodeRef, 4> src{memory, stored};
    if (range) src.push_back(range);
    const int64_t ints[] = {id, 1, buffers};
    return g_.make({Op::Barrier, memory->dtype, src, ints});
  }

  /// With the items, and the copies of the code, that the value is different in: each has elements
  /// of its own.
  StageParts parts_of(NodeRef stage, SmallVector<NodeRef, 8>& ranges) {
    StageParts parts = stage_parts(stage);
    ranges.assign(parts.ranges);
    RangeSet apart = deps_.bound_to(Binding::Unroll);
    apart |= deps_.bound_to(Binding::Group);
    (apart & deps_.of(stage->src(0))).each([&](size_t position) {
      NodeRef r = deps_.ranges()[position];
      if (contains(ranges, r)) return;
      ranges.push_back(r);
      parts.strides.push_back(parts.elements);
      parts.elements *= r->src(0)->vmin;
    });
    parts.ranges = ranges;
    // Which of several loops runs inside is not known yet.
    if (loops_around(stage).size() != 1) parts.buffers = 1;
    return parts;
  }

  /// Local memory with the staged value for all values of its ranges: item i of n copies elements
  /// i, i + n and so on.
  NodeRef copied(NodeRef n, const StageParts& parts) {
    int64_t size = 1;
    for (NodeRef r : parts.ranges) size *= r->src(0)->vmin;
    const Flat me = item();
    const int64_t rounds = (size + me.size - 1) / me.size;
    const Binding binding = rounds <= kSpeltOut ? Binding::Unroll : Binding::Loop;
    NodeRef round = rounds > 1 ? g_.range(rounds, next_range_++, binding) : nullptr;
    NodeRef element = round ? g_.add(g_.mul(round, g_.index(me.size)), me.at) : me.at;
    NodeRef inside = size % me.size ? g_.lt(element, g_.index(size)) : nullptr;
    NodeMap<NodeRef> digits;
    NodeRef at = buffer_of(n, parts);
    int64_t step = 1;
    for (size_t i = parts.ranges.size(); i-- > 0;) {
      NodeRef r = parts.ranges[i];
      NodeRef digit = g_.mod(g_.idiv(element, g_.index(step)), r->src(0));
      digits.set(r, digit);
      at = g_.add(at, g_.mul(digit, g_.index(parts.strides[i])));
      step *= r->src(0)->vmin;
    }
    NodeRef value = image(substitute(g_, parts.value, digits));
    NodeRef memory = local(n->dtype, parts.elements * parts.buffers);
    return barrier(memory, store(memory, at, value, inside), round, barrier_of(n), parts.buffers);
  }

  /// Positions of the loops that one copy is made in each iteration of.
  std::vector<size_t> loops_around(NodeRef stage) const {
    RangeSet around = deps_.of(stage);
    for (NodeRef r : stage_parts(stage).ranges) around.erase(deps_.position(r));
    std::vector<size_t> loops;
    around.each([&](size_t r) {
      NodeRef range = deps_.ranges()[r];
      if (!is_launched(range) && range_binding(range) != Binding::Unroll) loops.push_back(r);
    });
    return loops;
  }

  /// Where the buffer begins whose turn it is: iterations of the loop around take turns.
  NodeRef buffer_of(NodeRef stage, const StageParts& parts) {
    if (parts.buffers == 1) return g_.index(0);
    NodeRef loop = image(deps_.ranges()[loops_around(stage).front()]);
    return g_.mul(g_.mod(loop, g_.index(parts.buffers)), g_.index(parts.elements));
  }

  /// Stages in one place share their barriers: each copies, then all wait.
  int64_t barrier_of(NodeRef stage) {
    const auto [known, fresh] = barriers_.try_emplace(loops_around(stage), next_barrier_);
    next_barrier_ += fresh;
    return known->second;
  }

  /// Where in the tree's memory this item's parts begin that are not folded with others: items
  /// along the other axes, and copies of the code, have trees of their own.
  Flat apart(NodeRef n, std::span<const NodeRef> group) {
    SmallVector<NodeRef, 8> ids;
    (deps_.of(n) & deps_.bound_to(Binding::Unroll)).each([&](size_t r) {
      ids.push_back(deps_.ranges()[r]);
    });
    for (const auto& [key, id] : ids_)
      if (key.first == Binding::Group && !contains(group, id)) ids.push_back(id);
    return flat(ids);
  }

  NodeRef tree(NodeRef n, NodeRef part, std::span<const NodeRef> group) {
    const Flat me = flat(group), row = apart(n, group);
    NodeRef first = g_.mul(row.at, g_.index(me.size)), at = g_.add(first, me.at);
    NodeRef memory = local(n->dtype, row.size * me.size);
    NodeRef known = barrier(memory, store(memory, at, part, nullptr), nullptr, next_barrier_++);
    for (int64_t left = me.size; left > 1;) {
      const int64_t half = (left + 1) / 2;
      NodeRef mine = g_.lt(me.at, g_.index(left - half));
      NodeRef other = load(known, g_.add(at, g_.index(half)), mine);
      NodeRef both = g_.alu(fold_op(fold_of(n)), {load(known, at, mine), other});
      known = barrier(known, store(known, at, both, mine), nullptr, next_barrier_++);
      left = half;
    }
    return load(known, first);
  }

  /// Whether waves fold this: each has items of one row of the group alone, and there are no more
  /// waves than items of one.
  bool shuffled(NodeRef n, std::span<const NodeRef> group) const {
    const WorkGroups& machine = target_.groups;
    if ((machine.shuffled & dtype_bit(n->dtype)) == 0) return false;
    NodeRef x = group.back();
    if (x->int_arg(1) != 0 || x->src(0)->vmin % machine.wave != 0) return false;
    int64_t items = 1;
    for (NodeRef id : group) items *= id->src(0)->vmin;
    return items / machine.wave <= machine.wave;
  }

  /// In all of `items` neighbours, what they have together.
  NodeRef by_shuffles(NodeRef n, NodeRef value, int64_t items) {
    for (int64_t mask = items / 2; mask > 0; mask /= 2) {
      NodeRef other = g_.make({Op::Shuffle, n->dtype, std::span(&value, 1), std::span(&mask, 1)});
      value = g_.alu(fold_op(fold_of(n)), {value, other});
    }
    return value;
  }

  /// Each wave folds its items' parts, then, as all the others do, what the waves have.
  NodeRef across_waves(NodeRef n, NodeRef part, std::span<const NodeRef> group) {
    const int64_t wave = target_.groups.wave;
    const Flat me = flat(group), row = apart(n, group);
    NodeRef mine = by_shuffles(n, part, wave);
    const int64_t waves = me.size / wave;
    if (waves == 1) return mine;
    const auto slot = [&](NodeRef which) { return g_.add(g_.mul(row.at, g_.index(waves)), which); };
    NodeRef size = g_.index(wave), first = g_.alu(Op::Eq, {g_.mod(me.at, size), g_.index(0)});
    NodeRef memory = local(n->dtype, row.size * waves);
    NodeRef stored = store(memory, slot(g_.idiv(me.at, size)), mine, first);
    NodeRef known = barrier(memory, stored, nullptr, next_barrier_++);
    const auto near = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(waves)));
    NodeRef which = g_.mod(me.at, g_.index(near));
    if (near == waves) return by_shuffles(n, load(known, slot(which)), near);
    NodeRef there = g_.lt(which, g_.index(waves));
    NodeRef identity = g_.constant(fold_identity(fold_of(n), n->dtype));
    return by_shuffles(n, g_.where(there, load(known, slot(which), there), identity), near);
  }

  Graph& g_;
  const Target& target_;
  const OpRules<Make>& rules_;
  const RangeDeps& deps_;
  NodeMap<NodeRef> done_;
  std::map<std::pair<Binding, size_t>, NodeRef> ids_;
  std::map<std::vector<size_t>, int64_t> barriers_;  // of stages, by the loops around them
  int64_t next_range_ = 0, next_local_ = 0, next_barrier_ = 0;
  int64_t local_bits_ = 0;
};

constexpr OpRule<GroupLowering::Make> kRules[] = {
    on(Op::Range, "range.grouped", &GroupLowering::make_range),
    on(Op::Stage, "stage.grouped", &GroupLowering::read_staged),
    on(Op::Reduce, "reduce.grouped", &GroupLowering::make_reduce),
    on(Op::Store, "store.grouped", &GroupLowering::make_store),
    otherwise("any.grouped", &GroupLowering::make_other),
};
constexpr OpRules kGroupRules(
    "work groups", "Lowering: what the items of a group share goes through local memory.", kRules);

/// Without groups every range is a loop, and what is staged is computed where it is used.
NodeRef erased(Graph& g, NodeRef sink) {
  return rebuild(sink, [&g](NodeRef n, std::span<const NodeRef> src) {
    return n->op == Op::Stage ? src[0] : g.with_sources(n, src);
  });
}

}  // namespace

NodeRef stage_local(Graph& g, Analysis& of, const Target& target) {
  const std::span<const NodeRef> nodes = of.order().nodes();
  if (target.groups.exist() && std::ranges::any_of(nodes, is_launched))
    return GroupLowering(g, of.deps(), target, kGroupRules).run();
  const bool staged = std::ranges::any_of(nodes, [](NodeRef n) { return n->op == Op::Stage; });
  return staged ? erased(g, of.sink()) : of.sink();
}

RuleSetRow group_rules() { return kGroupRules.row(); }

}  // namespace weft::lower
