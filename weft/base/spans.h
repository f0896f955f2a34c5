// Spans and counters: what happened when, as Chrome/Perfetto JSON. Near free while off.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

enum class Counter : uint8_t {
#define X(id, name, doc) id,
#include "weft/base/counters.def"
#undef X
  Count
};
constexpr size_t kCounterCount = static_cast<size_t>(Counter::Count);

uint64_t now_ns();  // monotonic

// One span, as whoever writes them down as they end is told of it.
struct SpanEvent {
  const char* name;  // static
  uint64_t start, end;
  std::string_view detail;
  int64_t amount;
  std::string_view track;  // of its own; empty: the thread's
  uint32_t thread;         // the system's number of it
};

// Told of every span, by any thread, and must make none itself.
class SpanSink {
 public:
  virtual ~SpanSink() = default;
  virtual void span(const SpanEvent& event) = 0;
  virtual void flush() = 0;  // the process may end after this
};

class Tracer {
 public:
  Tracer();
  ~Tracer();

  void add(Counter counter, int64_t amount = 1) {
    counters_[static_cast<size_t>(counter)].fetch_add(amount, std::memory_order_relaxed);
  }
  int64_t value(Counter counter) const {
    return counters_[static_cast<size_t>(counter)].load(std::memory_order_relaxed);
  }

  bool on() const { return on_.load(std::memory_order_relaxed); }
  // Keeps the newest `capacity` spans.
  void start(size_t capacity = size_t{1} << 16);
  void stop();
  // Also tells `sink`, which outlives the Tracer or is taken back before it ends, while no other
  // thread traces.
  void set_sink(SpanSink* sink);
  void flush_sink();

  // `name` is a stable, static string ("kernel"); `detail` is cut to fit and copied.
  void record(const char* name, uint64_t start_ns, uint64_t end_ns, std::string_view detail = {},
              int64_t amount = 0);
  // The same in a track of its own, by its name ("OPENCL queue 0"), instead of the calling
  // thread's.
  void record_on(std::string_view track, const char* name, uint64_t start_ns, uint64_t end_ns,
                 std::string_view detail = {}, int64_t amount = 0);

  size_t recorded() const;  // spans now held
  struct Total {
    const char* name;
    int64_t count;
    uint64_t ns;
    uint64_t median_ns;  // of one span
  };
  std::vector<Total> totals() const;  // of the spans held, by name, longest first
  std::string chrome_json() const;    // the whole trace file, counters included
  std::string counters_json() const;

 private:
  struct Ring;
  void switch_on();

  std::atomic<int64_t> counters_[kCounterCount] = {};
  std::atomic<bool> on_{false}, keeps_{false};
  std::atomic<SpanSink*> sink_{nullptr};
  Ring* ring_;  // owned
};

// Records the time from here to the end of the block.
class Span {
 public:
  Span(Tracer& tracer, const char* name, std::string_view detail = {}, int64_t amount = 0)
      : tracer_(tracer.on() ? &tracer : nullptr), name_(name), detail_(detail), amount_(amount) {
    if (tracer_ != nullptr) start_ = now_ns();
  }
  ~Span() {
    if (tracer_ != nullptr) tracer_->record(name_, start_, now_ns(), detail_, amount_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Tracer* tracer_;
  const char* name_;
  std::string_view detail_;  // must outlive the span
  int64_t amount_;
  uint64_t start_ = 0;
};

}  // namespace weft
