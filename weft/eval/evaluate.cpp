#include "weft/eval/evaluate.h"

#include <memory>

#include "weft/base/error.h"
#include "weft/eval/scalar.h"
#include "weft/eval/step.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"
#include "weft/graph/tuple.h"

namespace weft::eval {

int64_t flatten(const Index& index, std::span<const int64_t> extents) {
  int64_t flat = 0;
  for (size_t a = 0; a < extents.size(); ++a) flat = flat * extents[a] + index[a];
  return flat;
}

Index unflatten(int64_t flat, std::span<const int64_t> extents) {
  Index index(extents.size());
  for (size_t a = extents.size(); a-- > 0;) {
    index[a] = extents[a] ? flat % extents[a] : 0;
    flat = extents[a] ? flat / extents[a] : 0;
  }
  return index;
}

namespace {

// ---- leaves

Array constant(const Step& s) { return Array::scalar(const_value(s.node)); }

Array variable(const Step& s) {
  const auto at = s.inputs.variables.find(std::string(s.node->text()));
  if (at == s.inputs.variables.end()) fail("eval", "variable {} has no value", s.node->text());
  const int64_t v = at->second, least = s.arg(0), most = s.arg(1), multiple = s.arg(2);
  if (v < least || v > most || v % multiple != 0)
    fail("eval", "variable {} is {}; it lies in [{}, {}] and is a multiple of {}", s.node->text(),
         v, least, most, multiple);
  return Array::scalar(Value::index(v));
}

Array bound_variable(const Step& s) { return Array::scalar(Value::index(s.number(1))); }

const Array& checked_leaf(const Step& s, const Array* given, const char* what, int64_t id) {
  if (!given) fail("eval", "{} {} is not given", what, id);
  if (given->dtype() != s.node->dtype || given->extents() != s.extents)
    fail("eval", "{} {} is {}; the graph wants {}", what, id, given->type_text(),
         Array(s.node->dtype, s.extents).type_text());
  return *given;
}

Array param(const Step& s) {
  const int64_t slot = param_slot(s.node);
  if (const auto inner = s.inputs.inner.find(slot); inner != s.inputs.inner.end())
    return checked_leaf(s, &inner->second, "placeholder", slot);
  const bool given = slot >= 0 && slot < static_cast<int64_t>(s.inputs.params.size());
  return checked_leaf(s, given ? &s.inputs.params[static_cast<size_t>(slot)] : nullptr, "param",
                      slot);
}

Array buffer(const Step& s) {
  const auto at = s.inputs.buffers.find(buffer_id(s.node));
  return checked_leaf(s, at == s.inputs.buffers.end() ? nullptr : &at->second, "buffer",
                      buffer_id(s.node));
}

Array iota(const Step& s) {
  Array out(s.node->dtype, s.extents);
  for_each_index(s.extents, [&](const Index& i, int64_t flat) {
    out.set(flat, Value::of(out.dtype(), i[s.axis_arg(0)]));
  });
  return out;
}

// ---- elementwise

Array elementwise(const Step& s) {
  Array out(s.node->dtype, s.extents);
  std::vector<Value> operands(s.src.size());
  for (int64_t i = 0; i < out.count(); ++i) {
    for (size_t k = 0; k < s.src.size(); ++k)
      operands[k] = s.src[k]->at(s.src[k]->rank() == 0 ? 0 : i);
    out.set(i, apply(s.node->op, out.dtype(), operands));
  }
  return out;
}

Array same_value(const Step& s) { return s.x(); }
Array nothing(const Step&) { return {}; }

struct OpRow {
  Op op;
  Array (*evaluate)(const Step&);
};
constexpr OpRow kOpRows[] = {
    {Op::Const, constant},
    {Op::Variable, variable},
    {Op::Bind, bound_variable},
    {Op::Param, param},
    {Op::Buffer, buffer},
    {Op::Iota, iota},
    {Op::Reduce, evaluate_reduce},
    {Op::Scan, evaluate_scan},
    {Op::Scatter, evaluate_scatter},
    {Op::CumCount, evaluate_cumcount},
    {Op::Cat, evaluate_cat},
    {Op::Contiguous, same_value},
    {Op::Detach, same_value},
    {Op::Copy, same_value},
    {Op::Sink, nothing},
};

Array (*function_of(Op op))(const Step&) {
  for (const OpRow& row : kOpRows)
    if (row.op == op) return row.evaluate;
  if (is_movement(op)) return evaluate_movement;
  if (is_alu(op) && op != Op::ToIndex) return elementwise;
  internal_error("eval", "{} does not belong in a tensor graph", info(op).mnemonic);
}

// ---- the walk

class Evaluator {
 public:
  explicit Evaluator(const Inputs& inputs) : inputs_(inputs) {}

  std::vector<Array> run(std::span<const NodeRef> roots) {
    const Toposort order = Toposort::evaluated(roots);
    prepare(order.nodes());
    for (NodeRef n : roots) ++uses_[n];
    for (NodeRef n : order)
      if (!open_.contains(n) && n->op != Op::Variable) evaluate_node(n);
    std::vector<Array> out;
    for (NodeRef n : roots) out.push_back(value(n));
    return out;
  }

 private:
  /// Counts uses, and marks the nodes inside loop bodies: they have a value per iteration only.
  void prepare(std::span<const NodeRef> order) {
    for (NodeRef n : order) {
      bool open = n->op == Op::Carry || n->op == Op::Elem;
      for (NodeRef s : evaluated(n)) {
        open |= n->op != Op::Loop && open_.contains(s);
        ++uses_[s];
      }
      if (open) open_[n] = true;
    }
  }

  static std::span<const NodeRef> evaluated(NodeRef n) {
    return n->src().first(evaluated_sources(n));
  }

  void evaluate_node(NodeRef n) {
    if (is_tuple(n->op))
      results_[n] = run_tuple(n);
    else
      keep(n, n->op == Op::Get      ? results_.at(n->src(0))[static_cast<size_t>(n->int_arg(0))]
              : n->op == Op::Assign ? assign(n)
                                    : function_of(n->op)(step_of(n)));
    for (NodeRef s : evaluated(n))
      if (--uses_[s] == 0 && s->rank() > 0 && values_.contains(s)) values_[s].reset();
  }

  void keep(NodeRef n, Array value) { values_[n] = std::make_unique<Array>(std::move(value)); }

  const Array& value(NodeRef n) {
    if (const auto* found = values_.find(n)) return **found;
    // A size that only a shape mentions.
    for (NodeRef x : Toposort(n))
      if (!values_.contains(x) && (x == n || x->op != Op::Variable))
        keep(x, function_of(x->op)(step_of(x)));
    return *values_.at(n);
  }

  Extents extents_of(const Shape* shape) {
    Extents out;
    for (NodeRef d : shape->span())
      out.push_back(d->op == Op::Const ? d->vmin : value(d).at(0).as_int());
    return out;
  }

  Step step_of(NodeRef n, const Array* first = nullptr) {
    Step s{n, extents_of(n->shape), {}, inputs_};
    for (NodeRef x : n->src()) {
      // Variables have a value where one is asked for; a Bind asks for none.
      const bool named_only = n->op == Op::Bind && x->op == Op::Variable;
      s.src.push_back(named_only ? nullptr : first && s.src.empty() ? first : &value(x));
    }
    return s;
  }

  Array assign(NodeRef n);
  std::vector<Array> run_tuple(NodeRef n) {
    if (n->op == Op::Repeat) return run_repeat(n);
    if (n->op == Op::Call) return run_call(n);
    if (n->op == Op::Custom) return run_custom(n);
    if (n->op == Op::Loop)
      return evaluate_loop(n, extents_of(n->src(0)->shape), extents_of(n->shape),
                           [this](NodeRef x) { return open_.contains(x) ? nullptr : &value(x); });
    std::vector<Array> results;
    for (NodeRef r : FunctionParts(n).results) results.push_back(value(r));
    return results;
  }
  std::vector<Array> run_repeat(NodeRef n);
  std::vector<Array> run_call(NodeRef n) {
    const CallParts parts(n);
    Inputs inputs = inputs_;
    for (size_t i = 0; i < parts.inputs.size(); ++i)
      inputs.inner[parts.slot + static_cast<int64_t>(i)] = value(parts.inputs[i]);
    return Evaluator(inputs).run(parts.bodies);
  }
  std::vector<Array> run_custom(NodeRef n) {
    std::vector<Array> outputs, inputs;
    for (NodeRef out : CustomParts(n).outputs)
      outputs.emplace_back(out->dtype, extents_of(out->shape));
    for (NodeRef in : CustomParts(n).inputs) inputs.push_back(value(in));
    return evaluate_kernel(n, std::move(outputs), std::move(inputs));
  }

  const Inputs& inputs_;
  NodeMap<std::unique_ptr<Array>> values_;  // null once nothing needs it any more
  NodeMap<std::vector<Array>> results_;     // of loops
  NodeMap<bool> open_;
  NodeMap<int> uses_;
};

/// The `place`-th slice of a stack.
Array slice(const Array& stack, int64_t place) {
  const Extents extents(stack.extents().begin() + 1, stack.extents().end());
  Array out(stack.dtype(), extents);
  for (int64_t i = 0; i < out.count(); ++i) out.set(i, stack.at(place * out.count() + i));
  return out;
}

/// A body is a graph of its own, evaluated anew every time.
std::vector<Array> Evaluator::run_repeat(NodeRef n) {
  const RepeatParts parts(n);
  const size_t carries = parts.nexts.size();
  std::vector<Array> results;
  for (NodeRef init : parts.inits) results.push_back(value(init));
  for (size_t k = carries; k < result_count(n); ++k) {
    Extents extents = extents_of(result_like(n, k)->shape);
    extents.insert(extents.begin(), parts.count);
    results.emplace_back(result_like(n, k)->dtype, extents);
  }
  for (int64_t step = 0; step < parts.count; ++step) {
    const int64_t place = parts.reversed ? parts.count - 1 - step : step;
    Inputs inputs = inputs_;
    int64_t slot = parts.slot;
    for (NodeRef x : parts.stacked) inputs.inner[slot++] = slice(value(x), place);
    for (NodeRef x : parts.whole) inputs.inner[slot++] = value(x);
    for (size_t k = 0; k < carries; ++k) inputs.inner[slot++] = results[k];
    std::vector<Array> made = Evaluator(inputs).run(closed_sources(n));
    for (size_t k = 0; k < made.size(); ++k) {
      if (k < carries) {
        results[k] = std::move(made[k]);
        continue;
      }
      for (int64_t i = 0; i < made[k].count(); ++i)
        results[k].set(place * made[k].count() + i, made[k].at(i));
    }
  }
  return results;
}

/// Sends the positions of old's elements through the view's chain: where each viewed element lies.
Array Evaluator::assign(NodeRef n) {
  NodeRef old = n->src(0);
  std::vector<NodeRef> chain;
  for (NodeRef v = n->src(1); v != old; v = v->src(0)) {
    if (!is_movement(v->op))
      internal_error("eval", "assign: {} in a view; only movement ops are", info(v->op).mnemonic);
    chain.push_back(v);
  }
  Array out = value(old), places(DType::I64, out.extents());
  for (int64_t i = 0; i < places.count(); ++i) places.set(i, Value::of(DType::I64, i));
  for (size_t k = chain.size(); k-- > 0;) {
    places = evaluate_movement(step_of(chain[k], &places));
  }
  const Array& given = value(n->src(2));
  if (given.extents() != places.extents()) internal_error("eval", "assign: value and view differ");
  for (int64_t i = 0; i < places.count(); ++i) out.set(places.at(i).as_int(), given.at(i));
  return out;
}

}  // namespace

std::vector<Array> evaluate(std::span<const NodeRef> roots, const Inputs& inputs) {
  return Evaluator(inputs).run(roots);
}

Array evaluate(NodeRef root, const Inputs& inputs) {
  return evaluate(std::span<const NodeRef>(&root, 1), inputs)[0];
}

}  // namespace weft::eval
