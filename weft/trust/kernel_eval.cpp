#include "weft/trust/kernel_eval.h"

#include <algorithm>
#include <optional>
#include <set>

#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/eval/scalar.h"
#include "weft/graph/node_map.h"

namespace weft::trust {
namespace {

// ---- by definition

using Indices = std::map<int64_t, int64_t>;                    // range id -> value
using Carries = std::map<std::pair<int64_t, int64_t>, Value>;  // (loop, k) -> value

class KernelEvaluator {
 public:
  KernelEvaluator(const Buffers& before, const Variables& variables)
      : before_(before), after_(before), variables_(variables) {}

  Buffers run(NodeRef sink) {
    for (NodeRef store : sink->src()) {
      std::vector<NodeRef> ranges = open_ranges(store);
      std::sort(ranges.begin(), ranges.end(), [](NodeRef a, NodeRef b) {
        const bool ca = range_binding(a) == Binding::Core, cb = range_binding(b) == Binding::Core;
        return ca != cb ? ca : range_id(a) < range_id(b);
      });
      each(ranges, 0, [&] { do_store(store); });
    }
    return after_;
  }
  Value value(NodeRef n) { return eval(n); }

 private:
  /// The ranges that `root` depends on and no reduction in it closes.
  std::vector<NodeRef> open_ranges(NodeRef root) {
    NodeMap<std::set<NodeRef>> open;
    for (NodeRef n : Toposort(root)) {
      std::set<NodeRef> ranges;
      for (NodeRef s : n->src()) ranges.insert(open.at(s).begin(), open.at(s).end());
      if (n->op == Op::Range) ranges.insert(n);
      if (n->op == Op::Reduce || (n->op == Op::Loop && n->int_arg(3) == 0))
        for (NodeRef s : n->src())
          if (s->op == Op::Range) ranges.erase(s);
      open[n] = std::move(ranges);
    }
    return {open.at(root).begin(), open.at(root).end()};
  }

  template <class F>
  void each(const std::vector<NodeRef>& ranges, size_t from, F&& f) {
    if (from == ranges.size()) return f();
    const int64_t size = eval(ranges[from]->src(0)).as_int();
    const int64_t id = range_id(ranges[from]);
    // A reduction may run over a range that is already running outside.
    const auto running = indices_.find(id);
    const auto outside = running == indices_.end() ? std::nullopt : std::optional(running->second);
    for (int64_t i = 0; i < size; ++i) {
      indices_[id] = i;
      each(ranges, from + 1, f);
    }
    if (outside)
      indices_[id] = *outside;
    else
      indices_.erase(id);
  }

  Value eval(NodeRef n) {
    switch (n->op) {
      case Op::Const: return const_value(n);
      case Op::Variable: return Value::index(variables_.at(std::string(n->text())));
      case Op::Range: return Value::index(indices_.at(range_id(n)));
      case Op::Carry: return carries_.at({n->int_arg(1), n->int_arg(0)});
      case Op::Load: return load(n);
      case Op::Stage: return eval(n->src(0));
      case Op::Reduce: return reduce(n);
      case Op::Scan: return scan(n);
      case Op::Get:
        return n->src(0)->op == Op::Store ? fetched(n->src(0))
                                          : loop(n->src(0), static_cast<size_t>(n->int_arg(0)));
      case Op::ToIndex: {
        const int64_t size = eval(n->src(1)).as_int(), x = eval(n->src(0)).as_int();
        return Value::index(std::clamp<int64_t>(x, 0, std::max<int64_t>(size - 1, 0)));
      }
      default: break;
    }
    SmallVector<Value, 6> v;
    for (NodeRef s : n->src()) v.push_back(eval(s));
    return eval::apply(n->op, n->dtype, {v.begin(), v.size()});
  }

  Value load(NodeRef n) {
    if (n->nsrc > 2 && !eval(n->src(2)).as_bool()) return Value::of(n->dtype, 0);
    const auto& buffer = before_[static_cast<size_t>(param_slot(n->src(0)))];
    const auto i = static_cast<size_t>(eval(n->src(1)).as_int());
    WEFT_CHECK(i < buffer.size(), "test kernel reads outside its buffer");
    return buffer[i];
  }

  std::vector<NodeRef> ranges_of(NodeRef n, size_t first) {
    return {n->src().begin() + static_cast<std::ptrdiff_t>(first), n->src().end()};
  }

  Value reduce(NodeRef n) {
    Value sum = eval::fold_identity(fold_of(n), n->dtype);
    each(ranges_of(n, 1), 0, [&] { sum = eval::fold(fold_of(n), sum, eval(n->src(0))); });
    return sum;
  }

  Value scan(NodeRef n) {
    const int64_t id = range_id(n->src(1)), here = indices_.at(id);
    Value sum = eval::fold_identity(fold_of(n), n->dtype);
    for (int64_t i = 0; i <= here; ++i) {
      indices_[id] = i;
      sum = eval::fold(fold_of(n), sum, eval(n->src(0)));
    }
    return sum;
  }

  Value loop(NodeRef n, size_t which) {
    const auto carries = static_cast<size_t>(n->int_arg(2));
    const int64_t id = n->int_arg(0);
    std::vector<Value> state;
    for (size_t k = 0; k < carries; ++k) state.push_back(eval(n->src(k)));
    auto step = [&] {
      for (size_t k = 0; k < carries; ++k) carries_[{id, static_cast<int64_t>(k)}] = state[k];
      std::vector<Value> next;
      for (size_t k = 0; k < carries; ++k) next.push_back(eval(n->src(carries + k)));
      state = next;
    };
    std::vector<NodeRef> ranges = ranges_of(n, 2 * carries);
    if (n->int_arg(3) == 0) {
      each(ranges, 0, step);
    } else {
      const int64_t range = range_id(ranges[0]), here = indices_.at(range);
      for (int64_t i = 0; i <= here; ++i) {
        indices_[range] = i;
        step();
      }
    }
    return state[which];
  }

  /// What a store that combines found, which it does once for all who ask in this iteration.
  Value fetched(NodeRef store) {
    const auto key = std::pair(store, indices_);
    if (const auto known = fetched_.find(key); known != fetched_.end()) return known->second;
    Value found = Value::of(store->src(2)->dtype, 0);
    if (store->nsrc <= 3 || eval(store->src(3)).as_bool())
      found = after_[static_cast<size_t>(param_slot(store->src(0)))].at(
          static_cast<size_t>(eval(store->src(1)).as_int()));
    do_store(store);
    return fetched_.emplace(key, found).first->second;
  }

  void do_store(NodeRef n) {
    if (n->nsrc > 3 && !eval(n->src(3)).as_bool()) return;
    auto& buffer = after_[static_cast<size_t>(param_slot(n->src(0)))];
    const auto i = static_cast<size_t>(eval(n->src(1)).as_int());
    WEFT_CHECK(i < buffer.size(), "test kernel writes outside its buffer");
    const auto combine = static_cast<Fold>(n->int_arg(0));
    const Value v = eval(n->src(2));
    buffer[i] = combine == Fold::Set ? v : eval::fold(combine, buffer[i], v);
  }

  const Buffers& before_;
  Buffers after_;
  const Variables& variables_;
  Indices indices_;
  Carries carries_;
  std::map<std::pair<NodeRef, Indices>, Value> fetched_;
};

}  // namespace

Buffers run_kernel(NodeRef sink, const Buffers& buffers, const Variables& variables) {
  return KernelEvaluator(buffers, variables).run(sink);
}

int64_t index_value(NodeRef n, const Variables& variables) {
  const Buffers none;
  return KernelEvaluator(none, variables).value(n).as_int();
}

double evaluation_steps(NodeRef root) {
  NodeMap<double> steps;
  for (NodeRef n : Toposort(root)) {
    const bool repeats = n->op == Op::Reduce || n->op == Op::Scan || n->op == Op::Loop;
    double once = 0, times = 1;
    for (NodeRef s : n->src()) {
      if (repeats && s->op == Op::Range)
        times *= static_cast<double>(s->src(0)->vmax);
      else
        once += steps.at(s);
    }
    steps[n] = n->op == Op::Range ? 1 : 1 + once * times;
  }
  return steps.at(root);
}

}  // namespace weft::trust
