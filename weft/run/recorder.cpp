#include "weft/run/recorder.h"

#include <time.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/fork.h"
#include "weft/base/hash.h"
#include "weft/base/process.h"
#include "weft/graph/provenance.h"
#include "weft/run/state_writer.h"
#include "weft/run/stream_writer.h"

namespace weft {
namespace {

using recording::Kind;

// Spans are written at least so often: a program that is killed leaves all but the last.
constexpr uint64_t kFlushNs = 100'000'000;

constexpr const char* kCounterNames[] = {
#define X(id, name, doc) name,
#include "weft/base/counters.def"
#undef X
};

/// <state directory>/viz/20261126-120000-4711.weftviz
std::string default_path(const Options& options) {
  const std::string state = options.state_directory();
  if (state.empty())
    fail("viz.place",
         "WEFT_VIZ=1 has no folder for its file: neither HOME nor XDG_STATE_HOME is set; name a "
         "file with WEFT_VIZ_FILE");
  const ProcessFacts facts = process_facts();
  const time_t seconds = static_cast<time_t>(facts.unix_ns / 1'000'000'000);
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  ::strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &utc);
  return strformat("{}/viz/{}-{}.weftviz", state, text, facts.pid);
}

uint64_t after_none(bool is, uint64_t number) { return is ? number + 1 : 0; }

}  // namespace

/// A pass that has begun.
struct OpenPass {
  const char* pass;
  std::string subject;
  bool follows;  // its state is as the last pass at this depth left it
  uint64_t start = 0, before = 0;
  StateParts kept = {};  // of a run that may have nothing to compile
};
/// One that has ended before anybody knew whether it is to be written.
struct KeptPass {
  OpenPass open;
  uint64_t ns;
  size_t depth;
  std::vector<RewriteStep> rules;
  StateParts after;
};

struct Recorder::State {
  State(Context& c, std::string path)
      : context(c),
        out(c, std::move(path), static_cast<uint64_t>(c.options().viz_bytes)),
        shared(out, 0) {}

  class Watcher;

  /// Knows that it is a fork's child without asking the system for a number each time.
  class Mutex final : ForkLock {
   public:
    Mutex() : ForkLock(Order::Recording) {}
    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    bool forked = false;  ///< and nobody has dealt with it

   private:
    void before_fork() override { mutex_.lock(); }
    bool try_before_fork() override { return mutex_.try_lock(); }
    void after_in_parent() override { mutex_.unlock(); }
    void after_in_child() override {
      new (&mutex_) std::mutex;
      forked = true;
    }
    std::mutex mutex_;
  };

  /// Of every call; the child of a fork begins a stream of its own.
  class Lock {
   public:
    explicit Lock(State& s) : lock_(s.mutex) {
      if (std::exchange(s.mutex.forked, false)) s.restart();
    }

   private:
    std::lock_guard<Mutex> lock_;
  };

  void restart() {
    spans.clear();
    span_count = 0;
    tracks = {}, threads = {}, names = {};
    detail.clear();
    out.restart();
    shared = StateWriter(out, 0);
    runs = active.size();
    for (size_t i = 0; i < active.size(); ++i) {
      active[i].number = i;
      write_begin(active[i]);
    }
  }

  // ---- runs

  /// One may begin within another: what a replay is given may have to be realized.
  struct Run {
    uint64_t number;
    RunKind kind;
    std::string line;
    uint64_t begun;
    bool compiles = false;
    uint64_t compile_begun = 0, compile_ns = 0;
  };

  void write_begin(const Run& run) {
    ByteWriter& w = out.begin();
    w.varint(run.number);
    w.u8(static_cast<uint8_t>(run.kind));
    w.varint(out.string(run.line));
    w.u64(run.begun);
    out.end(Kind::Begin);
  }
  uint64_t run() const { return active.empty() ? 0 : active.back().number + 1; }
  bool compiles() const { return active.empty() || active.back().compiles; }

  void write_counters(ByteWriter& w) {
    std::vector<std::pair<size_t, int64_t>> changed;
    for (size_t i = 0; i < kCounterCount; ++i) {
      const int64_t now = context.tracer().value(static_cast<Counter>(i));
      if (now != counters[i]) changed.emplace_back(i, now - std::exchange(counters[i], now));
    }
    w.varint(changed.size());
    for (const auto& [i, increase] : changed) {
      w.varint(out.string(kCounterNames[i]));
      w.signed_varint(increase);
    }
  }

  // ---- spans

  uint64_t track_of(const SpanEvent& e) {
    if (!e.track.empty()) return track(e.track, true);
    const uint64_t key = uint64_t{e.thread} + 1;
    if (const uint64_t* known = threads.find(key)) return *known;
    return threads.set(key, track(strformat("thread {}", e.thread), false));
  }
  uint64_t track(std::string_view name, bool own) {
    const uint64_t key = hash_text(name) | 1;
    if (const uint64_t* known = tracks.find(key)) return *known;
    const uint64_t number = tracks.size();
    ByteWriter w;
    w.varint(number);
    w.varint(out.string(name));
    w.u8(own);
    out.add(Kind::Track, w.data());
    return tracks.set(key, number);
  }
  /// Of a static text.
  uint64_t name(const char* text) {
    if (const uint64_t* known = names.find(text)) return *known;
    return names.set(text, out.string(text));
  }
  /// Spans in a row are about the same kernel.
  uint64_t detail_of(std::string_view text) {
    if (text != detail) detail = text, detail_number = out.string(text);
    return detail_number;
  }

  void write_spans() {
    if (span_count == 0) return;
    ByteWriter w;
    w.varint(std::exchange(span_count, 0));
    w.bytes(spans.data());
    spans.clear();
    last_start = 0;
    out.add(Kind::Spans, w.data());
  }

  void flush() {
    write_spans();
    out.flush();
    flushed = now_ns();
  }

  Context& context;
  Mutex mutex;
  StreamWriter out;
  StateWriter shared;       // the arena of all but kernels
  std::vector<Run> active;  // the innermost last
  uint64_t runs = 0, schedules = 0;
  std::unique_ptr<Watcher> watcher;
  std::array<int64_t, kCounterCount> counters{};
  // of spans
  FlatMap<uint64_t, uint64_t> tracks, threads;
  FlatMap<const char*, uint64_t> names;
  std::string detail;
  uint64_t detail_number = 0;
  ByteWriter spans;
  uint64_t span_count = 0, last_start = 0, flushed = 0;
};

/// The passes of a kernel, or of a run. Those of a run are kept until it compiles; a kernel's are
/// put together without the lock, so that kernels that are compiled side by side do not wait.
class Recorder::State::Watcher final : public PassWatcher {
 public:
  /// Of a kernel.
  Watcher(State& state, RecordedAs kernel)
      : state_(state), kernel_(kernel), own_(std::in_place, state.out, kernel.number + 1) {
    const Lock lock(state_);
    run_ = state_.run();
  }
  /// Of runs.
  explicit Watcher(State& state) : state_(state) {}
  ~Watcher() override {
    drop_from(0);
    hand_over();
  }

  size_t begin(const char* pass, std::string_view subject, const StateParts* before) override {
    OpenPass open{pass, std::string(subject), before == nullptr};
    if (own_ && before)
      open.before = own_->state(*before);
    else if (before)
      open.kept = *before;
    open.start = now_ns();
    open_.push_back(std::move(open));
    return open_.size() - 1;
  }

  void end(size_t pass, uint64_t ns, std::span<const RewriteStep> rules,
           const StateParts& after) override {
    if (pass >= open_.size()) return;
    drop_from(pass + 1);
    add(std::move(open_[pass]), pass, ns, rules, after);
    open_.resize(pass);
    if (own_ && own_->records().size() > kHandOver) hand_over();
  }

  /// The state is locked.
  void write_kept() {
    for (const KeptPass& p : kept_) write_shared(p.open, p.depth, p.ns, p.rules, p.after);
    kept_.clear();
  }
  void forget() { kept_.clear(), open_.clear(); }

 private:
  static constexpr size_t kHandOver = size_t{1} << 16;

  /// `ns`: none for one that threw.
  void add(OpenPass&& open, size_t depth, std::optional<uint64_t> ns,
           std::span<const RewriteStep> rules, const StateParts& after) {
    if (own_) {
      const auto locked = [this](auto&& ask) { return Lock(state_), ask(); };
      return write(*own_, open, depth, ns, rules, after, nullptr, locked);
    }
    const Lock lock(state_);
    if (state_.compiles())
      write_shared(open, depth, ns, rules, after);
    else if (ns)
      kept_.push_back({std::move(open), *ns, depth, {rules.begin(), rules.end()}, after});
  }

  void write_shared(const OpenPass& open, size_t depth, std::optional<uint64_t> ns,
                    std::span<const RewriteStep> rules, const StateParts& after) {
    const auto locked = [](auto&& ask) { return ask(); };
    rules_.clear(), names_.clear(), subject_number_ = 0;  // the stream may be another one
    write(state_.shared, open, depth, ns, rules, after, state_.context.get_if<Provenance>(),
          locked);
    state_.out.add(state_.shared);
  }

  template <class Locked>
  void write(StateWriter& states, const OpenPass& p, size_t depth, std::optional<uint64_t> ns,
             std::span<const RewriteStep> rules, const StateParts& after, const Provenance* lines,
             Locked&& locked) {
    if (left_.size() <= depth) left_.resize(depth + 1);
    const bool kept = p.kept.kind != StateParts::Kind::None;
    const uint64_t before = p.follows ? left_[depth]
                            : kept    ? states.state(p.kept, lines)
                                      : p.before;
    const uint64_t then = left_[depth] = states.state(after, lines);
    record_.clear();
    record_.varint(string(p.pass, locked));
    if (p.subject != subject_ || subject_number_ == 0) {
      subject_ = p.subject;
      subject_number_ = locked([&] { return state_.out.string(p.subject); });
    }
    record_.varint(subject_number_);
    record_.varint(own_ ? run_ : state_.run());
    record_.varint(own_ ? kernel_.number + 1 : 0);
    record_.varint(depth);
    record_.u64(p.start);
    record_.varint(ns.value_or(0));
    record_.u8(ns.has_value());
    record_.varint(before);
    record_.varint(then);
    record_.varint(rules.size());
    for (const RewriteStep& step : rules) {
      record_.varint(rule(*step.rule, locked));
      record_.varint(states.node(step.before));
      record_.varint(states.node(step.after));
    }
    states.add(Kind::Pass, record_.data());
  }

  template <class Locked>
  uint64_t string(const char* name, Locked&& locked) {
    if (const uint64_t* known = names_.find(name)) return *known;
    return names_.set(name, locked([&] { return state_.out.string(name); }));
  }
  template <class Locked>
  uint64_t rule(const Rule& rule, Locked&& locked) {
    if (const uint64_t* known = rules_.find(&rule)) return *known;
    return rules_.set(&rule, locked([&] { return state_.out.rule(rule); }));
  }

  /// To the stream; not to that of a fork, which knows nothing of the kernel.
  void hand_over() {
    if (!own_) return;
    const Lock lock(state_);
    if (kernel_.stream == state_.out.stream())
      state_.out.add(*own_);
    else
      own_->clear_records();
  }
  /// Those that threw.
  void drop_from(size_t first) {
    while (open_.size() > first) {
      OpenPass open = std::move(open_.back());
      open_.pop_back();
      add(std::move(open), open_.size(), {}, {}, {});
    }
  }

  State& state_;
  RecordedAs kernel_;
  std::optional<StateWriter> own_;  // a kernel's arena
  std::vector<OpenPass> open_;
  std::vector<KeptPass> kept_;
  std::vector<uint64_t> left_;  // the state after the last pass at each depth
  uint64_t run_ = 0;            // of a kernel
  std::string subject_;         // of the last pass
  uint64_t subject_number_ = 0;
  FlatMap<const Rule*, uint64_t> rules_;
  FlatMap<const char*, uint64_t> names_;
  ByteWriter record_;
};

std::unique_ptr<Recorder> Recorder::open(Context& context) {
  const Options& options = context.options();
  if (options.viz == 0) return nullptr;
  return open_at(context, options.viz_file);
}

std::unique_ptr<Recorder> Recorder::open_at(Context& context, std::string path) {
  if (path.empty()) path = default_path(context.options());
  return std::unique_ptr<Recorder>(new Recorder(std::make_unique<State>(context, std::move(path))));
}

Recorder::Recorder(std::unique_ptr<State> state) : state_(std::move(state)) {
  state_->watcher = std::make_unique<State::Watcher>(*state_);
  state_->context.tracer().set_sink(this);
}

Recorder::~Recorder() {
  if (state_->out.open()) finish();
  state_->watcher.reset();
}

const std::string& Recorder::path() const { return state_->out.path(); }

void Recorder::begin_run(RunKind kind, std::string_view line) {
  State& s = *state_;
  const State::Lock lock(s);
  s.active.push_back({s.runs++, kind, std::string(line), now_ns()});
  s.write_begin(s.active.back());
}

void Recorder::compiling() {
  State& s = *state_;
  const State::Lock lock(s);
  if (s.active.empty()) return;
  s.active.back().compiles = true;
  s.active.back().compile_begun = now_ns();
  s.watcher->write_kept();
}

void Recorder::end_run(const CompiledSchedule* schedule, bool failed) {
  State& s = *state_;
  const State::Lock lock(s);
  const State::Run run = s.active.back();
  s.write_spans();
  s.watcher->forget();
  const RecordedAs as = schedule ? schedule->recorded : RecordedAs{};
  ByteWriter& w = s.out.begin();
  w.varint(run.number);
  w.u64(now_ns());
  w.varint(run.compile_ns);
  w.varint(after_none(as.stream == s.out.stream(), as.number));
  w.u8(failed);
  s.write_counters(w);
  s.out.end(Kind::End);
  s.active.pop_back();
  if (now_ns() - s.flushed > kFlushNs || failed || run.compiles) s.flush();
}

PassWatcher& Recorder::run_passes() { return *state_->watcher; }

RecordedAs Recorder::new_kernel() {
  const State::Lock lock(*state_);
  return {state_->out.stream(), state_->out.new_kernel()};
}

std::unique_ptr<PassWatcher> Recorder::kernel_passes(RecordedAs kernel) {
  return std::make_unique<State::Watcher>(*state_, kernel);
}

void Recorder::kernel(RecordedAs as, const KernelReport& report, const KernelFacts& facts) {
  State& s = *state_;
  const State::Lock lock(s);
  if (as.stream != s.out.stream()) return;  // forked while it was compiled
  ByteWriter& w = s.out.begin();
  w.varint(as.number);
  w.varint(s.run());
  for (const std::string_view text :
       {std::string_view(report.name), facts.entry, std::string_view(report.device),
        std::string_view(report.lines), facts.target})
    w.varint(s.out.string(text));
  w.f64(report.flops);
  w.f64(report.bytes);
  w.varint(static_cast<uint64_t>(facts.spilled));
  w.varint(static_cast<uint64_t>(facts.code_bytes));
  w.varint(facts.ns);
  w.text(facts.code);
  w.varint(report.applied.size());
  for (const std::string& line : report.applied) w.varint(s.out.string(line));
  s.out.end(Kind::Kernel);
}

void Recorder::decisions(std::span<const DecisionReport> decisions) {
  State& s = *state_;
  const State::Lock lock(s);
  ByteWriter& w = s.out.begin();
  w.varint(s.run());
  w.varint(decisions.size());
  for (const DecisionReport& d : decisions) {
    w.u8(d.staged);
    for (const std::string* text : {&d.value, &d.reason, &d.lines}) w.varint(s.out.string(*text));
  }
  s.out.end(Kind::Decisions);
}

namespace {

void write_buffers(ByteWriter& w, StreamWriter& out, const CompiledSchedule& schedule) {
  w.varint(schedule.buffers.size());
  for (size_t b = 0; b < schedule.buffers.size(); ++b) {
    const CompiledBuffer& buffer = schedule.buffers[b];
    w.varint(out.string(buffer.device->name()));
    w.varint(out.string(name(buffer.dtype)));
    w.signed_varint(buffer.numel.is_constant() ? schedule.bytes_of(static_cast<int>(b), {}) : -1);
    w.signed_varint(buffer.input);
    w.signed_varint(buffer.output);
  }
}

void write_step(ByteWriter& w, StreamWriter& out, const CompiledStep& step,
                const std::string& line) {
  const RecordedAs as = step.kernel ? step.kernel->recorded : RecordedAs{};
  w.u8(step.kind == ScheduleStep::Kind::Copy);
  w.varint(after_none(as.stream == out.stream(), as.number));
  w.varint(out.string(step.kernel ? step.kernel->name : "copy"));
  w.varint(step.kernel ? out.string(step.kernel->executable->name()) : 0);
  w.varint(out.string(line));
  w.varint(step.buffers.size());
  for (size_t slot = 0; slot < step.buffers.size(); ++slot)
    w.varint(static_cast<uint64_t>(step.buffers[slot]) * 2 + step.writes(slot));
}

}  // namespace

void Recorder::schedule(const CompiledSchedule& schedule,
                        FunctionRef<std::string(size_t step)> lines) {
  std::vector<std::string> texts;  // made unlocked: it may take a while
  for (size_t i = 0; i < schedule.steps.size(); ++i) texts.push_back(lines(i));
  State& s = *state_;
  const State::Lock lock(s);
  if (schedule.recorded.stream == s.out.stream()) return;
  schedule.recorded = {s.out.stream(), s.schedules++};
  if (!s.active.empty() && s.active.back().compile_begun != 0)
    s.active.back().compile_ns +=
        now_ns() - std::exchange(s.active.back().compile_begun, uint64_t{0});
  ByteWriter& w = s.out.begin();
  w.varint(schedule.recorded.number);
  w.varint(s.run());
  write_buffers(w, s.out, schedule);
  w.varint(schedule.steps.size());
  for (size_t i = 0; i < schedule.steps.size(); ++i)
    write_step(w, s.out, schedule.steps[i], texts[i]);
  s.out.end(Kind::Schedule);
  s.flush();
}

bool Recorder::knows(const CompiledSchedule& schedule) const {
  const State::Lock lock(*state_);
  return schedule.recorded.stream == state_->out.stream();
}

bool Recorder::compiles() const {
  const State::Lock lock(*state_);
  return state_->compiles();
}

void Recorder::names(const CompiledSchedule& schedule, std::span<const std::string> of) {
  State& s = *state_;
  const State::Lock lock(s);
  if (schedule.recorded.stream != s.out.stream()) return;
  ByteWriter& w = s.out.begin();
  w.varint(schedule.recorded.number);
  w.varint(
      static_cast<uint64_t>(std::ranges::count_if(of, [](auto& name) { return !name.empty(); })));
  for (size_t b = 0; b < of.size(); ++b) {
    if (of[b].empty()) continue;
    w.varint(b);
    w.varint(s.out.string(of[b]));
  }
  s.out.end(Kind::Names);
}

void Recorder::memory(const PlannedMemory& plan) {
  State& s = *state_;
  const State::Lock lock(s);
  if (plan.schedule.recorded.stream != s.out.stream()) return;
  ByteWriter& w = s.out.begin();
  w.varint(plan.schedule.recorded.number);
  w.varint(plan.arenas.size());
  for (const ArenaPlan& a : plan.arenas) {
    w.varint(s.out.string(a.device->name()));
    w.varint(static_cast<uint64_t>(a.memory.bytes));
    w.varint(static_cast<uint64_t>(a.memory.least));
    w.varint(a.buffers.size());
    for (size_t i = 0; i < a.buffers.size(); ++i)
      for (const int64_t v : {int64_t{a.buffers[i]}, a.memory.offsets[i], a.lifetimes[i].bytes,
                              int64_t{a.lifetimes[i].first}, int64_t{a.lifetimes[i].last}})
        w.varint(static_cast<uint64_t>(v));
  }
  s.out.end(Kind::Memory);
}

void Recorder::searched(const SearchReport& report) {
  if (!report.over) return;
  State& s = *state_;
  const State::Lock lock(s);
  const BeamResult& r = report.result;
  ByteWriter& w = s.out.begin();
  for (const std::string* text : {&report.kernel, &report.device, &report.lines})
    w.varint(s.out.string(*text));
  w.text(weft::text(r.best));
  w.text(weft::text(r.analytic));
  for (const double v : {r.best_seconds, r.analytic_seconds, r.best_cycles, r.analytic_cycles})
    w.f64(v);
  for (const int64_t v : {r.rounds, r.compiled, r.timed, r.refused})
    w.varint(static_cast<uint64_t>(v));
  w.f64(report.seconds);
  s.out.end(Kind::Search);
}

void Recorder::span(const SpanEvent& event) {
  try {
    add_span(event);
  } catch (const std::exception&) {  // spans end in destructors: without memory, one less
  }
}

void Recorder::add_span(const SpanEvent& e) {
  State& s = *state_;
  const State::Lock lock(s);
  if (!s.out.open()) return;
  const uint64_t track = s.track_of(e);
  s.spans.varint(s.name(e.name));
  s.spans.varint(s.detail_of(e.detail));
  s.spans.varint(track);
  s.spans.signed_varint(static_cast<int64_t>(e.start - s.last_start));
  s.spans.varint(e.end - e.start);
  s.spans.signed_varint(e.amount);
  s.last_start = e.start;
  ++s.span_count;
  if (s.spans.size() > size_t{1} << 16 || e.end - s.flushed > kFlushNs) s.flush();
}

void Recorder::flush() {
  State& s = *state_;
  const State::Lock lock(s);
  s.write_spans();
  s.out.begin().u64(now_ns());
  s.out.end(Kind::Finish);
  s.flush();
}

void Recorder::finish() {
  State& s = *state_;
  s.context.tracer().set_sink(nullptr);
  flush();
  const State::Lock lock(s);
  s.out.finish();
}

RecordedRunScope::RecordedRunScope(Recorder* recorder, RunKind kind)
    : recorder_(recorder), exceptions_(std::uncaught_exceptions()) {
  if (recorder_) recorder_->begin_run(kind, short_text(current_call_site()));
}

RecordedRunScope::~RecordedRunScope() {
  if (!recorder_) return;
  try {
    recorder_->end_run(schedule_, std::uncaught_exceptions() > exceptions_);
  } catch (const std::exception&) {  // without memory: the run has ended all the same
  }
}

}  // namespace weft
