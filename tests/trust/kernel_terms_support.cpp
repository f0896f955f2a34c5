#if __has_include(<z3++.h>) && defined(WEFT_HAVE_Z3)
#include <algorithm>
#include <set>

#include "tests/trust/term_runs_support.h"
#include "weft/base/format.h"
#include "weft/base/function_ref.h"
#include "weft/eval/scalar.h"
#include "weft/graph/loops.h"
#include "weft/graph/node_map.h"

namespace weft::test {

// ---- lanes

namespace {

const Term& lane_of(const Lanes& v, size_t k) { return v.at(v.size() == 1 ? 0 : k); }
Term always() { return TermAlgebra::number(Value::boolean(true)); }
Term mask_of(const Lanes& mask, size_t k) { return mask.empty() ? always() : lane_of(mask, k); }

Term stepped(TermAlgebra& algebra, const Term& at, int64_t by) {
  const Term operands[] = {at, TermAlgebra::number(Value::of(at.dtype, by))};
  return by == 0 ? at : algebra.apply(Op::Add, at.dtype, operands);
}

}  // namespace

Lanes load_lanes(TermAlgebra& algebra, NodeRef load, const std::vector<Term>& memory,
                 const Term& at, const Lanes& mask) {
  const DType held = load->src(0)->dtype;
  const int64_t words = held == load->dtype ? 1 : bits(load->dtype) / bits(held);
  Lanes out;
  for (size_t k = 0; k < load->lanes; ++k) {
    std::vector<Term> parts;
    for (int64_t i = 0; i < words; ++i)
      parts.push_back(
          algebra.read(memory, stepped(algebra, at, static_cast<int64_t>(k) * words + i)));
    out.push_back(algebra.where(mask_of(mask, k), algebra.word(load->dtype, parts),
                                {Value::of(load->dtype, 0)}));
  }
  return out;
}

void store_lanes(TermAlgebra& algebra, std::vector<Term>& memory, const Term& at,
                 const Lanes& values, const Lanes& mask, const Term& condition) {
  for (size_t k = 0; k < values.size(); ++k)
    algebra.write(memory, stepped(algebra, at, static_cast<int64_t>(k)), values[k],
                  algebra.both(condition, mask_of(mask, k)));
}

Lanes apply_lanes(TermAlgebra& algebra, NodeRef n, std::span<const Lanes> x) {
  Lanes out;
  const auto at = [&](size_t operand, size_t k) { return x[operand].at(k); };
  switch (n->op) {
    case Op::Vec:
      for (const Lanes& scalar : x) out.push_back(scalar.at(0));
      return out;
    case Op::Lane: return {at(0, static_cast<size_t>(n->int_arg(0)))};
    case Op::Splat: return Lanes(n->lanes, at(0, 0));
    case Op::Trn: {
      const auto size = static_cast<size_t>(n->int_arg(0));
      const size_t odd = static_cast<size_t>(n->int_arg(1)) * size;
      for (size_t k = 0; k < n->lanes; ++k) {
        const bool second = k / size % 2 == 1;
        out.push_back(at(second ? 1 : 0, k - (second ? size : 0) + odd));
      }
      return out;
    }
    default: break;
  }
  const bool truncates = n->op == Op::CDiv || n->op == Op::CMod;
  if (!is_alu(n->op) && !truncates) throw Unsupported{std::string(info(n->op).mnemonic)};
  for (size_t k = 0; k < n->lanes; ++k) {
    std::vector<Term> operands;
    for (const Lanes& v : x) operands.push_back(lane_of(v, k));
    out.push_back(algebra.apply(n->op, n->dtype, operands));
  }
  return out;
}

// ---- kernels, by definition

namespace {

using Indices = std::map<int64_t, int64_t>;  // range id -> value

class KernelRun {
 public:
  KernelRun(TermAlgebra& algebra, const TermMemory& before, const Variables& variables,
            Steps& steps)
      : algebra_(algebra), before_(before), after_(before), variables_(variables), steps_(steps) {}

  TermMemory run(NodeRef sink) {
    for (NodeRef store : sink->src()) {
      std::vector<NodeRef> ranges = open_ranges(store);
      std::ranges::sort(ranges, [](NodeRef a, NodeRef b) {
        const bool ca = range_binding(a) == Binding::Core, cb = range_binding(b) == Binding::Core;
        return ca != cb ? ca : range_id(a) < range_id(b);
      });
      each(ranges, [&](const Term& runs) { do_store(store, runs); });
    }
    return std::move(after_);
  }

 private:
  std::vector<NodeRef> open_ranges(NodeRef root) {
    NodeMap<std::set<NodeRef>> open;
    for (NodeRef n : Toposort(root)) {
      std::set<NodeRef> ranges;
      for (NodeRef s : n->src()) ranges.insert(open.at(s).begin(), open.at(s).end());
      if (n->op == Op::Range) ranges.insert(n);
      for (NodeRef s : reduction_ranges(n)) ranges.erase(s);
      open[n] = std::move(ranges);
    }
    return {open.at(root).begin(), open.at(root).end()};
  }

  /// Calls `body` in every iteration, with whether it happens: how often may depend on data.
  void each(std::span<const NodeRef> ranges, FunctionRef<void(const Term&)> body) {
    const Indices outside = indices_;
    each(ranges, always(), body);
    indices_ = outside;
  }
  void each(std::span<const NodeRef> ranges, const Term& runs,
            FunctionRef<void(const Term&)> body) {
    if (ranges.empty()) return body(runs);
    NodeRef range = ranges[0];
    const Term size = eval(range->src(0))[0];
    const int64_t most = size.is_number() ? size.value.as_int() : range->vmax + 1;
    for (int64_t i = 0; i < most; ++i) {
      steps_.take();
      indices_[range_id(range)] = i;
      const Term within[] = {{Value::of(size.dtype, i)}, size};
      each(ranges.subspan(1), algebra_.both(runs, algebra_.apply(Op::Lt, DType::Bool, within)),
           body);
    }
  }

  Lanes eval(NodeRef n) {
    const auto key = std::pair(n, indices_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
    steps_.take();
    return known_[key] = fresh(n);
  }

  Lanes fresh(NodeRef n) {
    switch (n->op) {
      case Op::Const: return {{const_value(n)}};
      case Op::Variable: return {TermAlgebra::index(variables_.at(std::string(n->text())))};
      case Op::Range: return {{Value::of(n->dtype, indices_.at(range_id(n)))}};
      case Op::Carry: return carries_.at({n->int_arg(1), n->int_arg(0)});
      case Op::Load: return load(n);
      case Op::Stage: return eval(n->src(0));
      case Op::Reduce: return reduce(n);
      case Op::Scan: return scan(n);
      case Op::Get: return loop(n->src(0), static_cast<size_t>(n->int_arg(0)));
      default: break;
    }
    std::vector<Lanes> operands;
    for (NodeRef s : n->src()) operands.push_back(eval(s));
    return apply_lanes(algebra_, n, operands);
  }

  static size_t slot_of(NodeRef access) {
    if (access->src(0)->op != Op::Param) throw Unsupported{"memory of a group"};
    return static_cast<size_t>(param_slot(access->src(0)));
  }
  Lanes load(NodeRef n) {
    return load_lanes(algebra_, n, before_.at(slot_of(n)), eval(n->src(1))[0],
                      n->nsrc > 2 ? eval(n->src(2)) : Lanes());
  }

  Lanes folded(NodeRef n, Lanes sum, const Term& runs) {
    for (NodeRef value : loop_parts(n).values) {
      const Lanes now = eval(value);
      for (size_t k = 0; k < sum.size(); ++k)
        sum[k] = algebra_.where(runs, algebra_.fold(fold_of(n), sum[k], now.at(k)), sum[k]);
    }
    return sum;
  }
  Lanes identity(NodeRef n) { return Lanes(n->lanes, {eval::fold_identity(fold_of(n), n->dtype)}); }
  Lanes reduce(NodeRef n) {
    Lanes sum = identity(n);
    each(loop_parts(n).ranges, [&](const Term& runs) { sum = folded(n, std::move(sum), runs); });
    return sum;
  }
  Lanes scan(NodeRef n) {
    if (loop_parts(n).ranges.size() > 1) throw Unsupported{"a scan over several ranges"};
    const int64_t id = range_id(n->src(1)), here = indices_.at(id);
    Lanes sum = identity(n);
    for (indices_[id] = 0; indices_[id] <= here; ++indices_[id])
      sum = folded(n, std::move(sum), always());
    indices_[id] = here;
    return sum;
  }

  Lanes loop(NodeRef n, size_t which) {
    if (n->op != Op::Loop) throw Unsupported{"what a store found"};
    const LoopParts parts = loop_parts(n);
    std::vector<Lanes> state;
    for (NodeRef init : parts.inits) state.push_back(eval(init));
    const auto step = [&](const Term& runs) {
      known_.clear();  // what carries were
      for (size_t k = 0; k < state.size(); ++k)
        carries_[{n->int_arg(0), static_cast<int64_t>(k)}] = state[k];
      std::vector<Lanes> next;
      for (NodeRef body : parts.values) next.push_back(eval(body));
      for (size_t k = 0; k < state.size(); ++k)
        for (size_t lane = 0; lane < state[k].size(); ++lane)
          next[k].at(lane) = algebra_.where(runs, next[k][lane], state[k][lane]);
      state = std::move(next);
    };
    if (!parts.open) {
      each(parts.ranges, step);
    } else {
      if (parts.ranges.size() > 1) throw Unsupported{"a running loop over several ranges"};
      const int64_t id = range_id(parts.ranges[0]), here = indices_.at(id);
      for (int64_t i = 0; i <= here; ++i) {
        indices_[id] = i;
        step(always());
      }
    }
    known_.clear();
    return state.at(which);
  }

  void do_store(NodeRef n, const Term& runs) {
    std::vector<Term>& memory = after_.at(slot_of(n));
    const Term at = eval(n->src(1))[0];
    Lanes values = eval(n->src(2));
    const auto combine = static_cast<Fold>(n->int_arg(0));
    for (size_t k = 0; k < values.size() && combine != Fold::Set; ++k)
      values[k] = algebra_.fold(
          combine, algebra_.read(memory, stepped(algebra_, at, static_cast<int64_t>(k))),
          values[k]);
    store_lanes(algebra_, memory, at, values, n->nsrc > 3 ? eval(n->src(3)) : Lanes(), runs);
  }

  TermAlgebra& algebra_;
  const TermMemory& before_;
  TermMemory after_;
  const Variables& variables_;
  Steps& steps_;
  Indices indices_;
  std::map<std::pair<int64_t, int64_t>, Lanes> carries_;  // (loop, k)
  std::map<std::pair<NodeRef, Indices>, Lanes> known_;
};

}  // namespace

TermMemory run_kernel(TermAlgebra& algebra, NodeRef sink, const TermMemory& memory,
                      const Variables& variables, Steps& steps) {
  return KernelRun(algebra, memory, variables, steps).run(sink);
}

}  // namespace weft::test
#endif
