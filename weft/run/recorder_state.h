// What a Recorder keeps while it records.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/context.h"
#include "weft/base/fork.h"
#include "weft/base/hash.h"
#include "weft/run/recorder.h"
#include "weft/run/state_writer.h"
#include "weft/run/stream_writer.h"

namespace weft {

inline constexpr const char* kCounterNames[] = {
#define X(id, name, doc) name,
#include "weft/base/counters.def"
#undef X
};

/// What describing passes takes; that of a kernel goes on to the next one.
struct PassWriter {
  explicit PassWriter(StreamWriter& out) : states(out, 0) {}
  /// Numbers of strings are a stream's.
  void of_stream(uint64_t current) {
    if (std::exchange(stream, current) != current) rules.clear(), names.clear();
  }
  StateWriter states;
  uint64_t stream = 0;
  FlatMap<const Rule*, uint64_t> rules;  // numbers of what is named again and again
  FlatMap<const char*, uint64_t> names;
  ByteWriter record;
};

struct Recorder::State {
  State(Context& c, std::string path)
      : context(c),
        out(c, std::move(path), static_cast<uint64_t>(c.options().viz_bytes)),
        shared(out) {}

  class Watcher;

  /// For a kernel, with room for its return.
  std::unique_ptr<PassWriter> pass_writer() {
    if (spare.empty()) {
      spare.reserve(++pass_writers);
      return std::make_unique<PassWriter>(out);
    }
    std::unique_ptr<PassWriter> taken = std::move(spare.back());
    spare.pop_back();
    return taken;
  }

  /// Knows that it is a fork's child without asking the system for a number each time.
  class Mutex final : ForkLock {
   public:
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
    Registration registration_{*this, Order::Recording};
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
    shared.states = StateWriter(out, 0);
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
    out.end(recording::Kind::Begin);
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
    out.add(recording::Kind::Track, w.data());
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
    out.add(recording::Kind::Spans, w.data());
  }

  void flush() {
    write_spans();
    out.flush();
    flushed = now_ns();
  }

  Context& context;
  Mutex mutex;
  StreamWriter out;
  PassWriter shared;  // of the arena of all but kernels
  bool finished = false;
  std::vector<Run> active;  // the innermost last
  uint64_t runs = 0, schedules = 0;
  std::unique_ptr<Watcher> watcher;
  std::vector<std::unique_ptr<PassWriter>> spare;
  size_t pass_writers = 0;  // that there are
  std::array<int64_t, kCounterCount> counters{};
  // of spans
  FlatMap<uint64_t, uint64_t> tracks, threads;
  FlatMap<const char*, uint64_t> names;
  std::string detail;
  uint64_t detail_number = 0;
  ByteWriter spans;
  uint64_t span_count = 0, last_start = 0, flushed = 0;
};

}  // namespace weft
