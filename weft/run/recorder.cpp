#include "weft/run/recorder.h"

#include <time.h>

#include <algorithm>
#include <exception>

#include "weft/base/error.h"
#include "weft/base/process.h"
#include "weft/graph/provenance.h"
#include "weft/run/recorder_watcher.h"

namespace weft {
namespace {

using recording::Kind;

// Spans are written at least so often: a program that is killed leaves all but the last.
constexpr uint64_t kFlushNs = 100'000'000;

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
  if (!state_->finished) finish();
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
  for (const auto* list : {&report.applied, &report.each_line}) {
    w.varint(list->size());
    for (const std::string& text : *list) w.varint(s.out.string(text));
  }
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
    w.signed_varint(buffer.numel.is_constant() && buffer.lengths.all()
                        ? schedule.bytes_of(static_cast<int>(b), {})
                        : -1);
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
  s.finished = true;
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
