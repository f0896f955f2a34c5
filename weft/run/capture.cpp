#include <algorithm>
#include <thread>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/fork.h"
#include "weft/run/active_capture.h"
#include "weft/run/realize.h"
#include "weft/run/replay_plan.h"
#include "weft/run/replay_state.h"
#include "weft/run/run_state.h"
#include "weft/run/state_watch.h"

namespace weft {
namespace {

/// A slot of the Context: its capture in progress. A child goes on with that of the thread it has.
struct CaptureSlot final : ForkLock {
  void before_fork() override {}
  bool try_before_fork() override { return true; }
  void after_in_parent() override {}
  void after_in_child() override {
    if (thread.load() != std::this_thread::get_id()) listener = nullptr;
  }

  std::atomic<CaptureListener*> listener{nullptr};
  std::atomic<std::thread::id> thread;
  Registration registration{*this, Order::Run};
};

}  // namespace

StorageListener* storage_listener(Context& context) {
  if (CaptureListener* capture = active_capture(context)) return capture;
  return RehearsalScope::active(context);
}

CaptureListener* active_capture(Context& context) {
  const CaptureSlot* slot = context.get_if<CaptureSlot>();
  if (!slot) return nullptr;
  CaptureListener* listener = slot->listener.load(std::memory_order_acquire);
  return listener && slot->thread.load() == std::this_thread::get_id() ? listener : nullptr;
}

struct CaptureScope::State final : CaptureListener {
  State(Context& c, std::span<const ReplayArgument> arguments,
        std::span<const ReplayVariable> variables)
      : context(c), slot(c.get<CaptureSlot>()) {
    recording.arguments.assign(arguments.begin(), arguments.end());
    for (const ReplayVariable& v : variables) {
      if (contains(recording.variables, v))
        fail("jit.variable", "variable {} is given twice with the value {}; give it once",
             v.variable->text(), v.value);
      add(recording.variables, v);
    }
  }
  ~State() {
    stop();
    for (const auto* variables : {&recording.variables, &recording.own})
      for (const ReplayVariable& v : *variables)
        v.variable->roots.fetch_sub(1, std::memory_order_release);
    for (const auto& [id, form] : recording.forms)
      form->roots.fetch_sub(1, std::memory_order_release);
  }

  void start() {
    realize_arguments();
    // That of another thread ends first.
    for (CaptureListener* other = nullptr; !slot.listener.compare_exchange_strong(other, this);
         other = nullptr) {
      const IdleScope idle;
      slot.listener.wait(other);
    }
    listening = true;
    watched_state.begin(context.get<BufferTable>().holders(), argument_ids);
    for (const auto& [id, holders] : watched_state.holders())
      if (holders.size() > 1) watch_shared(holders, true);
    slot.thread.store(std::this_thread::get_id());
  }
  void stop() {
    if (!listening) return;
    listening = false;
    for (const auto& [id, holders] : watched_state.holders())
      if (holders.size() > 1) watch_shared(holders, false);
    slot.thread.store(std::thread::id());
    slot.listener.store(nullptr, std::memory_order_release);
    slot.listener.notify_all();
  }
  using Sharers = std::vector<std::weak_ptr<Storage>>;
  static void watch_shared(const Sharers& sharers, bool on) {
    for (const auto& weak : sharers)
      if (const std::shared_ptr<Storage> s = weak.lock()) StorageAccess::watch(*s, on);
  }
  /// Of storages that share memory those that the function looked at, if it did at any: what
  /// becomes of the others is nothing to it.
  StateWatch::Holders meant_holders() const {
    StateWatch::Holders all = watched_state.holders();
    const auto unread = [&](const std::weak_ptr<Storage>& s) {
      return !read.contains(s.lock().get());
    };
    for (auto& [id, sharers] : all)
      if (!std::ranges::all_of(sharers, unread)) std::erase_if(sharers, unread);
    return all;
  }
  [[noreturn]] static void refuse_nesting() {
    fail("jit.nested",
         "a captured function is called while another one is being captured; call the "
         "plain function inside");
  }

  /// Arguments have memory of their own: what is equal to another tensor gets a copy, so that which
  /// one the function reads is never in doubt.
  void realize_arguments() {
    std::vector<std::shared_ptr<Storage>> storages;
    for (const ReplayArgument& a : recording.arguments) storages.push_back(a.storage);
    check_distinct(recording.arguments);
    realize(context, storages);
    const auto holders = context.get<BufferTable>().holders();
    for (const auto& s : storages) {
      const auto at = holders.find(buffer_id(s->value()));
      if (at != holders.end() && at->second.size() > 1) give_own_memory(context, *s);
      argument_ids.push_back(buffer_id(s->value()));
      note_form(s->value());
    }
  }

  void note_form(NodeRef buffer) {
    Graph& g = tensor_graph(context);
    const Graph::Building building(g);
    NodeRef& form = recording.forms[buffer_id(buffer)];
    if (form) return;
    form = g.param(0, buffer->dtype, buffer->shape->span(), buffer->device);
    form->roots.fetch_add(1, std::memory_order_relaxed);
  }

  static void add(std::vector<ReplayVariable>& to, ReplayVariable v) {
    v.variable->roots.fetch_add(1, std::memory_order_relaxed);
    to.push_back(v);
  }

  // ---- CaptureListener
  void created(Storage& s) override { watched_state.created(s); }
  void destroyed(Storage& s) noexcept override {
    watched_state.destroyed(s);
    read.erase(&s);
  }
  void written(Storage& s) override { watched_state.written(s); }
  bool stays(int64_t id) const override { return watched_state.stays(id); }
  void read_lazy(const Storage& s, NodeRef value) override {
    if (watched_state.is_new(s) || contains(watch, value)) return;
    watch.push_back(value);
    watched_storages.push_back(
        {const_cast<Storage&>(s).weak_from_this(), StorageAccess::writes(s), value->key});
  }
  void read_shared(const Storage& s) override { read.insert(&s); }
  std::span<const NodeRef> watched() const override { return watch; }
  void host_data(int64_t id, std::string_view label) override { recording.host_data[id] = label; }
  void bound(NodeRef variable, int64_t value) override {
    const ReplayVariable v{variable, value};
    if (!contains(recording.own, v)) add(recording.own, v);
  }
  void host_read(const Storage& s) override {
    fail("jit.host_read",
         "{} is read on the host inside a captured function, which a replay would "
         "not do again; return the tensor and read it outside",
         s.label());
  }
  void ran(RecordedRun run) override {
    for (NodeRef seen : run.seen) note_lazy(seen);
    for (NodeRef input : run.inputs) note_form(input);
    run.inputs.clear();
    recording.runs.push_back(std::move(run));
  }

  /// A tensor that had no memory was computed into the recording. A constant stays one until it is
  /// written; anything else was computed from what may change.
  void note_lazy(NodeRef value) {
    const auto at = std::find(watch.begin(), watch.end(), value);
    const Watched& w = watched_storages[static_cast<size_t>(at - watch.begin())];
    const std::shared_ptr<Storage> s = w.storage.lock();
    if (!s || w.key != value->key) return;
    if (value->device != 0)
      fail("jit.lazy",
           "{} is read inside a captured function but was not computed before; call its "
           "realize() first",
           s->label());
    recording.frozen.push_back({s, w.writes, s->label()});
  }

  struct Watched {
    std::weak_ptr<Storage> storage;
    uint64_t writes, key;
  };

  Context& context;
  CaptureSlot& slot;
  Recording recording;
  std::vector<int64_t> argument_ids;
  StateWatch watched_state;
  std::vector<NodeRef> watch;
  std::vector<Watched> watched_storages;
  std::unordered_set<const Storage*> read;  // of those that share memory
  bool listening = false;
};

CaptureScope::CaptureScope(Context& context, std::span<const ReplayArgument> arguments,
                           std::span<const ReplayVariable> variables)
    : state_(std::make_unique<State>(context, arguments, variables)) {
  if (active_capture(context)) State::refuse_nesting();
  state_->start();
}

CaptureScope::~CaptureScope() = default;

namespace {

// What caches hold of a program that is worth more than finding it again.
constexpr size_t kLargeProgram = size_t{1} << 20;

/// A replay has what it needs of its programs, and nobody else is likely to ask for them: where
/// they are large, the caches let go of them. Their kernels stay.
void forget_programs(RunState& run, std::span<const RecordedRun> runs) {
  bool any = false;
  run.schedules.erase_if([&](const CacheKey& key, const auto& prepared, size_t bytes) {
    const bool ran =
        std::ranges::find(runs, prepared->schedule, &RecordedRun::schedule) != runs.end();
    if (bytes < kLargeProgram || !ran) return false;
    run.known.forms.forget(key.root);
    return any = true;
  });
  if (any) run.sweep();
}

}  // namespace

std::unique_ptr<Replay> CaptureScope::finish(std::span<const std::shared_ptr<Storage>> results) {
  Recording& r = state_->recording;
  RunState& run = state_->context.get<RunState>();
  const std::lock_guard lock(run.mutex);
  RecordedRunScope recorded(run.recorder.get(), RunKind::Capture);
  r.results.assign(results.begin(), results.end());
  r.written = state_->watched_state.changed();
  std::vector<std::shared_ptr<Storage>> all = r.results;
  all.insert(all.end(), r.written.begin(), r.written.end());
  realize(state_->context, all);
  for (Storage* s : state_->watched_state.born()) {
    std::shared_ptr<Storage> alive = s->weak_from_this().lock();
    if (alive && std::find(r.results.begin(), r.results.end(), alive) == r.results.end())
      r.leftovers.push_back(std::move(alive));
  }
  r.holders = state_->meant_holders();
  r.argument_ids = state_->argument_ids;
  state_->stop();
  auto replay = std::make_unique<Replay::State>(plan_replay(state_->context, r));
  recorded.executes(replay->each_call().schedule);
  forget_programs(run, r.runs);
  return std::unique_ptr<Replay>(new Replay(std::move(replay)));
}

}  // namespace weft
