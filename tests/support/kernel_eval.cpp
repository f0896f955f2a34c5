#include "tests/support/kernel_eval.h"

#include <algorithm>
#include <set>

#include "weft/base/error.h"
#include "weft/eval/scalar.h"
#include "weft/graph/node_map.h"

namespace weft::test {
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
    // A reduction may run over a range that is already running outside.
    const Indices outside = indices_;
    for (int64_t i = 0; i < size; ++i) {
      indices_[range_id(ranges[from])] = i;
      each(ranges, from + 1, f);
    }
    indices_ = outside;
  }

  Value eval(NodeRef n) {
    switch (n->op) {
      case Op::Const: return const_value(n);
      case Op::Variable: return Value::index(variables_.at(std::string(n->text())));
      case Op::Range: return Value::index(indices_.at(range_id(n)));
      case Op::Carry: return carries_.at({n->int_arg(1), n->int_arg(0)});
      case Op::Load: return load(n);
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
    std::vector<Value> v;
    for (NodeRef s : n->src()) v.push_back(eval(s));
    return eval::apply(n->op, n->dtype, v);
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

// ---- instruction by instruction

class Walker {
 public:
  Walker(const LinearProgram& p, const Buffers& buffers, const Variables& variables)
      : program_(p), buffers_(buffers), variables_(variables) {}

  Buffers run(int64_t begin, int64_t end) {
    begin_ = begin;
    end_ = end;
    run_block(0, program_.code.size());
    return buffers_;
  }

 private:
  using Lanes = std::vector<Value>;

  void run_block(size_t from, size_t to) {
    for (size_t pc = from; pc < to; ++pc) {
      NodeRef n = program_.code[pc];
      if (n->op != Op::Range) {
        WEFT_CHECK(n->op != Op::EndRange, "an endrange without its range");
        step(n);
        continue;
      }
      const size_t close = find_end(n, pc);
      const bool core = range_binding(n) == Binding::Core;
      const int64_t size = values_.at(n->src(0))[0].as_int();
      const int64_t last = core && end_ >= 0 ? end_ : size;
      for (int64_t i = core ? begin_ : 0; i < last; ++i) {
        values_[n] = {Value::of(n->dtype, i)};
        run_block(pc + 1, close);
      }
      pc = close;
    }
  }

  size_t find_end(NodeRef range, size_t from) const {
    for (size_t pc = from; pc < program_.code.size(); ++pc)
      if (program_.code[pc]->op == Op::EndRange && program_.code[pc]->src(0) == range) return pc;
    WEFT_CHECK(false, "a range that does not end");
  }

  void step(NodeRef n) {
    switch (n->op) {
      case Op::Const: values_[n] = {const_value(n)}; return;
      case Op::Variable: values_[n] = {Value::index(variables_.at(std::string(n->text())))}; return;
      case Op::Param: return;
      case Op::Load: values_[n] = load(n); return;
      case Op::Store: store(n); return;
      case Op::Acc: values_[n] = operand(n, 0); return;
      case Op::GetAcc: values_[n] = operand(n, 0); return;
      case Op::SetAcc: values_[n->src(0)] = Lanes(operand(n, 1)); return;
      case Op::Vec: {
        Lanes v;
        for (size_t k = 0; k < n->nsrc; ++k) v.push_back(operand(n, k).at(0));
        values_[n] = v;
        return;
      }
      case Op::Lane: values_[n] = {operand(n, 0).at(static_cast<size_t>(n->int_arg(0)))}; return;
      case Op::Splat: values_[n] = Lanes(n->lanes, operand(n, 0).at(0)); return;
      default: break;
    }
    values_[n] = alu(n);
  }

  Lanes operand(NodeRef n, size_t i) const {
    const Lanes* v = values_.find(n->src(i));
    WEFT_CHECK(v, "{} is used before it is computed", info(n->src(i)->op).mnemonic);
    return *v;
  }

  Lanes alu(NodeRef n) {
    const bool removed = n->op == Op::IDiv || n->op == Op::Mod || n->op == Op::ToIndex ||
                         n->op == Op::Exp2 || n->op == Op::Log2 || n->op == Op::Sin;
    WEFT_CHECK(!removed && n->dtype != DType::Index, "{} in a program", info(n->op).mnemonic);
    const bool half = n->dtype == DType::F16 || n->dtype == DType::BF16;
    const bool moves = n->op == Op::Cast || n->op == Op::Where || n->op == Op::Bitcast;
    WEFT_CHECK(!half || moves, "16-bit arithmetic in a program");
    Lanes out;
    for (size_t k = 0; k < n->lanes; ++k) {
      std::vector<Value> v;
      for (size_t i = 0; i < n->nsrc; ++i) {
        const Lanes x = operand(n, i);
        WEFT_CHECK(x.size() == n->lanes, "operands of {} have other lanes", info(n->op).mnemonic);
        v.push_back(x[k]);
      }
      out.push_back(apply(n, v));
    }
    return out;
  }

  static Value apply(NodeRef n, const std::vector<Value>& v) {
    if (n->op == Op::CDiv || n->op == Op::CMod) return truncating(n, v);
    const bool shift = n->op == Op::Shl || n->op == Op::Shr;
    WEFT_CHECK(!shift || (v[1].as_int() >= 0 && v[1].as_int() < bits(n->dtype)),
               "shift out of range");
    return eval::apply(n->op, n->dtype, v);
  }
  static Value truncating(NodeRef n, const std::vector<Value>& v) {
    WEFT_CHECK(!v[1].is_zero(), "division by zero");
    const bool quotient = n->op == Op::CDiv;
    if (is_unsigned(n->dtype)) {
      const uint64_t a = v[0].as_uint(), b = v[1].as_uint();
      return Value::of(n->dtype, quotient ? a / b : a % b);
    }
    const int64_t a = v[0].as_int(), b = v[1].as_int();
    WEFT_CHECK(b != -1 || a != int_min(n->dtype), "division overflows");
    return Value::of(n->dtype, quotient ? a / b : a % b);
  }

  Lanes load(NodeRef n) {
    if (n->nsrc > 2 && !operand(n, 2).at(0).as_bool())
      return Lanes(n->lanes, Value::of(n->dtype, 0));
    const auto& buffer = buffers_.at(static_cast<size_t>(param_slot(n->src(0))));
    const int64_t at = operand(n, 1).at(0).as_int();
    WEFT_CHECK(at >= 0 && at + n->lanes <= static_cast<int64_t>(buffer.size()),
               "reads outside its buffer");
    return {buffer.begin() + at, buffer.begin() + at + n->lanes};
  }

  void store(NodeRef n) {
    WEFT_CHECK(n->int_arg(0) == 0, "a combining store in a program");
    if (n->nsrc > 3 && !operand(n, 3).at(0).as_bool()) return;
    auto& buffer = buffers_.at(static_cast<size_t>(param_slot(n->src(0))));
    const int64_t at = operand(n, 1).at(0).as_int();
    const Lanes v = operand(n, 2);
    WEFT_CHECK(v.size() == n->lanes, "a store of other lanes than its value");
    WEFT_CHECK(at >= 0 && at + n->lanes <= static_cast<int64_t>(buffer.size()),
               "writes outside its buffer");
    std::copy(v.begin(), v.end(), buffer.begin() + at);
  }

  const LinearProgram& program_;
  Buffers buffers_;
  const Variables& variables_;
  int64_t begin_ = 0, end_ = -1;
  NodeMap<Lanes> values_;
};

}  // namespace

Buffers run_kernel(NodeRef sink, const Buffers& buffers, const Variables& variables) {
  return KernelEvaluator(buffers, variables).run(sink);
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

Buffers run_program(const LinearProgram& program, const Buffers& buffers,
                    const Variables& variables, int64_t begin, int64_t end) {
  return Walker(program, buffers, variables).run(begin, end);
}

}  // namespace weft::test
