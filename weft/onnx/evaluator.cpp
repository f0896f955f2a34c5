#include "weft/onnx/evaluator.h"

#include <algorithm>
#include <optional>
#include <unordered_set>
#include <utility>

#include "weft/base/error.h"
#include "weft/onnx/dequantised_movement.h"
#include "weft/onnx/fold.h"
#include "weft/onnx/link.h"
#include "weft/tensor/access.h"

namespace weft::onnx {

namespace {

constexpr int kDeepest = 100;

}  // namespace

struct Evaluator::Step {
  LinkedNode linked;
  bool refers = false;  // to attributes of a function's call
  bool stable = false;  // depends on constants alone
  std::vector<std::string_view> inputs_last_used;
  std::optional<Values> kept;  // of a stable one, once it ran
};

struct Evaluator::Plan {
  void note_stable(const std::map<std::string, Value>& changing);

  std::vector<std::string_view> differentiated;  // by Gradient nodes
  std::vector<std::pair<std::string_view, Value>> constants;
  std::vector<size_t> defaulted;  // inputs that have a constant
  std::vector<Step> steps;
};

/// Values by name. Those of a function are alone; those of a subgraph see the ones around them.
struct Evaluator::Scope {
  const Scope* outer = nullptr;
  const Node* call = nullptr;  // of the function that runs
  const Function* function = nullptr;
  std::unordered_map<std::string_view, Value> values = {};

  const Value* find(std::string_view name) const {
    for (const Scope* s = this; s != nullptr; s = s->outer)
      if (const auto found = s->values.find(name); found != s->values.end()) return &found->second;
    return nullptr;
  }
  Values all_of(const std::vector<std::string>& names) const {
    Values found;
    for (const std::string& name : names) {
      const Value* value = name.empty() ? nullptr : find(name);
      found.push_back(value ? *value : Value());
    }
    return found;
  }
};

namespace {

bool has_graphs(const Node& node) {
  return std::ranges::any_of(node.attributes, [](const Attribute& a) { return !a.graphs.empty(); });
}

}  // namespace

/// What nodes of constants give stays the same memory in all runs, so that captures know it.
void Evaluator::Plan::note_stable(const std::map<std::string, Value>& changing) {
  std::unordered_set<std::string_view> stable = {""};
  for (const auto& [name, value] : constants)
    if (!changing.contains(std::string(name))) stable.insert(name);
  for (Step& step : steps) {
    const Node& node = *step.linked.node;
    const auto is_stable = [&](const std::string& name) { return stable.count(name) != 0; };
    step.kept.reset();
    step.stable = step.linked.op && node.domain != kTraining && !step.refers && !is_random(node) &&
                  !has_graphs(node) && std::ranges::all_of(node.inputs, is_stable);
    for (const std::string& name : node.outputs)
      if (step.stable)
        stable.insert(name);
      else if (!name.empty())
        stable.erase(name);
  }
}

/// Makes plans of everything that a linked model runs.
class Evaluator::Linker {
 public:
  explicit Linker(Evaluator& evaluator) : evaluator_(evaluator) {}

  void link(const Model& model) {
    const LinkedModel linked(model);
    require_supported(linked);
    for (const LinkedNodes& nodes : linked.lists()) add(nodes);
  }

 private:
  void add(const LinkedNodes& list) {
    auto plan = std::make_unique<Plan>();
    std::vector<std::string_view> kept;  // to the end
    if (list.graph) {
      for (const ConstantData& t : list.graph->initialisers)
        plan->constants.emplace_back(t.name, Value(t));
      for (const auto& [name, sparse] : list.graph->sparse_initialisers)
        plan->constants.emplace_back(name, dense(sparse));
      for (const DeclaredValue& v : list.graph->outputs) kept.push_back(v.name);
    } else {
      kept.assign(list.function->outputs.begin(), list.function->outputs.end());
    }
    for (const LinkedNode& linked : list.nodes) {
      plan->steps.push_back({linked, refers(*linked.node), false, {}, {}});
      const Attribute* xs = linked.node->op == "Gradient" ? linked.node->find("xs") : nullptr;
      if (xs)
        plan->differentiated.insert(plan->differentiated.end(), xs->texts.begin(), xs->texts.end());
    }
    note_defaulted(*plan, list.graph);
    plan->note_stable({});
    note_last_uses(*plan, kept);
    evaluator_.plans_.emplace(list.graph ? static_cast<const void*>(list.graph) : list.function,
                              std::move(plan));
  }

  static bool refers(const Node& node) {
    return std::ranges::any_of(node.attributes,
                               [](const Attribute& a) { return !a.refers_to.empty(); });
  }

  static void note_defaulted(Plan& plan, const Graph* graph) {
    std::unordered_set<std::string_view> names;
    for (const auto& [name, value] : plan.constants) names.insert(name);
    for (size_t i = 0; graph && i < graph->inputs.size(); ++i)
      if (names.count(graph->inputs[i].name)) plan.defaulted.push_back(i);
  }

  static void note_last_uses(Plan& plan, const std::vector<std::string_view>& kept) {
    std::unordered_map<std::string_view, size_t> last;
    for (size_t i = 0; i < plan.steps.size(); ++i) {
      const Node& node = *plan.steps[i].linked.node;
      for (const std::string& name : node.outputs) last[name] = i;
      for (const std::string& name : node.inputs) last[name] = i;
      for (const Attribute& a : node.attributes) {
        for (const auto& graph : a.graphs)
          for (const std::string& name : graph->captures) last[name] = i;
        if (node.op == "Gradient" && a.name == "y") last[a.text] = i;
      }
    }
    for (const std::string_view name : kept) last.erase(name);
    for (const auto& [name, i] : last) plan.steps[i].inputs_last_used.push_back(name);
  }

  Evaluator& evaluator_;
};

Evaluator::Evaluator(const Model& model) { Linker(*this).link(model); }
Evaluator::~Evaluator() = default;

namespace {

/// The node with the attributes of a function's call, or its defaults, in the place of references.
Node with_attributes(const Node& node, const Node* call, const Function* function) {
  Node own = node;
  std::vector<Attribute> attributes;
  for (Attribute& a : own.attributes) {
    if (!a.refers_to.empty()) {
      const Attribute* given = call ? call->find(a.refers_to) : nullptr;
      if (!given && function) {
        const auto usual = std::ranges::find(function->defaults, a.refers_to, &Attribute::name);
        if (usual != function->defaults.end()) given = &*usual;
      }
      if (!given) continue;  // as if it were not there
      std::string name = std::move(a.name);
      a = *given;
      a.name = std::move(name);
    }
    attributes.push_back(std::move(a));
  }
  own.attributes = std::move(attributes);
  return own;
}

/// A tensor that gradients are asked of. One of one element may be a constant, of which equal ones
/// are the same: then it becomes a leaf of its own.
Value leaf_of(const Value& x) {
  if (x.kind() != Value::Kind::Tensor || !is_float(x.dtype()) || !(x.dims().product() == Dim(1)))
    return x;
  Tensor leaf = x.tensor().detach();
  leaf.requires_grad_();
  return Value(leaf, x.type());
}

/// A tensor without memory, or something that holds one.
bool is_lazy(const Value& x) {
  if (x.kind() > Value::Kind::Strings) return std::ranges::any_of(x.elements(), is_lazy);
  return x.kind() == Value::Kind::Tensor && !x.constant() && !x.tensor().cell()->realized();
}

/// One more of something, until it ends.
template <class T>
class Restored {
 public:
  Restored(T& place, T value) : place_(place), old_(place) { place_ = value; }
  ~Restored() { place_ = old_; }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  T& place_;
  T old_;
};

}  // namespace

Values Evaluator::run(const Graph& graph, const Values& inputs) {
  if (inputs.size() > graph.inputs.size())
    fail("onnx.input", "{} inputs are given and the graph {} has {}", inputs.size(),
         quoted_name(graph.name), graph.inputs.size());
  if (depth_ >= kDeepest)
    fail_runtime("onnx.depth", "more than {} graphs and functions inside one another", kDeepest);
  const auto plan = plans_.find(&graph);
  WEFT_CHECK(plan != plans_.end(), "a graph that is not of the model");
  Scope scope{scope_, scope_ ? scope_->call : nullptr, scope_ ? scope_->function : nullptr};
  for (const auto& [name, value] : plan->second->constants) scope.values[name] = value;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) scope.values[graph.inputs[i].name] = inputs[i];
  for (const std::string_view name : plan->second->differentiated)
    if (const auto x = scope.values.find(name); x != scope.values.end())
      x->second = leaf_of(x->second);
  const Restored<int> deeper(depth_, depth_ + 1);
  const bool other_constants = std::ranges::any_of(
      plan->second->defaulted, [&](size_t i) { return i < inputs.size() && inputs[i]; });
  const Restored<bool> keeping(keeps_, keeps_ && !other_constants);
  run_steps(*plan->second, scope);
  Values outputs;
  for (const DeclaredValue& v : graph.outputs) {
    const Value* value = scope.find(v.name);
    if (!value)
      fail("onnx.input", "the output {} is an input that is not given", quoted_name(v.name));
    outputs.push_back(*value);
  }
  return outputs;
}

void Evaluator::keep_lazy(bool keep) {
  if (!std::exchange(keeps_lazy_, keep) || keep) return;
  for (const auto& [owner, plan] : plans_)
    for (Step& step : plan->steps)
      if (step.kept && std::ranges::any_of(*step.kept, is_lazy)) step.kept.reset();
}

void Evaluator::replace_constants(const Graph& graph, const std::map<std::string, Value>& values) {
  Plan& plan = *plans_.at(&graph);
  for (auto& [name, value] : plan.constants)
    if (const auto at = values.find(std::string(name)); at != values.end()) value = at->second;
  plan.note_stable(values);
}

std::shared_ptr<const void>& Evaluator::kept(const void* type) {
  if (running_) return kept_[{running_, type}];
  kept_for_once_.reset();
  return kept_for_once_;
}

const Value* Evaluator::find(std::string_view name) const {
  return scope_ ? scope_->find(name) : nullptr;
}

void Evaluator::run_steps(Plan& plan, Scope& scope) {
  const Restored<Scope*> inside(scope_, &scope);
  for (Step& step : plan.steps) {
    Values outputs = run_step(step, scope);
    const Node& node = *step.linked.node;
    if (observer_) observer_(node, scope.all_of(node.inputs), outputs);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty()) scope.values[node.outputs[i]] = std::move(outputs[i]);
    for (const std::string_view name : step.inputs_last_used) scope.values.erase(name);
  }
}

namespace {

/// What is made of dequantised values is as rough as they are.
void note_rough(const NodeCall& call, Values& outputs) {
  for (size_t i = 0; i < call.inputs(); ++i)
    if (call.has(i) && call.input(i).is_rough())
      for (Value& y : outputs) y.note_rough();
}

}  // namespace

Values Evaluator::run_step(Step& step, const Scope& scope) {
  if (step.kept && keeps_) return *step.kept;
  const Node& written = *step.linked.node;
  try {
    std::optional<Node> own;
    if (step.refers) own = with_attributes(written, scope.call, scope.function);
    const Node& node = own ? *own : written;
    const Restored<const Node*> running(running_, own ? nullptr : &written);
    Values inputs = scope.all_of(node.inputs), outputs;
    if (step.linked.function) {
      outputs = run_function(step, node, std::move(inputs));
    } else {
      const NodeCall call(node, step.linked.opset, std::move(inputs), *this);
      std::optional<Values> found = folded(call);
      if (!found) found = moved_dequantised(call, *step.linked.op);
      outputs = found ? *std::move(found) : step.linked.op->run(call);
      note_rough(call, outputs);
    }
    for (size_t i = outputs.size(); i < node.outputs.size(); ++i)
      if (!node.outputs[i].empty())
        fail("onnx.node", "output {} is not one that this operator gives in opset {}", i,
             step.linked.opset);
    outputs.resize(node.outputs.size());
    if (step.stable && keeps_ && (keeps_lazy_ || std::ranges::none_of(outputs, is_lazy)))
      step.kept = outputs;
    return outputs;
  } catch (const InternalError&) {
    throw;
  } catch (const DeviceError& e) {
    e.rethrow_with("in the " + written.label());
  } catch (const Error& e) {
    throw Error(e.kind(), e.code(), written.label() + ": " + e.message(), e.where());
  }
}

Values Evaluator::run_function(const Step& step, const Node& call, Values inputs) {
  const Function& f = *step.linked.function;
  if (depth_ >= kDeepest)
    fail_runtime("onnx.depth", "more than {} graphs and functions inside one another", kDeepest);
  if (inputs.size() > f.inputs.size())
    fail("onnx.node", "{} inputs are given and the function {} has {}", inputs.size(),
         quoted_name(f.name), f.inputs.size());
  Scope scope{nullptr, &call, &f};
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) scope.values[f.inputs[i]] = std::move(inputs[i]);
  const Restored<int> deeper(depth_, depth_ + 1);
  run_steps(*plans_.at(&f), scope);
  return scope.all_of(f.outputs);
}

}  // namespace weft::onnx
