#include "weft/run/normalise.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/small_vector.h"
#include "weft/graph/print.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/calls.h"

namespace weft {
namespace {

class Normaliser {
 public:
  Normaliser(Graph& graph, DeviceId default_device, KnownBodies* bodies)
      : graph_(graph), default_device_(default_device), bodies_(bodies) {}

  NormalForm run(std::span<const NodeRef> values, std::span<const NodeRef> watched) {
    copy_all(values);
    for (NodeRef v : values) form_.values.push_back(copies_.at(v));
    form_.root = graph_.intern({Op::Sink, DType::Void, form_.values});
    for (NodeRef w : watched)
      if (copies_.contains(w)) form_.seen.push_back(w);
    form_.asked.assign(values);
    form_.copies = std::move(copies_);
    return std::move(form_);
  }

 private:
  void copy_all(std::span<const NodeRef> roots) {
    const Toposort order = Toposort::evaluated(roots);
    copies_.reserve(order.size());
    symbolic_ |=
        std::any_of(order.begin(), order.end(), [](NodeRef n) { return n->op == Op::Bind; });
    for (NodeRef n : order) {
      if (n->op == Op::Custom) copies_[CustomParts(n).sink] = graph_.import(CustomParts(n).sink);
      if (n->op == Op::Custom) copy_all(CustomParts(n).outputs);
      if (n->op == Op::Repeat) copy_all(closed_sources(n));
      if (n->op == Op::Call) copy_bodies(n);
      copies_[n] = copy(n);
    }
  }

  void copy_bodies(NodeRef call) {
    form_.calls = true;
    for (NodeRef body : closed_sources(call)) {
      NodeRef known = bodies_ ? bodies_->find(body, default_device_) : nullptr;
      if (known) {
        copies_[body] = known;
        continue;
      }
      copy_all({&body, 1});
      if (bodies_) bodies_->add(body, copies_.at(body), default_device_);
    }
  }

  NodeRef copy(NodeRef n) {
    switch (n->op) {
      // From here on a function is what it computes.
      case Op::Function: return nullptr;
      case Op::Get:
        if (n->src(0)->op == Op::Function)
          return copies_.at(result_like(n->src(0), static_cast<size_t>(n->int_arg(0))));
        break;
      // What depends on no memory is computed where it is wanted.
      case Op::Copy:
        if (n->int_arg(0) == default_device_ && source(n, n->src(0))->device == 0)
          return source(n, n->src(0));
        break;
      // Gradients are made by now.
      case Op::Detach: return source(n, n->src(0));
      case Op::Buffer: return input(n);
      case Op::Bind: return variable(n->src(0), n->src(1)->vmin);
      case Op::Variable: return nullptr;  // stands for nothing outside of a Bind
      case Op::Param:
        if (is_inner_param(n)) break;
        fail("realize.placeholder",
             "a function that is being traced (vmap, vjp, jvp, ...) asked for the values of its "
             "argument, here of shape {}: it has none yet; use operations on tensors instead of "
             "item(), realize() or an if",
             shape_text(n->shape));
      default: break;
    }
    src_.clear();
    for (NodeRef s : n->src()) src_.push_back(source(n, s));
    const NodeSpec spec{n->op, n->dtype, src_, device_free(n), n->text(), n->lanes};
    // Other operands may have another normal order; without Variables nothing changes.
    return symbolic_ && is_alu(n->op) ? graph_.make(spec) : graph_.intern(spec);
  }

  NodeRef source(NodeRef user, NodeRef s) {
    if (NodeRef c = copies_.at(s)) return c;
    fail("realize.unbound",
         "variable {} is unbound, it has no value in {}; use {}.bind(value) where a size is needed",
         s->text(), summary(user), s->text());
  }

  /// A Copy to the default device is written with device 0 like everything else there.
  std::span<const int64_t> device_free(NodeRef n) {
    if (n->op != Op::Copy || n->int_arg(0) != default_device_) return n->ints();
    static constexpr int64_t kHere[] = {0};
    return kHere;
  }

  NodeRef input(NodeRef n) {
    const auto slot = static_cast<int64_t>(form_.inputs.size());
    form_.inputs.push_back(n);
    src_.clear();
    for (NodeRef d : n->src()) src_.push_back(source(n, d));
    return graph_.param(slot, n->dtype, src_,
                        n->device == default_device_ ? DeviceId{0} : n->device);
  }

  NodeRef variable(NodeRef v, int64_t value) {
    std::string name(v->text());
    for (int copy = 1;; ++copy) {
      const auto same = std::find_if(form_.variables.begin(), form_.variables.end(),
                                     [&](const BoundVariable& b) { return b.name == name; });
      if (same == form_.variables.end()) break;
      if (same->variable == v && same->value == value) return renamed(v, name);
      name = strformat("{}.{}", v->text(), copy);
    }
    form_.variables.push_back({v, name, value});
    return renamed(v, name);
  }

  NodeRef renamed(NodeRef v, std::string_view name) {
    return graph_.variable(name, v->int_arg(0), v->int_arg(1), v->int_arg(2));
  }

  Graph& graph_;
  DeviceId default_device_;
  KnownBodies* bodies_;
  bool symbolic_ = false;
  NodeMap<NodeRef> copies_;
  NormalForm form_;
  SmallVector<NodeRef, 8> src_;
};

}  // namespace

std::vector<int64_t> values_of(std::span<const std::string> names,
                               std::span<const BoundVariable> variables) {
  std::vector<int64_t> values;
  for (const std::string& name : names)
    for (const BoundVariable& v : variables)
      if (v.name == name) values.push_back(v.value);
  return values;
}

NodeRef KnownBodies::find(NodeRef body, DeviceId default_device) const {
  const NodeRef* normal = default_device == default_device_ ? known_.find(body) : nullptr;
  return normal ? *normal : nullptr;
}

void KnownBodies::add(NodeRef body, NodeRef normal, DeviceId default_device) {
  const size_t nodes = Toposort(normal).size();
  if (default_device != default_device_ || nodes_ + nodes > kMostNodes) clear();
  default_device_ = default_device;
  nodes_ += nodes;
  from_.retain(body);
  to_.retain(normal);
  held_.emplace_back(body, normal);
  known_.set(body, normal);
}

void KnownBodies::clear() {
  for (const auto& [body, normal] : held_) {
    from_.release(body);
    to_.release(normal);
  }
  held_.clear();
  known_.clear();
  nodes_ = 0;
}

PassView NormalState::view() const {
  uint64_t content = values.size();
  for (NodeRef v : values) content = hash_combine(content, v->hash);
  return {static_cast<int64_t>(Toposort(values).size()), content};
}

std::string NormalState::text() const { return print_graph(values); }

StateParts NormalState::parts() const { return StateParts::graph({values.begin(), values.end()}); }

namespace {

void number(NormalState& s) {
  // Which of its nodes are watched a known form does not say.
  const bool may_be_known = s.known && s.watched.empty();
  if (!may_be_known || !s.known->forms.find(s.values, s.default_device, s.form)) {
    KnownBodies* bodies = s.known ? &s.known->bodies : nullptr;
    s.form = Normaliser(s.graph, s.default_device, bodies).run(s.values, s.watched);
    if (may_be_known) s.known->forms.add(s.form, s.default_device);
  }
  s.values = s.form.values;
}

void inline_calls(NormalState& s) {
  const InlinedCalls inlined(s.graph, s.values);
  for (NodeRef n : Toposort::evaluated(s.values))
    if (n->op != Op::Call && inlined.image(n) != n)
      s.origins.try_emplace(inlined.image(n)->hash, n->hash);
  for (const auto& [made, call] : inlined.made()) s.origins.try_emplace(made->hash, call->hash);
  for (NodeRef& v : s.values) v = inlined.image(v);
}

template <Op... ops>
bool holds(const NormalState& s) {
  const Toposort nodes = Toposort::evaluated(s.values);
  return std::any_of(nodes.begin(), nodes.end(), [](NodeRef n) { return ((n->op == ops) || ...); });
}

const char* unnumbered_left(const NormalState& s) {
  return holds<Op::Buffer, Op::Bind, Op::Function>(s) ? "a buffer, a bound variable or a function"
                                                      : nullptr;
}
const char* call_left(const NormalState& s) { return holds<Op::Call>(s) ? "a call" : nullptr; }

constexpr Pass<NormalState> kPasses[] = {
    {"normalise.number", "buffers are params in order of first visit, bound variables have names",
     number, unnumbered_left},
    {"normalise.inline_calls", "calls are what they compute", inline_calls, call_left},
};

}  // namespace

std::span<const Pass<NormalState>> normalise_passes() { return kPasses; }

NormalForm normalise(Graph& graph, std::span<const NodeRef> values, DeviceId default_device,
                     std::span<const NodeRef> watched, KnownPrograms* known) {
  NormalState state{graph, NormalForm::Nodes(values), default_device, watched, known};
  run_pass(kPasses[0], state);
  return std::move(state.form);
}

NodeMap<NodeRef> normal_copies(Graph& graph, std::span<const NodeRef> values,
                               DeviceId default_device) {
  return Normaliser(graph, default_device, nullptr).run(values, {}).copies;
}

WithoutCalls without_calls(Graph& graph, const NormalForm& form) {
  NormalState state{graph, form.values};
  if (form.calls) run_pass(kPasses[1], state);
  return {std::move(state.values), std::move(state.origins)};
}

}  // namespace weft
