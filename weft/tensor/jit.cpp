#include "weft/tensor/jit.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/run/realize.h"
#include "weft/run/replay.h"
#include "weft/tensor/access.h"
#include "weft/tensor/random.h"

namespace weft {

std::string detail::constant_text(double x) { return fmt::format("{}", x); }

namespace {

struct FoundTensor {
  std::string name;
  Tensor* tensor;
};

/// Lists what a visit finds.
class Collector final : public TensorVisitor {
 public:
  void tensor(const std::string& name, Tensor& x) override { tensors.push_back({name, &x}); }
  void size(const std::string& name, const Dim& x) override {
    if (x.is_static()) return constant(name, x.text());
    add_values(x.node());
  }
  void constant(const std::string& name, std::string text) override {
    constants.emplace_back(name, std::move(text));
  }
  void clear() {
    tensors.clear();
    constants.clear();
    variables.clear();
  }
  /// The bound variables under `n`.
  void add_values(NodeRef n) {
    for (NodeRef x : Toposort(n)) {
      if (x->op != Op::Bind) continue;
      const ReplayVariable v{x->src(0), x->src(1)->vmin};
      for (const ReplayVariable& other : variables)
        if (other.variable == v.variable && other.value != v.value)
          fail("jit.variable", "the arguments bind {} to {} and to {}: one call has one value",
               v.variable->text(), other.value, v.value);
      variables.push_back(v);
    }
  }

  std::vector<FoundTensor> tensors;
  std::vector<std::pair<std::string, std::string>> constants;
  std::vector<ReplayVariable> variables;
};

/// How an argument looked when captured.
struct Seen {
  std::string name;
  RootedNode chain;  // null: the whole storage
};

}  // namespace

struct JitState::State {
  std::string name;
  CallSite at;
  Collector arguments, results;
  Context* context = nullptr;
  int calls = 0;
  std::vector<Seen> seen;
  std::vector<std::pair<std::string, std::string>> constants;
  std::unique_ptr<CaptureScope> capture;
  std::unique_ptr<Replay> replay;
  std::optional<CapturedFunction> loaded;  // what is called, in place of a function

  std::vector<ReplayArgument> storages() const {
    std::vector<ReplayArgument> list;
    for (const FoundTensor& t : arguments.tensors)
      list.push_back({t.name, TensorAccess::shared(*t.tensor)});
    return list;
  }
  std::vector<ReplayVariable> distinct_variables() const {
    std::vector<ReplayVariable> list;
    for (const ReplayVariable& v : arguments.variables) {
      bool known = false;
      for (const ReplayVariable& k : list) known |= k.variable == v.variable;
      if (!known) list.push_back(v);
    }
    return list;
  }
  RootedNode view_of(const Tensor& t) const {
    NodeRef chain = TensorAccess::chain_or_null(TensorAccess::attached(t));
    return chain ? RootedNode(without_values(tensor_graph(*context), chain)) : RootedNode();
  }
  void find_context();
  void check_same() const;
};

void JitState::State::find_context() {
  context =
      arguments.tensors.empty() ? &Context::current() : &arguments.tensors[0].tensor->context();
  const Graph::Building building(tensor_graph(*context));
  for (const FoundTensor& t : arguments.tensors) {
    if (&t.tensor->context() != context)
      fail("jit.context", "{} is of another Context than the first argument", t.name);
    for (const Dim& d : t.tensor->dims())
      if (!d.is_static()) arguments.add_values(d.node());
    // Where a view begins may depend on a Variable that its sizes do not show.
    if (NodeRef chain = TensorAccess::chain_or_null(*t.tensor)) arguments.add_values(chain);
  }
}

void JitState::State::check_same() const {
  for (size_t i = 0; i < constants.size() || i < arguments.constants.size(); ++i) {
    const bool both = i < constants.size() && i < arguments.constants.size();
    if (!both || constants[i].first != arguments.constants[i].first)
      fail("jit.structure", "{} is called with arguments of another structure than when captured",
           name);
    if (constants[i].second != arguments.constants[i].second)
      fail("jit.constant",
           "{} was {} when {} was captured and is now {}: numbers are part of a capture; pass what "
           "changes as a Tensor or a bound Variable, or reset() the function",
           constants[i].first, constants[i].second, name, arguments.constants[i].second);
  }
  if (seen.size() != arguments.tensors.size())
    fail("jit.structure", "{} is called with {} tensors and was captured with {}", name,
         arguments.tensors.size(), seen.size());
  // By place, as other languages have other names for them; but known names stay where they were.
  for (size_t i = 0; i < seen.size(); ++i) {
    const std::string& now = arguments.tensors[i].name;
    if (now != seen[i].name && std::ranges::find(seen, now, &Seen::name) != seen.end())
      fail("jit.structure", "{} stands where {} was when {} was captured; keep their order", now,
           seen[i].name, name);
  }
  const Graph::Building building(tensor_graph(*context));
  for (size_t i = 0; i < seen.size(); ++i)
    if (view_of(*arguments.tensors[i].tensor).get() != seen[i].chain.get())
      fail("jit.view",
           "{} is another view of its storage than when {} was captured: pass contiguous() tensors",
           seen[i].name, name);
}

JitState::JitState(std::string name, CallSite at) : state_(new State) {
  state_->name = std::move(name);
  state_->at = at;
}
JitState::~JitState() { delete state_; }
JitState::JitState(JitState&& b) noexcept : state_(std::exchange(b.state_, nullptr)) {}
JitState& JitState::operator=(JitState&& b) noexcept {
  std::swap(state_, b.state_);
  return *this;
}

TensorVisitor& JitState::arguments() {
  state_->arguments.clear();
  return state_->arguments;
}

TensorVisitor& JitState::results() {
  state_->results.clear();
  return state_->results;
}

JitState::Mode JitState::begin() {
  State& s = *state_;
  const CallSiteScope site(s.at);
  s.find_context();
  const bool plain = !s.context->options().jit || s.context->options().check_nan;
  if (s.loaded || (s.replay && !plain)) s.check_same();
  if (plain) return Mode::Plain;
  if (s.replay) return Mode::Replay;
  if (s.calls++ == 0 && !s.loaded) return Mode::Plain;
  // State that the function may read: what was written, and the random counter.
  std::vector<std::shared_ptr<Storage>> state = s.context->get<PendingWrites>().take();
  Generator::settle(*s.context, state);
  realize(*s.context, state);
  s.capture = std::make_unique<CaptureScope>(*s.context, s.storages(), s.distinct_variables());
  if (s.loaded) return Mode::Capture;
  s.constants = s.arguments.constants;
  s.seen.clear();
  const Graph::Building building(tensor_graph(*s.context));
  for (const FoundTensor& t : s.arguments.tensors) s.seen.push_back({t.name, s.view_of(*t.tensor)});
  return Mode::Capture;
}

void JitState::finish() {
  State& s = *state_;
  const CallSiteScope site(s.at);
  std::vector<Tensor> tensors;
  std::vector<std::shared_ptr<Storage>> storages;
  for (const FoundTensor& t : s.results.tensors) {
    // A result is its elements, not a window on something else.
    if (t.tensor->is_view()) {
      const OpScope scope(*t.tensor, CallSite::here());
      *t.tensor = scope.result(t.tensor->node());
    }
    tensors.push_back(*t.tensor);
    storages.push_back(TensorAccess::shared(*t.tensor));
  }
  if (!s.capture) return realize(tensors);
  if (!s.results.constants.empty())
    fail("jit.result",
         "{} of {} is a number, which a replay would not compute again: return Tensors only",
         s.results.constants[0].first, s.name);
  s.replay = s.capture->finish(storages);
  s.capture.reset();
}

void JitState::abandon() noexcept { state_->capture.reset(); }

void JitState::replay() {
  State& s = *state_;
  const CallSiteScope site(s.at);
  size_t next = 0;
  s.replay->run(s.storages(), s.distinct_variables(),
                [&](NodeRef node, const std::shared_ptr<Storage>& itself) {
                  const auto cell = std::dynamic_pointer_cast<TensorCell>(itself);
                  Tensor& out = *s.results.tensors[next++].tensor;
                  out = cell ? TensorAccess::whole(cell) : TensorAccess::make(*s.context, node);
                });
}

CapturedFunction JitState::captured() const {
  const State& s = *state_;
  if (!s.replay && s.loaded) return *s.loaded;
  if (!s.replay)
    fail("jit.captured", "{} has not been captured yet: its second call is, unless WEFT_JIT=0",
         s.name);
  CapturedFunction f = CapturedFunction::of(*s.replay);
  f.name = s.name;
  f.constants = s.constants;
  for (size_t i = 0; i < s.seen.size(); ++i) f.places[i].view = s.seen[i].chain;
  return f;
}

void JitState::load(CapturedFunction f) {
  State& s = *state_;
  reset();
  s.name = f.name;
  s.constants = f.constants;
  s.seen.clear();
  for (size_t i = 0; i < f.arguments; ++i) s.seen.push_back({f.places[i].name, f.places[i].view});
  s.loaded = std::move(f);
}

void JitState::call_loaded() {
  State& s = *state_;
  if (begin() == Mode::Replay) return replay();
  try {
    std::vector<Tensor> given;
    for (const FoundTensor& t : s.arguments.tensors) given.push_back(*t.tensor);
    const std::vector<Tensor> made = s.loaded->run(given, s.distinct_variables());
    if (made.size() != s.results.tensors.size())
      fail("function.damaged", "{} gives {} tensors, and its result has place for {}", s.name,
           made.size(), s.results.tensors.size());
    for (size_t i = 0; i < made.size(); ++i) *s.results.tensors[i].tensor = made[i];
    finish();
  } catch (...) {
    abandon();
    throw;
  }
}

LoadedFunction::LoadedFunction(CapturedFunction f, CallSite at)
    : state_(f.name, at), results_(f.results.size()) {
  state_.load(std::move(f));
}

std::vector<Tensor> LoadedFunction::call() {
  std::vector<Tensor> out(results_);
  detail::visit("result", out, state_.results());
  state_.call_loaded();
  return out;
}

size_t JitState::kernels() const { return state_->replay ? state_->replay->kernels() : 0; }
bool JitState::writes() const { return state_->replay && state_->replay->writes(); }

void JitState::reset() {
  state_->replay.reset();
  state_->calls = 0;
}

void JitState::reset_after_fork() {
  State* fresh = new State;  // the old one stays: nothing in it can be trusted to be whole
  fresh->name = state_->name;
  fresh->at = state_->at;
  state_ = fresh;
}

}  // namespace weft
