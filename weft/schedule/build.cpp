// From plan to kernels: every wanted value becomes an expression of its kernel, sources first.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/fold.h"
#include "weft/graph/loops.h"
#include "weft/graph/program.h"
#include "weft/rewrite/driver.h"
#include "weft/schedule/build.h"

namespace weft {
namespace {

NodeRef zero(Graph& g, DType dtype) { return g.constant(Value::of(dtype, 0)); }

class Builder {
 public:
  Builder(Planner& plan) : plan_(plan), g_(plan.g) {}

  void run() {
    for (NodeRef n : plan_.order) {
      const uint64_t origin = plan_.origin(n);
      const std::vector<Use>& wanted = plan_.uses.at(n);
      std::vector<NodeRef>& made = made_[n];
      made.reserve(wanted.size());
      for (const Use& d : wanted) {
        made.push_back(d.load ? load(n, d) : compute(n, d));
        if (!d.load && origin) note_origin(plan_.kernels[static_cast<size_t>(d.kernel)], n, origin);
      }
    }
  }

  NodeRef store(const KernelOutput& out) {
    const Use& d = plan_.uses.at(out.node)[static_cast<size_t>(out.use)];
    NodeRef value = made_.at(out.node)[static_cast<size_t>(out.use)];
    if (out.node->op == Op::Assign) return store_assign(out.node, d, value);
    if (out.node->op == Op::Scatter) return store_scatter(out.node, d, value);
    return make_store(out.node, d.access.index, value, d.access.valid, Fold::Set, true);
  }

 private:
  /// What comes before a kernel's first reduction says less about it than the reduction.
  static void note_origin(KernelPlan& k, NodeRef n, uint64_t origin) {
    const bool reduces = n->op == Op::Reduce || n->op == Op::Scan || n->op == Op::Get;
    if (reduces && !k.reduces) k.origins.clear();
    k.reduces |= reduces;
    if (k.origins.empty() || k.origins.back() != origin) k.origins.push_back(origin);
  }

  /// Flat position in the buffer of `n`, in the memory order chosen for it.
  NodeRef flat(NodeRef n, std::span<const NodeRef> index) {
    const BufferPlan& b = plan_.buffers[static_cast<size_t>(plan_.buffer_index(n))];
    std::vector<NodeRef> i, dims;
    for (size_t a = 0; a < n->rank(); ++a) {
      const size_t axis = b.order.empty() ? a : b.order[a];
      i.push_back(index[axis]);
      dims.push_back(plan_.room_along(n, axis));
    }
    if (b.gap > 0) dims.back() = g_.add(dims.back(), g_.index(b.gap));
    if (b.block > 0) {
      NodeRef lane = i.back(), block = g_.index(b.block);
      i.insert(i.begin(), g_.idiv(lane, block));
      dims.insert(dims.begin(), g_.idiv(dims.back(), block));
      i.back() = g_.mod(lane, block);
      dims.back() = block;
    }
    return flatten_index(g_, i, dims);
  }

  NodeRef load(NodeRef n, const Use& d) {
    if (d.packed_use >= 0)
      return load(d.packed, plan_.uses.at(d.packed)[static_cast<size_t>(d.packed_use)]);
    if (is_int_const(d.access.valid, 0)) return zero(g_, n->dtype);
    NodeRef from = d.packed ? d.packed : n;
    NodeRef param = plan_.param_of(from), index = flat(from, d.access.index);
    if (is_int_const(d.access.valid, 1)) return g_.make(Op::Load, n->dtype, {param, index});
    return g_.make(Op::Load, n->dtype, {param, index, d.access.valid});
  }

  NodeRef source(NodeRef n, const Use& d, size_t i) {
    return made_.at(n->src(i))[static_cast<size_t>(d.source[i])];
  }
  const Use& source_use(NodeRef n, const Use& d, size_t i) {
    return plan_.uses.at(n->src(i))[static_cast<size_t>(d.source[i])];
  }

  /// `value` where `valid`, else 0; loads that are masked the same way already give 0.
  NodeRef masked(NodeRef value, NodeRef valid) {
    if (value->op == Op::Load && value->nsrc == 3 && value->src(2) == valid) return value;
    NodeRef nothing = zero(g_, value->dtype);
    if (value->op == Op::Where && value->src(2) == nothing) {
      valid = g_.logical_and(valid, value->src(0));
      value = value->src(1);
    }
    return g_.where(valid, value, nothing);
  }

  NodeRef compute(NodeRef n, const Use& d) {
    switch (n->op) {
      case Op::Const:
      case Op::Variable: return n;
      case Op::Iota: return g_.cast(d.access.index[static_cast<size_t>(n->int_arg(0))], n->dtype);
      case Op::Detach:
      case Op::Contiguous:
      case Op::Copy:
      case Op::Bind: return source(n, d, 0);
      case Op::Gather: return gather(n, d);
      case Op::CumCount: return counted(n, d);
      case Op::Reduce: return reduce(n, d);
      case Op::Scan:
        return d.reduced.empty()
                   ? folded_once(g_, fold_of(n), source(n, d, 0))
                   : g_.make(Op::Scan, n->dtype, {source(n, d, 0), d.reduced[0]}, {n->int_arg(0)});
      case Op::Loop: return d.reduced.empty() ? nullptr : loop(n, d);
      case Op::Repeat:
      case Op::Custom: return nullptr;
      case Op::Get:
        if (is_step(n->src(0))) return zero(g_, n->dtype);  // its step has no kernel of the plan's
        if (const Use& l = source_use(n, d, 0); l.reduced.empty()) return step_once(n, l);
        return g_.make(Op::Get, n->dtype, {source(n, d, 0)}, {n->int_arg(0)});
      case Op::Assign:
      case Op::Scatter: return source(n, d, 2);
      default: break;
    }
    if (is_movement(n->op)) {
      NodeRef value = source(n, d, 0), valid = source_use(n, d, 0).access.valid;
      // A constant's one use carries the mask of whoever wanted it first.
      if (n->src(0)->op == Op::Const || n->src(0)->op == Op::Variable) return value;
      return valid == d.access.valid ? value : masked(value, valid);
    }
    std::vector<NodeRef> src;
    for (size_t i = 0; i < n->nsrc; ++i) src.push_back(source(n, d, i));
    return g_.make({n->op, n->dtype, src, n->ints()});
  }

  NodeRef reduce(NodeRef n, const Use& d) {
    NodeRef value = source(n, d, 0);
    if (d.reduced.empty()) return folded_once(g_, fold_of(n), value);
    // Where nobody wants it, nothing needs to be summed.
    if (NodeRef valid = source_use(n, d, 0).access.valid;
        fold_of(n) == Fold::Add && !is_int_const(valid, 1))
      value = masked(value, valid);
    std::vector<NodeRef> src{value};
    src.insert(src.end(), d.reduced.begin(), d.reduced.end());
    const int64_t fold[] = {n->int_arg(0)};
    return build_reduce(g_, static_cast<Fold>(fold[0]), src);
  }

  NodeRef loop(NodeRef n, const Use& d) {
    const LoopParts parts = loop_parts(n);
    const size_t elements = parts.elements.size(), carries = parts.inits.size();
    const int64_t id = plan_.kernels[static_cast<size_t>(d.kernel)].next_loop++;
    NodeMap<NodeRef> replace;
    std::vector<NodeRef> src;
    for (size_t k = 0; k < elements; ++k) {
      const NodeRef elem =
          g_.make(Op::Elem, n->src(k)->dtype, {}, {static_cast<int64_t>(k), n->int_arg(0)});
      replace[elem] = source(n, d, k);
    }
    for (size_t k = 0; k < carries; ++k) {
      NodeRef init = parts.inits[k];
      const NodeRef carry =
          g_.make(Op::Carry, init->dtype, {}, {static_cast<int64_t>(k), n->int_arg(0)});
      replace[carry] = g_.make(Op::Carry, init->dtype, {}, {static_cast<int64_t>(k), id});
      src.push_back(source(n, d, elements + k));
    }
    for (size_t k = 0; k < carries; ++k) src.push_back(substitute(g_, parts.values[k], replace));
    src.insert(src.end(), d.reduced.begin(), d.reduced.end());
    const int64_t ints[] = {id, 0, n->int_arg(2), n->int_arg(3)};
    return g_.make({Op::Loop, n->dtype, src, ints});
  }

  /// A result of a loop whose axes all have size 1: its body, once, on the inits.
  NodeRef step_once(NodeRef get, const Use& d) {
    NodeRef n = get->src(0);
    const LoopParts parts = loop_parts(n);
    const size_t elements = parts.elements.size(), carries = parts.inits.size();
    NodeMap<NodeRef> replace;
    for (size_t k = 0; k < elements + carries; ++k) {
      const bool elem = k < elements;
      const auto number = static_cast<int64_t>(elem ? k : k - elements);
      replace[g_.make(elem ? Op::Elem : Op::Carry, n->src(k)->dtype, {}, {number, n->int_arg(0)})] =
          source(n, d, k);
    }
    return substitute(g_, parts.values[static_cast<size_t>(get->int_arg(0))], replace);
  }

  struct Lookup {
    NodeRef index, found;
  };
  /// A loaded integer as an index into [0, size): clamped, with the condition that it was in range.
  /// One comparison does where the size fits 31 bits: without their sign, negative numbers are
  /// beyond it. Clamped as data, which may have lanes, not as an index.
  Lookup lookup(NodeRef data, NodeRef size) {
    const auto fits = [](NodeRef n) { return n->vmin >= 0 && n->vmax <= INT32_MAX; };
    if (size->vmin > 0 && fits(size)) {
      const bool narrow = bits(data->dtype) <= 32;
      const DType d = fits(data) ? DType::I32 : narrow ? DType::U32 : DType::U64;
      NodeRef number = g_.cast(data, d), limit = g_.cast(size, d);
      NodeRef found = g_.lt(number, limit);
      if (number->vmax >= size->vmin)
        number = g_.alu(Op::Min, {number, g_.cast(g_.sub(size, g_.index(1)), d)});
      return {g_.alu(Op::ToIndex, {number, size}), found};
    }
    NodeRef wide = g_.cast(data, DType::I64), limit = g_.cast(size, DType::I64);
    NodeRef found = g_.logical_and(g_.le(zero(g_, DType::I64), wide), g_.lt(wide, limit));
    return {g_.alu(Op::ToIndex, {data, size}), found};
  }

  NodeRef gather(NodeRef n, const Use& d) {
    NodeRef x = source(n, d, 0), valid = source_use(n, d, 0).access.valid;
    const Lookup at = lookup(source(n, d, 1), n->src(0)->dim(static_cast<size_t>(n->int_arg(0))));
    NodeMap<NodeRef> replace;
    replace[d.placeholder] = at.index;
    replace[d.found] = at.found;
    x = substitute(g_, x, replace);
    return masked(x, substitute(g_, valid, replace));
  }

  NodeRef make_store(NodeRef n, std::span<const NodeRef> index, NodeRef value, NodeRef valid,
                     Fold combine, bool unique, std::span<const NodeRef> ranges = {}) {
    std::vector<NodeRef> src{plan_.param_of(n), flat(n, index), value};
    if (!is_int_const(valid, 1) || !ranges.empty()) src.push_back(valid);
    src.insert(src.end(), ranges.begin(), ranges.end());
    const int64_t ints[] = {static_cast<int64_t>(combine), unique};
    return g_.make({Op::Store, DType::Void, src, ints});
  }

  /// `combine`, into the places that data says along one axis of the buffer of `to`.
  NodeRef store_indexed(NodeRef to, size_t axis, NodeRef index, const Access& around, NodeRef value,
                        Fold combine, bool unique) {
    Access at = around;
    std::vector<NodeRef> ranges;
    if (counts_repeats(combine))
      std::copy_if(at.index.begin(), at.index.end(), std::back_inserter(ranges),
                   [](NodeRef i) { return i->op == Op::Range; });
    const Lookup found = lookup(index, to->dim(axis));
    at.index[axis] = found.index;
    at.valid = g_.logical_and(at.valid, found.found);
    return make_store(to, at.index, value, at.valid, combine, unique, ranges);
  }

  /// What adding one to the count of each element's place finds there.
  NodeRef counted(NodeRef n, const Use& d) {
    NodeRef index = source(n, d, 1), one = g_.constant(Value::of(n->dtype, 1));
    const auto axis = static_cast<size_t>(n->int_arg(0));
    NodeRef store = store_indexed(n->src(0), axis, index, d.access, one, Fold::Add, false);
    NodeRef found = g_.make(Op::Get, n->dtype, {store}, {0});
    return masked(found, lookup(index, n->src(0)->dim(axis)).found);
  }

  NodeRef store_assign(NodeRef n, const Use& d, NodeRef value) {
    const Access at = written_access(g_, n, d.access);
    return make_store(n, at.index, value, at.valid, Fold::Set, true);
  }

  NodeRef store_scatter(NodeRef n, const Use& d, NodeRef value) {
    return store_indexed(n, static_cast<size_t>(n->int_arg(0)), source(n, d, 1), d.access, value,
                         static_cast<Fold>(n->int_arg(1)), n->int_arg(2) != 0);
  }

  Planner& plan_;
  Graph& g_;
  NodeMap<std::vector<NodeRef>> made_;  // of each use, its expression
};

}  // namespace

std::vector<NodeRef> build_sinks(Planner& plan) {
  Builder builder(plan);
  builder.run();
  std::vector<NodeRef> sinks;
  for (const KernelPlan& k : plan.kernels) {
    std::vector<NodeRef> stores;
    for (const KernelOutput& out : k.outputs) stores.push_back(builder.store(out));
    sinks.push_back(plan.g.make({Op::Sink, DType::Void, stores}));
  }
  return sinks;
}

}  // namespace weft
