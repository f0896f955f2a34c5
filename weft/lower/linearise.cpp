// The instructions in order: loops are bracketed, loop state becomes registers, every value is
// computed in the outermost loop it can be and close to where it is used.
#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/graph/fold.h"
#include "weft/graph/walks.h"
#include "weft/lower/blocks.h"
#include "weft/lower/legaliser.h"
#include "weft/lower/loop_tree.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/rewrite/op_rules.h"

namespace weft::lower {
namespace {

class Lineariser {
 public:
  Lineariser(Analysis& of, const Target& target)
      : deps_(of.deps()),
        tree_(of.loops()),
        graph_(std::make_shared<Graph>()),
        legal_(*graph_, target),
        blocks_(2 * deps_.order().size()),
        done_(deps_) {
    for (NodeRef n : deps_.order())
      if (n->op == Op::Loop) loops_by_id_[n->int_arg(0)] = n;
    WEFT_CHECK(tree_.conflicts().empty(), "a range runs in two places");
    declare_loops();
  }

  /// Puts a node into its block; gives the instruction, or the register, that has its value.
  using Place = NodeRef (Lineariser::*)(NodeRef);
  LinearProgram run(const OpRules<Place>& rules) {
    find_local_stores();
    translate(rules, deps_.order(),
              [this](Place place, NodeRef n) { return done_[n] = (this->*place)(n); });
    interleave_chains();
    pair_steps();
    for (const auto& [param, accesses] : accesses_) order_accesses(accesses);
    LinearProgram program;
    program.graph = graph_;
    program.code = blocks_.in_order();
    return program;
  }

  // ---- nodes

  NodeRef place_nothing(NodeRef) { return nullptr; }
  NodeRef place_leaf(NodeRef n) {
    return graph_->intern({n->op, n->dtype, {}, n->ints(), n->text(), n->lanes});
  }
  NodeRef place_other(NodeRef n) { return settle(made(n)); }
  NodeRef place_step(NodeRef n) {
    steps_.push_back(settle(made(n)));
    return steps_.back();
  }

  NodeRef place_range(NodeRef n) {
    const NodeRef src[] = {settle(source(n->src(0)))};
    NodeRef range = graph_->intern({Op::Range, n->dtype, src, n->ints()});
    const int b = block_of_range_[deps_.position(n)];
    blocks_.set_range(*graph_, b, range);
    return range;
  }

  // ---- loop state

  NodeRef place_reduce(NodeRef n) {
    const LoopParts parts = loop_parts(n);
    check_state(n, parts.ranges);
    const int inner = innermost(parts.ranges), outer = outermost(parts.ranges);
    NodeRef acc = new_acc(identity(n), blocks_.parent(outer));
    NodeRef sum = get_acc(acc, 0, inner);
    std::vector<NodeRef> steps;
    for (NodeRef v : parts.values) {
      sum = folded(fold_of(n), sum, splat(*graph_, source(v), n->lanes));
      steps.push_back(settle(sum));
    }
    steps.back() = set_acc(acc, sum, inner);
    chains_.push_back(std::move(steps));
    return result_after(acc, outer);
  }

  NodeRef place_scan(NodeRef n) {
    const LoopParts parts = loop_parts(n);
    check_state(n, parts.ranges);
    const int at = innermost(parts.ranges);
    NodeRef acc = new_acc(identity(n), blocks_.parent(at));
    NodeRef value = splat(*graph_, source(parts.values[0]), n->lanes);
    NodeRef sum = folded(fold_of(n), get_acc(acc, 0, at), value);
    blocks_.add_root(set_acc(acc, sum, at));
    return sum;
  }

  NodeRef place_get(NodeRef n) {
    return results_.at(n->src(0))[static_cast<size_t>(n->int_arg(0))];
  }

  NodeRef place_loop(NodeRef n) {
    const LoopParts parts = loop_parts(n);
    check_state(n, parts.ranges);
    const int inner = innermost(parts.ranges), outer = outermost(parts.ranges);
    State& s = state(n);
    SmallVector<NodeRef, 4> updates;
    for (size_t k = 0; k < s.accs.size(); ++k)
      updates.push_back(settle(splat(*graph_, source(parts.values[k]), s.accs[k]->lanes)));
    SmallVector<NodeRef, 4> sets;
    for (size_t k = 0; k < s.accs.size(); ++k)
      sets.push_back(set_acc(s.accs[k], updates[k], inner));
    // Together: a register changes only when all new values are known and all old ones were read.
    for (NodeRef set : sets) {
      blocks_.add_root(set);
      for (NodeRef update : updates) blocks_.after(set, update);
      for (NodeRef old : s.before) blocks_.after(set, old);
    }
    auto& results = results_[n];
    for (size_t k = 0; k < s.accs.size(); ++k)
      results.push_back(parts.open ? updates[k] : result_after(s.accs[k], outer));
    return nullptr;
  }

  // ---- memory

  NodeRef place_load(NodeRef n) {
    if (n->src(0)->op == Op::Barrier) return place_local_load(n);
    NodeRef load = settle(made(n));
    note_access(load, false);
    return load;
  }

  NodeRef place_store(NodeRef n) {
    if (n->src(0)->op != Op::Param) return place_local_store(n);
    SmallVector<NodeRef, 8> src = sources(n);
    const auto combine = static_cast<Fold>(n->int_arg(0));
    int at = top_;
    for (NodeRef s : src) at = blocks_.deeper(at, blocks_.block(settle(s)));
    // What ranges there are is settled: it is where the store is.
    if (src.size() > kStoreRanges) src.resize(is_int_const(src[3], 1) ? 3 : kStoreRanges);
    if (combine != Fold::Set) src[2] = combined(combine, src, at, n);
    const int64_t ints[] = {static_cast<int64_t>(Fold::Set), n->int_arg(1)};
    NodeRef store = graph_->intern({Op::Store, n->dtype, src, ints, {}, n->lanes});
    WEFT_CHECK(!blocks_.contains(store), "one value is stored to one place twice");
    blocks_.add(store, at);
    blocks_.add_root(store);
    note_access(store, true);
    return store;
  }

  // ---- memory of a group

  NodeRef place_local_store(NodeRef n) {
    SmallVector<NodeRef, 8> src = sources(n);
    int at = store_blocks_.at(n);
    for (NodeRef s : src) at = blocks_.deeper(at, blocks_.block(settle(s)));
    NodeRef store = graph_->intern({Op::Store, n->dtype, src, n->ints(), {}, n->lanes});
    WEFT_CHECK(!blocks_.contains(store), "one value is stored to one place twice");
    // What it comes after is known when its barrier is placed.
    blocks_.add(store, blocks_.deeper(at, block(tree_.deepest(deps_.of(n)))));
    blocks_.add_root(store);
    return store;
  }

  NodeRef place_barrier(NodeRef n) {
    const int at = block(tree_.place(n));
    Barrier& b = barriers_[n->int_arg(0)];
    if (!b.after) b = {nullptr, barrier_instruction(n, 1, at), at};
    WEFT_CHECK(b.block == at, "a barrier in two places");
    // Local memory that another barrier gave is written where nothing else is read.
    if (n->src(0)->op == Op::Local && at != Blocks::kTop && !takes_turns(n, at) && !b.before)
      b.before = barrier_instruction(n, 0, at);
    for (NodeRef s : loop_parts(n).values) {
      blocks_.after(b.after, done_[s]);
      if (b.before) blocks_.after(done_[s], b.before);
    }
    NodeRef memory = done_[n->src(0)];
    const int64_t ints[] = {memory->int_arg(0), n->int_arg(0) + 1};
    return settle(graph_->intern({Op::Local, memory->dtype, memory->src(), ints}));
  }

  NodeRef place_local_load(NodeRef n) {
    NodeRef load = made(n);
    const Barrier& b = barriers_.at(n->src(0)->int_arg(0));
    for (NodeRef s : load->src()) settle(s);
    if (!blocks_.contains(load)) blocks_.add(load, b.block);
    blocks_.after(load, b.after);
    return load;
  }

 private:
  // ---- loops

  void declare_loops() {
    // Parents first: a loop's block is inside its parent's.
    std::vector<size_t> by_depth(deps_.ranges().size());
    for (size_t i = 0; i < by_depth.size(); ++i) by_depth[i] = i;
    std::sort(by_depth.begin(), by_depth.end(), [this](size_t a, size_t b) {
      const int da = tree_.depth(static_cast<int>(a)), db = tree_.depth(static_cast<int>(b));
      return da != db ? da < db : a < b;
    });
    block_of_range_.resize(by_depth.size());
    for (size_t r : by_depth) {
      const int parent = tree_.parent(r);
      block_of_range_[r] =
          blocks_.add_loop(parent == LoopTree::kTop ? Blocks::kTop : block(parent));
      const bool core = range_binding(deps_.ranges()[r]) == Binding::Core;
      if (core) top_ = block_of_range_[r];
    }
  }
  int block(int position) const {
    return position == LoopTree::kTop ? top_ : block_of_range_[static_cast<size_t>(position)];
  }

  // ---- nodes

  NodeRef source(NodeRef n) {
    if (n->op == Op::Carry) return carry(n);
    NodeRef found = done_[n];
    WEFT_CHECK(found, "{} has no value of its own in a program", info(n->op).mnemonic);
    return found;
  }
  NodeRef made(NodeRef n) {
    SmallVector<NodeRef, 8> src = sources(n);
    return graph_->make({n->op, n->dtype, src, n->ints(), n->text(), n->lanes});
  }
  SmallVector<NodeRef, 8> sources(NodeRef n) {
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src()) src.push_back(source(s));
    return src;
  }

  /// Puts `n`, and what building it made on the way, into the innermost block of its sources.
  NodeRef settle(NodeRef n) {
    make_needed(
        n, [this](NodeRef x) { return blocks_.contains(x); },
        [this](NodeRef x) { blocks_.add(x, x->nsrc == 0 ? Blocks::kTop : top_); });
    return n;
  }

  // ---- loop state

  NodeRef new_acc(NodeRef init, int at) {
    const NodeRef src[] = {settle(init)};
    const int64_t ints[] = {next_acc_++};
    NodeRef acc = graph_->intern({Op::Acc, init->dtype, src, ints, {}, init->lanes});
    blocks_.add(acc, at);
    return acc;
  }
  /// version 0: inside the loop, before the update; 1: after the loop.
  NodeRef get_acc(NodeRef acc, int64_t version, int at) {
    const NodeRef src[] = {acc};
    const int64_t ints[] = {version};
    NodeRef get = graph_->intern({Op::GetAcc, acc->dtype, src, ints, {}, acc->lanes});
    blocks_.add(get, at);
    return get;
  }
  NodeRef set_acc(NodeRef acc, NodeRef value, int at) {
    const NodeRef src[] = {acc, settle(value)};
    NodeRef set = graph_->intern({Op::SetAcc, acc->dtype, src, {}, {}, acc->lanes});
    blocks_.add(set, at);
    return set;
  }
  NodeRef folded(Fold fold, NodeRef so_far, NodeRef value) {
    if (NodeRef sum = fold == Fold::Add ? continued(so_far, value) : nullptr) return sum;
    if (may_contract(legal_.target(), fold, value))
      return fold_in(*graph_, fold, so_far, value, true);
    const NodeRef src[] = {so_far, value};
    return splat(*graph_, legal_.make(fold_op(fold), so_far->dtype, src), so_far->lanes);
  }
  /// A chain of multiply-adds, of sums of words, that goes on from what there is, in the place of a
  /// sum of its own that is added: registers side by side then take turns with each of its steps.
  /// Null where `value` is none.
  NodeRef continued(NodeRef so_far, NodeRef value) {
    std::vector<NodeRef> chain;
    for (; value->op == Op::MulAcc && is_float(value->dtype); value = value->src(2))
      chain.push_back(value);
    if (chain.empty() || legal_.target().canonical ||
        !may_contract(legal_.target(), Fold::Add, value) || !sum_of_words(value))
      return nullptr;
    NodeRef sum = fold_in(*graph_, Fold::Add, so_far, value, true);
    for (size_t i = chain.size(); i-- > 0;) {
      const NodeRef src[] = {chain[i]->src(0), chain[i]->src(1), sum};
      sum = graph_->intern({Op::MulAcc, sum->dtype, src, {}, {}, sum->lanes});
    }
    return sum;
  }
  NodeRef identity(NodeRef n) {
    return splat(*graph_, graph_->constant(fold_identity(fold_of(n), n->dtype)), n->lanes);
  }
  /// The outermost and innermost block of a loop over these ranges.
  int outermost(std::span<const NodeRef> ranges) const { return loop_block(ranges, false); }
  int innermost(std::span<const NodeRef> ranges) const { return loop_block(ranges, true); }
  int loop_block(std::span<const NodeRef> ranges, bool inner) const {
    int best = -1;
    for (NodeRef r : ranges) {
      const int b = block_of_range_[deps_.position(r)];
      if (best < 0 || (blocks_.depth(b) > blocks_.depth(best)) == inner) best = b;
    }
    return best;
  }

  /// All loops that a fold depends on are its own or lie around those: a loop inside would go on
  /// with what another of its iterations has left.
  void check_state(NodeRef n, std::span<const NodeRef> own) const {
    RangeSet allowed = deps_.set_of(own);
    size_t outer = deps_.position(own[0]);
    allowed.each([&](size_t r) {
      if (tree_.depth(static_cast<int>(r)) < tree_.depth(static_cast<int>(outer))) outer = r;
    });
    for (int p = tree_.parent(outer); p != LoopTree::kTop; p = tree_.parent(static_cast<size_t>(p)))
      allowed.insert(static_cast<size_t>(p));
    deps_.of(n).each([&](size_t r) {
      WEFT_CHECK(allowed.contains(r), "a {} has one state for all iterations of range {}",
                 info(n->op).mnemonic, range_id(deps_.ranges()[r]));
    });
  }

  /// Accumulators side by side take their first values, then their second: what they share is
  /// needed for one step only.
  void interleave_chains() {
    size_t longest = 0;
    for (const auto& steps : chains_) longest = std::max(longest, steps.size());
    for (size_t i = 0; i < longest; ++i)
      for (const auto& steps : chains_)
        if (i < steps.size()) blocks_.add_root(steps[i]);
  }

  /// Of a transposition, what is made of one pair of vectors is made together: then these are gone.
  void pair_steps() {
    for (NodeRef n : steps_)
      for (NodeRef s : n->src()) {
        if (s->op != Op::Trn) continue;
        const int64_t other[] = {s->int_arg(0), 1 - s->int_arg(1)};
        NodeRef beside = graph_->intern({Op::Trn, s->dtype, s->src(), other, {}, s->lanes});
        if (blocks_.contains(beside)) blocks_.after(n, beside);
      }
  }

  NodeRef result_after(NodeRef acc, int loop) {
    NodeRef result = get_acc(acc, 1, blocks_.parent(loop));
    blocks_.after_loop(result, loop);
    return result;
  }

  /// The registers of a loop are made when its first carry, or the loop itself, is met.
  struct State {
    SmallVector<NodeRef, 4> accs, before;  // Acc, and GetAcc inside
  };
  State& state(NodeRef loop) {
    State& s = states_[loop->int_arg(0)];
    if (!s.accs.empty()) return s;
    const LoopParts parts = loop_parts(loop);
    const int inner = innermost(parts.ranges), outer = outermost(parts.ranges);
    for (NodeRef init : parts.inits) {
      s.accs.push_back(new_acc(source(init), blocks_.parent(outer)));
      s.before.push_back(get_acc(s.accs.back(), 0, inner));
    }
    return s;
  }
  NodeRef carry(NodeRef n) {
    NodeRef loop = loops_by_id_.at(n->int_arg(1));
    return state(loop).before[static_cast<size_t>(n->int_arg(0))];
  }

  // ---- memory

  struct Access {
    NodeRef node;
    bool store;
  };

  void note_access(NodeRef n, bool store) {
    accesses_[param_slot(n->src(0))].push_back({n, store});
  }

  /// The stored value combined with what is there: read where the store happens, not where the
  /// index is known.
  NodeRef combined(Fold combine, std::span<const NodeRef> src, int at, NodeRef by) {
    SmallVector<NodeRef, 3> access{src[0], src[1]};
    if (src.size() > 3) access.push_back(src[3]);
    // Nodes are values, so a second read of the same place, after another store, has to look
    // different: index + 0.
    NodeRef old = graph_->intern({Op::Load, src[2]->dtype, access, {}, {}, src[2]->lanes});
    while (blocks_.contains(old)) {
      const NodeRef sum[] = {access[1], settle(graph_->constant(Value::of(access[1]->dtype, 0)))};
      access[1] = settle(graph_->intern({Op::Add, access[1]->dtype, sum}));
      old = graph_->intern({Op::Load, src[2]->dtype, access, {}, {}, src[2]->lanes});
    }
    blocks_.add(old, at);
    results_[by] = {old};
    note_access(old, false);
    accesses_[param_slot(src[0])].back().store = true;  // stays in order with the stores
    return settle(folded(combine, old, src[2]));
  }

  /// Plain loads read what was there before; stores, and the loads that combine, happen in their
  /// order.
  void order_accesses(std::span<const Access> accesses) {
    NodeRef last = nullptr;
    for (const Access& a : accesses) {
      if (!a.store) continue;
      // A store that follows one of its own block waits for the loads by waiting for that one.
      const bool waits = last && blocks_.block(a.node) == blocks_.block(last);
      if (last) blocks_.after(a.node, last);
      last = a.node;
      if (waits) continue;
      for (const Access& load : accesses)
        if (!load.store) blocks_.after(a.node, load.node);
    }
  }

  // ---- memory of a group

  /// The instructions of barriers with one id, which stand together.
  struct Barrier {
    NodeRef before = nullptr;  // in a loop: what its last iteration stored has been read
    NodeRef after = nullptr;
    int block = Blocks::kTop;
  };

  NodeRef barrier_instruction(NodeRef n, int64_t which, int at) {
    const int64_t ints[] = {n->int_arg(0), which, 1};
    NodeRef made = graph_->intern({Op::Barrier, DType::Void, {}, ints});
    if (!blocks_.contains(made)) blocks_.add(made, at);
    return made;
  }

  /// Whether all have come by this barrier, an iteration ago, since they read the buffer that is
  /// written: no loop around starts again with the one that was just read.
  bool takes_turns(NodeRef n, int at) const {
    return n->int_arg(2) > 1 && blocks_.depth(at) == 1 && barriers_of_.at(n->src(0)) == 1;
  }

  /// A store stands where its barrier does, also where its value turned out to be a constant.
  void find_local_stores() {
    for (NodeRef n : deps_.order()) {
      if (n->op != Op::Barrier) continue;
      const int at = block(tree_.place(n));
      for (NodeRef s : loop_parts(n).values) store_blocks_.set(s, at);
      ++barriers_of_[n->src(0)];
    }
  }

  const RangeDeps& deps_;
  const LoopTree& tree_;
  std::shared_ptr<Graph> graph_;
  Legaliser legal_;
  Blocks blocks_;
  int top_ = Blocks::kTop;
  int64_t next_acc_ = 0;
  std::vector<int> block_of_range_;
  PerNode<NodeRef> done_;
  NodeMap<std::vector<NodeRef>> results_;     // of loops, by carry; what stores that combine found
  std::vector<std::vector<NodeRef>> chains_;  // of each reduction: the steps of one iteration
  std::vector<NodeRef> steps_;                // of transpositions
  std::map<int64_t, NodeRef> loops_by_id_;
  std::map<int64_t, State> states_;
  std::map<int64_t, Barrier> barriers_;
  NodeMap<int> store_blocks_;  // of stores to local memory: the block of their barrier
  NodeMap<int> barriers_of_;   // of local memory: how many give it
  std::map<int64_t, std::vector<Access>> accesses_;  // by param slot
};

constexpr OpRule<Lineariser::Place> kRules[] = {
    on(Op::Const, "const.placed", &Lineariser::place_leaf),
    on(Op::Variable, "variable.placed", &Lineariser::place_leaf),
    on(Op::Param, "param.placed", &Lineariser::place_leaf),
    on(Op::Range, "range.placed", &Lineariser::place_range),
    on(Op::Reduce, "reduce.placed", &Lineariser::place_reduce),
    on(Op::Scan, "scan.placed", &Lineariser::place_scan),
    on(Op::Loop, "loop.placed", &Lineariser::place_loop),
    on(Op::Carry, "carry.placed", &Lineariser::place_nothing),  // a register of its loop
    on(Op::Get, "get.placed", &Lineariser::place_get),
    on(Op::Load, "load.placed", &Lineariser::place_load),
    on(Op::TileLoad, "tileload.placed", &Lineariser::place_load),
    on(Op::Store, "store.placed", &Lineariser::place_store),
    on(Op::Barrier, "barrier.placed", &Lineariser::place_barrier),
    on(Op::Trn, "trn.placed", &Lineariser::place_step),
    on(Op::Sink, "sink.placed", &Lineariser::place_nothing),
    otherwise("any.placed", &Lineariser::place_other),
};
constexpr OpRules kPlaceRules(
    "linearise", "Lowering: every value gets the outermost loop that it can be computed in.",
    kRules);

}  // namespace

LinearProgram linearise(Analysis& of, const Target& target) {
  return Lineariser(of, target).run(kPlaceRules);
}

RuleSetRow place_rules() { return kPlaceRules.row(); }

}  // namespace weft::lower
