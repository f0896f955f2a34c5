#include "weft/tensor/jit.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/run/realize.h"
#include "weft/run/replay.h"
#include "weft/run/state_watch.h"
#include "weft/tensor/access.h"
#include "weft/tensor/argument_sizes.h"
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
    sizes.emplace_back(name, RootedNode(x.node()));
  }
  void constant(const std::string& name, std::string text) override {
    constants.emplace_back(name, std::move(text));
  }
  void clear() {
    tensors.clear();
    constants.clear();
    sizes.clear();
  }

  std::vector<FoundTensor> tensors;
  std::vector<std::pair<std::string, std::string>> constants;
  std::vector<std::pair<std::string, RootedNode>> sizes;
};

/// How an argument looked when captured.
struct Seen {
  std::string name;
  RootedNode chain;  // without values; null: the whole storage
};

/// A capture is of sizes that are as different as they were in its call: it serves calls where they
/// are alike, or where fewer differ.
struct Capture {
  ArgumentSizes sizes;
  std::unique_ptr<Replay> replay;
};

}  // namespace

struct JitState::State {
  std::string name;
  CallSite at;
  Collector arguments, results;
  Context* context = nullptr;
  ArgumentSizes call;   // of the one in progress
  int plain_calls = 0;  // since the last capture
  bool at_once = false;
  std::vector<Seen> seen;
  std::vector<std::pair<std::string, std::string>> constants;
  std::vector<std::pair<std::string, RootedNode>> sizes;  // without values
  std::vector<std::string> result_names;
  std::unique_ptr<RehearsalScope> rehearsal;  // of a plain call that another one follows
  std::unique_ptr<CaptureScope> capture;
  std::vector<Capture> captures;  // none of them serves for another
  const Capture* serving = nullptr;
  ArgumentSizes::Variables values;         // of the serving one in this call
  std::optional<CapturedFunction> loaded;  // what is called, in place of a function

  std::vector<ReplayArgument> storages() const {
    std::vector<ReplayArgument> list;
    for (const FoundTensor& t : arguments.tensors)
      list.push_back({t.name, TensorAccess::shared(*t.tensor)});
    return list;
  }
  std::vector<std::shared_ptr<Storage>> argument_storages() const {
    std::vector<std::shared_ptr<Storage>> list;
    for (const FoundTensor& t : arguments.tensors) list.push_back(TensorAccess::shared(*t.tensor));
    return list;
  }
  RootedNode view_of(const Tensor& t) const {
    NodeRef chain = TensorAccess::chain_or_null(TensorAccess::attached(t));
    return chain ? RootedNode(without_values(tensor_graph(*context), chain)) : RootedNode();
  }
  void find_context();
  void find_sizes();
  void check_same() const;
  void check_sizes() const;
  bool find_capture();
  ArgumentSizes::Variables values_for_loaded() const;
  void note_arguments();
  void keep_capture(std::unique_ptr<Replay> replay);
};

void JitState::State::find_context() {
  context =
      arguments.tensors.empty() ? &Context::current() : &arguments.tensors[0].tensor->context();
  for (const FoundTensor& t : arguments.tensors)
    if (&t.tensor->context() != context)
      fail("jit.context", "{} is of another Context than the first argument", t.name);
}

/// Where a view begins may depend on a Variable that its sizes do not show.
void JitState::State::find_sizes() {
  Graph& g = tensor_graph(*context);
  const Graph::Building building(g);
  call.clear();
  for (const auto& argument : arguments.sizes) call.add(argument.second.get());
  for (const FoundTensor& t : arguments.tensors) {
    const Tensor x = TensorAccess::attached(*t.tensor);
    call.add(x.is_view() || !is_static(x.node()) ? TensorAccess::chain(g, x) : nullptr);
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
  check_sizes();
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

void JitState::State::check_sizes() const {
  if (sizes.size() != arguments.sizes.size())
    fail("jit.structure", "{} sizes are given, {} were when {} was captured",
         arguments.sizes.size(), sizes.size(), name);
  Graph& g = tensor_graph(*context);
  const Graph::Building building(g);
  for (size_t i = 0; i < sizes.size(); ++i) {
    NodeRef was = sizes[i].second.get();
    NodeRef now = without_values(g, arguments.sizes[i].second.get());
    if (was != now)
      fail("jit.variable", "{} was {} when {} was captured and is now {}: keep the expression",
           sizes[i].first, Dim(was).text(), name, Dim(now).text());
  }
}

/// Whether a capture serves for the call in progress.
bool JitState::State::find_capture() {
  Graph& g = tensor_graph(*context);
  const Graph::Building building(g);
  serving = nullptr;
  for (const Capture& c : captures)
    if (auto found = c.sizes.in(g, call)) {
      serving = &c;
      values = std::move(*found);
      return true;
    }
  return false;
}

ArgumentSizes::Variables JitState::State::values_for_loaded() const {
  Graph& g = tensor_graph(*context);
  const Graph::Building building(g);
  const ArgumentSizes captured = loaded->argument_sizes(g);
  if (auto found = captured.in(g, call)) return *std::move(found);
  const auto text = [](const ArgumentSizes& of) {
    std::string all;
    for (const ReplayVariable& v : of.variables())
      all += strformat("{}{} = {}", all.empty() ? "" : ", ", v.variable->text(), v.value);
    return all;
  };
  fail("jit.variable",
       "{} is called with the sizes {} and was captured with {}: what was one size there must be "
       "one; save what was captured with different ones",
       name, text(call), text(captured));
}

void JitState::State::note_arguments() {
  Graph& g = tensor_graph(*context);
  const Graph::Building building(g);
  constants = arguments.constants;
  seen.clear();
  for (const FoundTensor& t : arguments.tensors) seen.push_back({t.name, view_of(*t.tensor)});
  sizes.clear();
  for (const auto& [argument, size] : arguments.sizes)
    sizes.emplace_back(argument, RootedNode(without_values(g, size.get())));
}

/// In the place of those that it can do without.
void JitState::State::keep_capture(std::unique_ptr<Replay> replay) {
  Graph& g = tensor_graph(*context);
  const Graph::Building building(g);
  std::erase_if(captures, [&](const Capture& c) { return call.in(g, c.sizes).has_value(); });
  captures.push_back({call, std::move(replay)});
  plain_calls = 0;
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
  s.find_sizes();
  const bool plain = !s.context->options().jit || s.context->options().check_nan;
  if (s.loaded || (!s.captures.empty() && !plain)) s.check_same();
  if (plain) return Mode::Plain;
  if (s.find_capture()) return Mode::Replay;
  // State that the function may read: what was written, and the random counter.
  std::vector<std::shared_ptr<Storage>> state = s.context->get<PendingWrites>().take();
  Generator::settle(*s.context, state);
  realize(*s.context, state);
  if (s.plain_calls++ == 0 && !s.loaded && !s.at_once) {
    s.rehearsal = std::make_unique<RehearsalScope>(*s.context, s.argument_storages());
    return Mode::Plain;
  }
  s.capture = std::make_unique<CaptureScope>(*s.context, s.storages(), s.call.variables());
  if (!s.loaded) s.note_arguments();
  return Mode::Capture;
}

bool JitState::may_capture() const {
  return state_->plain_calls > 0 || state_->at_once || state_->captures.empty();
}

void JitState::capture_at_once() { state_->at_once = true; }

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
  if (s.rehearsal) {
    s.rehearsal->finish(storages);
    s.rehearsal.reset();
    return;
  }
  if (!s.capture) return realize(tensors);
  if (!s.results.constants.empty())
    fail("jit.result",
         "{} of {} is a number, which a replay would not compute again: return Tensors only",
         s.results.constants[0].first, s.name);
  std::vector<std::string> names;
  for (const FoundTensor& t : s.results.tensors) names.push_back(t.name);
  if (!s.captures.empty() && names != s.result_names)
    fail("jit.structure",
         "{} returned tensors in another structure than when it was captured with other sizes",
         s.name);
  s.result_names = std::move(names);
  s.keep_capture(s.capture->finish(storages));
  s.capture.reset();
}

void JitState::abandon() noexcept {
  state_->rehearsal.reset();
  state_->capture.reset();
}

void JitState::replay() {
  State& s = *state_;
  const CallSiteScope site(s.at);
  size_t next = 0;
  s.serving->replay->run(
      s.storages(), s.values, [&](NodeRef node, const std::shared_ptr<Storage>& itself) {
        const auto cell = std::dynamic_pointer_cast<TensorCell>(itself);
        Tensor& out = *s.results.tensors[next++].tensor;
        out = cell ? TensorAccess::whole(cell) : TensorAccess::make(*s.context, node);
      });
}

CapturedFunction JitState::captured() const {
  const State& s = *state_;
  if (s.loaded) return *s.loaded;
  if (s.captures.empty())
    fail("jit.captured", "{} has not been captured yet: its second call is, unless WEFT_JIT=0",
         s.name);
  // The one with the most sizes serves for the most calls.
  const Capture& most = *std::ranges::max_element(
      s.captures, {}, [](const Capture& c) { return c.sizes.variables().size(); });
  CapturedFunction f = CapturedFunction::of(*most.replay);
  f.name = s.name;
  f.constants = s.constants;
  for (size_t i = 0; i < s.sizes.size(); ++i) f.sizes.emplace_back(s.sizes[i].first, most.sizes[i]);
  for (size_t i = 0; i < s.seen.size(); ++i)
    if (s.seen[i].chain) f.places[i].view = most.sizes[s.sizes.size() + i];
  return f;
}

void JitState::load(CapturedFunction f) {
  State& s = *state_;
  reset();
  s.name = f.name;
  s.constants = f.constants;
  s.seen.clear();
  s.sizes.clear();
  Graph& g = tensor_graph(Context::current());
  const Graph::Building building(g);
  const auto bare = [&g](const RootedNode& n) {
    return n ? RootedNode(without_values(g, n.get())) : RootedNode();
  };
  for (size_t i = 0; i < f.arguments; ++i)
    s.seen.push_back({f.places[i].name, bare(f.places[i].view)});
  for (const auto& [name, size] : f.sizes) s.sizes.emplace_back(name, bare(size));
  s.loaded = std::move(f);
}

void JitState::call_loaded() {
  State& s = *state_;
  if (begin() == Mode::Replay) return replay();
  try {
    std::vector<Tensor> given;
    for (const FoundTensor& t : s.arguments.tensors) given.push_back(*t.tensor);
    const std::vector<Tensor> made = s.loaded->run(given, s.values_for_loaded());
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

size_t JitState::kernels() const {
  return state_->captures.empty() ? 0 : state_->captures.back().replay->kernels();
}
int64_t JitState::kept_bytes() const {
  int64_t sum = 0;
  for (const Capture& c : state_->captures) sum += c.replay->kept_bytes();
  return sum;
}
int64_t JitState::planned_bytes() const {
  return state_->captures.empty() ? 0 : state_->captures.back().replay->planned_bytes();
}
bool JitState::writes() const {
  return !state_->captures.empty() && state_->captures.back().replay->writes();
}

void JitState::reset() {
  state_->captures.clear();
  state_->plain_calls = 0;
}

void JitState::reset_after_fork() {
  State* fresh = new State;  // the old one stays: nothing in it can be trusted to be whole
  fresh->name = state_->name;
  fresh->at = state_->at;
  fresh->at_once = state_->at_once;
  state_ = fresh;
}

}  // namespace weft
