#include "weft/onnx/runner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/onnx/check_inputs.h"
#include "weft/onnx/evaluator.h"
#include "weft/onnx/leaves.h"
#include "weft/onnx/varying_sizes.h"
#include "weft/run/active_capture.h"
#include "weft/tensor/host_constants.h"
#include "weft/tensor/jit.h"

namespace weft::onnx {

namespace {

using Tensors = std::vector<Tensor>;

/// What one combination of element types and shapes does.
struct Captured {
  explicit Captured(const std::string& name) : jit(name, CallSite::here()) {}

  JitState jit;
  bool captures = true;  // false: runs node by node
  bool varies = false;   // its sizes are Variables of the runner's
  Values outputs;        // known ones; the others are results of the capture, of these types
  std::vector<ElementType> types;
  HostConstantsScope::Store constants;  // of the trace, for the capture
};

bool is_computed(const Value& x) { return x.kind() == Value::Kind::Tensor && !x.constant(); }

bool all_tensors(const Values& values) {
  return std::ranges::all_of(values, [](const Value& x) {
    return x.kind() == Value::Kind::Tensor || x.kind() == Value::Kind::None;
  });
}

void realize_all(const Values& values, Tensors& tensors) {
  for (const Value& v : values) {
    if (v.kind() == Value::Kind::Tensor && !v.constant()) tensors.push_back(v.tensor());
    if (v.kind() > Value::Kind::Strings) realize_all(v.elements(), tensors);
  }
}

Values realized(Values values) {
  Tensors tensors;
  realize_all(values, tensors);
  realize(tensors);
  return values;
}

/// Element types and shapes, symbolic sizes as such.
std::string key_of(const Values& inputs) {
  std::string key;
  for (const Value& v : inputs) {
    if (v.kind() != Value::Kind::Tensor) {
      key += "-;";
      continue;
    }
    key += name(v.type());
    for (const Dim& d : v.dims()) key += d.is_static() ? " " + d.text() : " ?";
    key += ';';
  }
  return key;
}

}  // namespace

struct OnnxRunner::State {
  explicit State(Model m) : model(std::move(m)), evaluator(model), sizes(model.graph) {}

  Values run(const Values& inputs);
  Values run_captured(const std::string& key, const Values& inputs, bool varies);
  std::optional<Values> run_for_any_size(const Values& inputs);
  Values first_run(Captured& c, Tensors& arguments, const Values& inputs);
  Values capture(Captured& c, Tensors& arguments, const Values& inputs);
  Values with_tensors(const Captured& c, const Tensors& results) const;

  Model model;
  Evaluator evaluator;
  VaryingSizes sizes;
  std::string any_size;  // the key of the capture with Variables
  std::map<std::string, std::unique_ptr<Captured>> captured;
  static constexpr size_t kMostCaptured = 32;
  size_t kernels = 0;
  std::vector<NamedTensor> leaves;  // of state_dict(), once it was asked for
};

Values OnnxRunner::State::run(const Values& inputs) {
  kernels = 0;
  if (std::ranges::any_of(leaves, [](const NamedTensor& t) { return t.tensor.requires_grad(); }))
    return evaluator.run(model.graph, inputs);
  if (!all_tensors(inputs)) return realized(evaluator.run(model.graph, inputs));
  const std::string key = key_of(inputs);
  // Somebody else's capture has to see whose memory it is.
  Context& context = Context::current();
  const bool may_vary = context.options().jit && !active_capture(context);
  if (may_vary && sizes.next(inputs) && !captured.contains(key))
    if (std::optional<Values> outputs = run_for_any_size(inputs)) return *std::move(outputs);
  return run_captured(key, inputs, false);
}

/// Nothing where the model has to know a size to be evaluated.
std::optional<Values> OnnxRunner::State::run_for_any_size(const Values& inputs) {
  try {
    const Values bound = sizes.bound(inputs);
    const std::string key = key_of(bound) + sizes.ranges();
    if (key != any_size) captured.erase(std::exchange(any_size, key));  // it reached less far
    return with_numbers(run_captured(key, bound, true));
  } catch (const Error&) {  // one of the inputs comes again with numbers
    captured.erase(any_size);
    sizes.give_up();
    return {};
  }
}

Values OnnxRunner::State::run_captured(const std::string& key, const Values& inputs, bool varies) {
  if (captured.size() > kMostCaptured) captured.clear();
  std::unique_ptr<Captured>& entry = captured[key];
  if (!entry) entry = std::make_unique<Captured>("the model " + quoted_name(model.graph.name));
  Captured& c = *entry;
  c.varies = varies;
  evaluator.keep_lazy(!c.captures);
  if (!c.captures) return realized(evaluator.run(model.graph, inputs));
  Tensors arguments;
  for (const Value& v : inputs)
    if (v) arguments.push_back(v.tensor());
  detail::visit("input", arguments, c.jit.arguments());
  switch (c.jit.begin()) {
    case JitState::Mode::Plain: return first_run(c, arguments, inputs);
    case JitState::Mode::Capture: return capture(c, arguments, inputs);
    case JitState::Mode::Replay: break;
  }
  Tensors results(c.types.size());
  detail::visit("output", results, c.jit.results());
  c.jit.replay();
  kernels = c.jit.kernels();
  return with_tensors(c, results);
}

/// Evaluated once without running anything, so that constants are there; and if nobody had to look
/// at data, once more to be captured.
Values OnnxRunner::State::first_run(Captured& c, Tensors& arguments, const Values& inputs) {
  Values traced;
  {
    const HostConstantsScope found(c.constants, HostConstantsScope::Mode::Record);
    evaluator.forget_reads();
    traced = evaluator.run(model.graph, inputs);
  }
  c.jit.abandon();
  c.captures = Context::current().options().jit && !evaluator.read_data() && all_tensors(traced);
  if (!c.captures && c.varies) fail("onnx.sizes", "the model looks at its data");
  if (!c.captures) return realized(std::move(traced));
  try {
    detail::visit("input", arguments, c.jit.arguments());
    if (c.jit.begin() == JitState::Mode::Capture) return capture(c, arguments, inputs);
  } catch (const Error& e) {
    if (e.tag() != "jit" || c.varies) throw;
    c.captures = false;  // it looks at data while it builds its graph
  }
  return realized(std::move(traced));
}

Values OnnxRunner::State::capture(Captured& c, Tensors& arguments, const Values& inputs) {
  try {
    Values own = inputs;  // begin() may have given the arguments other memory
    size_t next = 0;
    for (Value& v : own)
      if (v) v = Value(arguments[next++], v.type());
    const HostConstantsScope found(c.constants, HostConstantsScope::Mode::Find);
    c.outputs = evaluator.run(model.graph, own);
    Tensors results;
    c.types.clear();
    for (Value& v : c.outputs) {
      if (!is_computed(v)) continue;
      results.push_back(v.tensor());
      c.types.push_back(v.type());
      v = Value();
    }
    detail::visit("output", results, c.jit.results());
    c.jit.finish();
    kernels = c.jit.kernels();
    return with_tensors(c, results);
  } catch (...) {
    c.jit.abandon();
    throw;
  }
}

Values OnnxRunner::State::with_tensors(const Captured& c, const Tensors& results) const {
  Values all = c.outputs;
  size_t next = 0;
  for (Value& v : all)
    if (!v) {
      v = Value(results[next], c.types[next]);
      ++next;
    }
  return all;
}

OnnxRunner::OnnxRunner(const std::string& path) : OnnxRunner(read_onnx(path)) {}
OnnxRunner::OnnxRunner(Model model) : state_(std::make_unique<State>(std::move(model))) {}
OnnxRunner::~OnnxRunner() = default;
OnnxRunner::OnnxRunner(OnnxRunner&&) noexcept = default;
OnnxRunner& OnnxRunner::operator=(OnnxRunner&&) noexcept = default;

std::vector<NamedTensor> OnnxRunner::state_dict() {
  State& s = *state_;
  if (!s.leaves.empty()) return s.leaves;
  s.leaves = leaves_of(s.model.graph);
  std::map<std::string, Value> values;
  for (const NamedTensor& t : s.leaves) values.emplace(t.name, Value(t.tensor));
  s.evaluator.replace_constants(s.model.graph, values);
  s.captured.clear();
  return s.leaves;
}

std::vector<Tensor> OnnxRunner::parameters() {
  std::vector<Tensor> trained;
  for (const NamedTensor& t : state_dict()) {
    if (!is_trained(state_->model.graph, t)) continue;
    trained.push_back(t.tensor);
    trained.back().requires_grad_();
  }
  return trained;
}

Model OnnxRunner::trained() const {
  Model model = state_->model;
  for (const NamedTensor& t : state_->leaves)
    for (ConstantData& data : model.graph.initialisers)
      if (data.name == t.name) data.array = host_array_of(t.tensor);
  return model;
}

const Model& OnnxRunner::model() const { return state_->model; }
size_t OnnxRunner::kernels() const { return state_->kernels; }

std::vector<DeclaredValue> OnnxRunner::inputs() const {
  std::vector<DeclaredValue> needed;
  for (const DeclaredValue& v : model().graph.inputs)
    if (!has_initialiser(model().graph, v.name)) needed.push_back(v);
  return needed;
}

const std::vector<DeclaredValue>& OnnxRunner::outputs() const { return model().graph.outputs; }

NamedValues OnnxRunner::operator()(const NamedValues& inputs) {
  const Values outputs = state_->run(checked_inputs(model().graph, inputs));
  NamedValues named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.insert_or_assign(model().graph.outputs[i].name, outputs[i]);
  return named;
}

namespace {

Value empty_value(const DeclaredType& type, const std::map<std::string, int64_t>& sizes) {
  using Kind = DeclaredType::Kind;
  if (type.kind == Kind::Sequence) return Value::sequence({});
  if (type.kind == Kind::Optional) return Value::optional({});
  std::vector<int64_t> shape;
  if (type.shape)
    for (const DeclaredDim& d : *type.shape) {
      const auto named = sizes.find(d.name);
      const int64_t open = named == sizes.end() || d.name.empty() ? 1 : named->second;
      shape.push_back(d.size.value_or(open));
    }
  if (type.element == ElementType::String) {
    const auto count = static_cast<size_t>(checked_numel(shape).value_or(0));
    return Value::strings(std::vector<std::string>(count), shape);
  }
  const DType dtype = dtype_of(type.element);
  if (dtype == DType::Void)
    fail_type("onnx.type", "an input of {} cannot be made", name(type.element));
  return {Tensor::zeros(shape, dtype), type.element};
}

}  // namespace

NamedValues OnnxRunner::empty_inputs(const std::map<std::string, int64_t>& sizes) const {
  NamedValues all;
  for (const DeclaredValue& v : inputs()) all.emplace(v.name, empty_value(v.type, sizes));
  return all;
}

}  // namespace weft::onnx
