#include "weft/tensor/captured_function.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/graph/binary.h"
#include "weft/graph/node_map.h"
#include "weft/graph/print.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"
#include "weft/run/realize.h"
#include "weft/run/replay_plan.h"
#include "weft/tensor/access.h"
#include "weft/tensor/argument_sizes.h"
#include "weft/tensor/transforms.h"

namespace weft {

// ---- from a replay

namespace {

CapturedFunction::Ending ending_of(const ReplayPlan& plan, const Ending& e) {
  if (e.fresh < 0) return {e.place, -1};
  return {-1, plan.fresh[static_cast<size_t>(e.fresh)].buffer};
}

RootedNode form_of(Graph& g, const TensorForm& form, size_t slot) {
  return RootedNode(g.param(static_cast<int64_t>(slot), form.dtype, form.dims));
}

/// What a realization computed, its variables with the values they had.
std::vector<RootedNode> values_of(Graph& g, const weft::Computation& c) {
  std::vector<RootedNode> out;
  const std::vector<NodeRef> roots = read_graph(g, c.graph);
  NodeMap<NodeRef> binds;
  for (NodeRef n : Toposort(roots)) {
    if (n->op != Op::Variable) continue;
    const auto v = std::ranges::find(c.variables, n->text(), &BoundVariable::name);
    binds[n] = g.make(Op::Bind, DType::Index, {v->variable, g.index(v->value)});
  }
  for (NodeRef r : roots) out.emplace_back(substitute(g, r, binds));
  return out;
}

Tensor tensor_over(Context& context, const std::shared_ptr<Storage>& storage) {
  if (auto cell = std::dynamic_pointer_cast<TensorCell>(storage)) return TensorAccess::whole(cell);
  return TensorAccess::make(context, storage->value());
}

}  // namespace

CapturedFunction CapturedFunction::of(const Replay& replay) {
  const ReplayPlan& plan = replay.plan();
  Graph& g = tensor_graph(plan.context);
  const Graph::Building building(g);
  CapturedFunction f;
  f.arguments = plan.arguments;
  f.memories = plan.captured.buffers.size();
  for (size_t i = 0; i < plan.places.size(); ++i) {
    const HeldPlace& from = plan.places[i];
    Place to{from.name, from.buffer, ending_of(plan, from.ending), {}, {}, {}};
    if (i < plan.arguments)
      to.form = form_of(g, from.form, i);
    else
      to.state = tensor_over(plan.context, from.storage);
    f.places.push_back(std::move(to));
  }
  for (const weft::Computation& c : plan.computations)
    f.computations.push_back({values_of(g, c), c.inputs, c.results});
  for (const ReplayPlan::Result& r : plan.results)
    f.results.push_back({ending_of(plan, r.ending), r.itself});
  return f;
}

ArgumentSizes CapturedFunction::argument_sizes(Graph& g) const {
  ArgumentSizes out;
  for (const auto& size : sizes) out.add(size.second.get());
  for (size_t i = 0; i < arguments; ++i) {
    NodeRef form = places[i].form.get(), view = places[i].view.get();
    out.add(view ? view : TensorAccess::placeholder(g, form->dtype, form->src()));
  }
  return out;
}

// ---- one call

namespace {

[[noreturn]] void damaged(const CapturedFunction& f, const char* what) {
  fail("function.damaged", "{}: {}; the file is damaged", f.name, what);
}

/// Graphs with memory in the place of Params, and the sizes of this call.
class Instance {
 public:
  Instance(Graph& g, const CapturedFunction& f, const std::vector<ReplayVariable>& variables)
      : g_(g), f_(f), captured_(f.argument_sizes(g).variables()), variables_(variables) {}

  /// `inputs`: of each Param; null where it does not matter.
  std::vector<NodeRef> of(std::span<const RootedNode> values, std::span<const NodeRef> inputs) {
    copies_ = {};
    inputs_ = inputs;
    std::vector<NodeRef> roots, out;
    for (const RootedNode& v : values) roots.push_back(v.get());
    copy_all(roots);
    for (NodeRef r : roots) out.push_back(copies_.at(r));
    return out;
  }
  const Shape* shape_of(NodeRef form) {
    std::vector<NodeRef> dims;
    for (NodeRef d : form->src()) {
      copy_all({&d, 1});
      dims.push_back(copies_.at(d));
    }
    return g_.shape(dims);
  }

 private:
  /// A custom kernel's own Params are no inputs of ours.
  void copy_all(std::span<const NodeRef> roots) {
    for (NodeRef n : Toposort::evaluated(roots)) {
      if (copies_.contains(n)) continue;
      for (NodeRef closed : closed_sources(n))
        if (n->op == Op::Custom) copies_[closed] = closed;
      if (n->op == Op::Repeat || n->op == Op::Call) copy_all(closed_sources(n));
      copies_[n] = copy(n);
    }
  }

  NodeRef copy(NodeRef n) {
    if (n->op == Op::Bind) return size_of(n);
    std::vector<NodeRef> src;
    for (NodeRef s : n->src()) src.push_back(copies_.at(s));
    if (n->op != Op::Param || is_inner_param(n)) return g_.with_sources(n, src);
    const auto slot = static_cast<size_t>(param_slot(n));
    if (slot >= inputs_.size()) damaged(f_, "a computation reads what it is not given");
    NodeRef x = inputs_[slot];
    if (!x) return build::expand(g_, unit(n, src.size()), src);
    if (x->dtype != n->dtype || x->shape != g_.shape(src))
      damaged(f_, "a computation reads memory of another shape or dtype");
    return x;
  }

  NodeRef unit(NodeRef like, size_t rank) {
    const std::vector<NodeRef> ones(rank, g_.index(1));
    return build::reshape(g_, g_.constant(Value::of(like->dtype, 0)), ones);
  }

  NodeRef size_of(NodeRef bind) {
    const ReplayVariable was{bind->src(0), bind->src(1)->vmin};
    const auto at = std::ranges::find(captured_, was);
    if (at == captured_.end()) return bind;
    const auto& now = variables_[static_cast<size_t>(at - captured_.begin())];
    return g_.make(Op::Bind, DType::Index, {now.variable, g_.index(now.value)});
  }

  Graph& g_;
  const CapturedFunction& f_;
  std::vector<ReplayVariable> captured_;
  const std::vector<ReplayVariable>& variables_;
  std::span<const NodeRef> inputs_;
  NodeMap<NodeRef> copies_;
};

class Call {
 public:
  Call(const CapturedFunction& f, const Tensors& arguments,
       const std::vector<ReplayVariable>& variables)
      : f_(f),
        context_(arguments.empty() ? Context::current() : arguments[0].context()),
        g_(tensor_graph(context_)),
        instance_(g_, f, variables),
        memory_(f.memories) {
    if (arguments.size() != f.arguments)
      fail("jit.arguments", "{} takes {} tensors, {} are given", f.name, f.arguments,
           arguments.size());
    for (size_t i = 0; i < f.places.size(); ++i)
      hold(f.places[i], i < f.arguments ? arguments[i] : f.places[i].state);
  }

  Tensors run() {
    for (const CapturedFunction::Computation& c : f_.computations) compute(c);
    return end();
  }

 private:
  void hold(const CapturedFunction::Place& place, const Tensor& given) {
    std::shared_ptr<TensorCell> cell = TensorAccess::shared(given);
    if (place.form) check_form(place, *cell);
    if (place.memory >= 0) memory_[static_cast<size_t>(place.memory)] = cell;
    places_.push_back(std::move(cell));
  }

  void check_form(const CapturedFunction::Place& place, const TensorCell& cell) {
    const Graph::Building building(g_);
    NodeRef value = cell.value(), form = place.form.get();
    const Shape* expected = instance_.shape_of(form);
    if (value->dtype != form->dtype)
      fail_type("jit.dtype", "{} is {}, was {} when {} was captured; cast it", place.name,
                name(value->dtype), name(form->dtype), f_.name);
    if (value->shape != expected)
      fail("jit.shape", "{} has shape {}, had {} when {} was captured", place.name,
           shape_text(value->shape), shape_text(expected), f_.name);
  }

  void compute(const CapturedFunction::Computation& c) {
    std::vector<std::shared_ptr<Storage>> made;
    {
      const Graph::Building building(g_);
      std::vector<NodeRef> inputs;
      for (const int m : c.inputs) inputs.push_back(m < 0 ? nullptr : cell(m).value());
      const std::vector<NodeRef> values = instance_.of(c.values, inputs);
      for (size_t i = 0; i < values.size(); ++i) made.push_back(store(c.results[i], values[i]));
    }
    realize(context_, made);
  }

  TensorCell& cell(int memory) {
    const auto& found = memory_[static_cast<size_t>(memory)];
    if (!found) damaged(f_, "a computation reads memory before anything is in it");
    return *found;
  }

  std::shared_ptr<Storage> store(int memory, NodeRef value) {
    std::shared_ptr<TensorCell>& to = memory_[static_cast<size_t>(memory)];
    if (!to)
      to = TensorAccess::shared(TensorAccess::make(context_, value));
    else if (NodeRef old = to->value(); old->dtype != value->dtype || old->shape != value->shape)
      damaged(f_, "memory changes its shape or dtype");
    else
      to->set_value(value);
    return to;
  }

  /// Endings name values as they were: places may be about to change.
  Tensors end() {
    const Graph::Building building(g_);
    std::vector<RootedNode> held;
    for (const auto& p : places_) held.emplace_back(p->value());
    const auto value_of = [&](const CapturedFunction::Ending& e) {
      return e.place >= 0 ? held[static_cast<size_t>(e.place)] : RootedNode(cell(e.memory).value());
    };
    Tensors out;
    for (const CapturedFunction::Result& r : f_.results)
      out.push_back(r.itself >= 0 ? TensorAccess::whole(places_[static_cast<size_t>(r.itself)])
                                  : TensorAccess::make(context_, value_of(r.ending).get()));
    std::vector<RootedNode> endings;
    for (const CapturedFunction::Place& p : f_.places)
      endings.push_back(p.ending.none() ? RootedNode() : value_of(p.ending));
    for (size_t i = 0; i < places_.size(); ++i)
      if (endings[i]) places_[i]->set_value(endings[i].get());
    return out;
  }

  const CapturedFunction& f_;
  Context& context_;
  Graph& g_;
  Instance instance_;
  std::vector<std::shared_ptr<TensorCell>> memory_, places_;
};

}  // namespace

Tensors CapturedFunction::run(const Tensors& given,
                              const std::vector<ReplayVariable>& variables) const {
  return Call(*this, given, variables).run();
}

}  // namespace weft
