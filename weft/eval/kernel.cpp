// A user's kernel, statement by statement: every store runs over its open ranges in nest order.
#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/eval/scalar.h"
#include "weft/eval/step.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"
#include "weft/graph/tuple.h"

namespace weft::eval {
namespace {

class KernelRun {
 public:
  KernelRun(std::vector<Array>& memory) : memory_(memory) {}

  void store(NodeRef s) {
    std::vector<NodeRef> ranges = open_ranges(s);
    std::sort(ranges.begin(), ranges.end(),
              [](NodeRef a, NodeRef b) { return range_id(a) < range_id(b); });
    for_each(ranges, 0, [&] {
      NodeMap<Value> known;
      if (s->nsrc > 3 && !value(s->src(3), known).as_bool()) return;
      Array& to = memory_[static_cast<size_t>(param_slot(s->src(0)))];
      const int64_t at = value(s->src(1), known).as_int();
      to.set(at, fold(static_cast<Fold>(s->int_arg(0)), to.at(at), value(s->src(2), known)));
    });
  }

 private:
  static std::vector<NodeRef> open_ranges(NodeRef root) {
    std::vector<NodeRef> open, closed;
    for (NodeRef n : Toposort(root)) {
      if (n->op == Op::Range) open.push_back(n);
      if (n->op == Op::Reduce) closed.insert(closed.end(), n->src().begin() + 1, n->src().end());
    }
    std::erase_if(open, [&](NodeRef r) { return contains(closed, r); });
    return open;
  }

  template <class Visit>
  void for_each(std::span<const NodeRef> ranges, size_t from, const Visit& visit) {
    if (from == ranges.size()) return visit();
    NodeMap<Value> known;
    const int64_t size = value(ranges[from]->src(0), known).as_int();
    for (int64_t i = 0; i < size; ++i) {
      at_[ranges[from]] = Value::index(i);
      for_each(ranges, from + 1, visit);
    }
  }

  Value value(NodeRef root, NodeMap<Value>& known) {
    if (const Value* v = known.find(root)) return *v;
    return known.set(root, computed(root, known));
  }

  Value computed(NodeRef n, NodeMap<Value>& known) {
    switch (n->op) {
      case Op::Const: return const_value(n);
      case Op::Range: return at_.at(n);
      case Op::Load: {
        const Array& from = memory_[static_cast<size_t>(param_slot(n->src(0)))];
        if (n->nsrc > 2 && !value(n->src(2), known).as_bool()) return Value::of(n->dtype, 0);
        return from.at(value(n->src(1), known).as_int());
      }
      case Op::ToIndex: {
        const int64_t size = value(n->src(1), known).as_int();
        return Value::index(std::clamp<int64_t>(value(n->src(0), known).as_int(), 0, size - 1));
      }
      case Op::Reduce: {
        Value sum = fold_identity(fold_of(n), n->dtype);
        for_each(n->src().subspan(1), 0, [&] {
          NodeMap<Value> inside;
          sum = fold(fold_of(n), sum, value(n->src(0), inside));
        });
        return sum;
      }
      default: break;
    }
    if (!is_alu(n->op))
      fail("eval", "{} in a custom kernel: the oracle has no rule for it", info(n->op).mnemonic);
    std::vector<Value> operands;
    for (NodeRef s : n->src()) operands.push_back(value(s, known));
    return apply(n->op, n->dtype, operands);
  }

  std::vector<Array>& memory_;
  std::map<NodeRef, Value> at_;
};

}  // namespace

std::vector<Array> evaluate_kernel(NodeRef custom, std::vector<Array> outputs,
                                   std::vector<Array> inputs) {
  const size_t results = outputs.size();
  std::vector<Array> memory = std::move(outputs);
  for (Array& a : inputs) memory.push_back(std::move(a));
  KernelRun run(memory);
  for (NodeRef s : CustomParts(custom).sink->src()) run.store(s);
  memory.resize(results);
  return memory;
}

}  // namespace weft::eval
