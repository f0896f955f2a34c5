#include "weft/base/spans.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "weft/base/json_writer.h"

namespace weft {

namespace {

constexpr const char* kCounterNames[] = {
#define X(id, name, doc) name,
#include "weft/base/counters.def"
#undef X
};

// "Processes" of a trace file: groups of tracks.
constexpr uint32_t kHost = 1, kDevices = 2;

uint32_t thread_id() {
  thread_local const uint32_t id = static_cast<uint32_t>(::syscall(SYS_gettid));
  return id;
}

}  // namespace

uint64_t now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

struct Tracer::Ring {
  struct Event {
    const char* name;
    uint64_t start, end;
    int64_t amount;
    uint32_t process, track;  // kHost: a thread; kDevices: of `tracks`
    char detail[36];
  };

  mutable std::mutex mutex;
  std::vector<Event> events;
  size_t next = 0;       // where the following span goes
  bool wrapped = false;  // every slot is in use
  std::vector<std::string> tracks;

  size_t size() const { return wrapped ? events.size() : next; }
  void add(const Event& event, std::string_view detail) {
    Event& kept = events[next];
    kept = event;
    detail.copy(kept.detail, sizeof(kept.detail) - 1);
    if (++next == events.size()) next = 0, wrapped = true;
  }
  uint32_t track(std::string_view name) {
    const auto at = std::find(tracks.begin(), tracks.end(), name);
    if (at == tracks.end()) return tracks.emplace_back(name), uint32_t(tracks.size() - 1);
    return static_cast<uint32_t>(at - tracks.begin());
  }
};

Tracer::Tracer() : ring_(new Ring) {}
Tracer::~Tracer() { delete ring_; }

void Tracer::start(size_t capacity) {
  std::lock_guard lock(ring_->mutex);
  ring_->events.assign(capacity == 0 ? 1 : capacity, {});
  ring_->next = 0;
  ring_->wrapped = false;
  keeps_.store(true, std::memory_order_relaxed);
  switch_on();
}

void Tracer::stop() {
  keeps_.store(false, std::memory_order_relaxed);
  switch_on();
}

void Tracer::set_sink(SpanSink* sink) {
  sink_.store(sink, std::memory_order_release);
  switch_on();
}

void Tracer::flush_sink() {
  if (SpanSink* sink = sink_.load(std::memory_order_acquire)) sink->flush();
}

void Tracer::switch_on() {
  on_.store(keeps_.load(std::memory_order_relaxed) || sink_.load(std::memory_order_relaxed),
            std::memory_order_relaxed);
}

void Tracer::record(const char* name, uint64_t start_ns, uint64_t end_ns, std::string_view detail,
                    int64_t amount) {
  if (!on()) return;
  if (SpanSink* sink = sink_.load(std::memory_order_acquire))
    sink->span({name, start_ns, end_ns, detail, amount, {}, thread_id()});
  if (!keeps_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(ring_->mutex);
  ring_->add({name, start_ns, end_ns, amount, kHost, thread_id(), {}}, detail);
}

void Tracer::record_on(std::string_view track, const char* name, uint64_t start_ns, uint64_t end_ns,
                       std::string_view detail, int64_t amount) {
  if (!on()) return;
  if (SpanSink* sink = sink_.load(std::memory_order_acquire))
    sink->span({name, start_ns, end_ns, detail, amount, track, thread_id()});
  if (!keeps_.load(std::memory_order_relaxed)) return;
  std::lock_guard lock(ring_->mutex);
  ring_->add({name, start_ns, end_ns, amount, kDevices, ring_->track(track), {}}, detail);
}

size_t Tracer::recorded() const {
  std::lock_guard lock(ring_->mutex);
  return ring_->size();
}

std::vector<Tracer::Total> Tracer::totals() const {
  std::map<std::string_view, std::vector<uint64_t>> lengths;
  {
    std::lock_guard lock(ring_->mutex);
    for (size_t i = 0; i < ring_->size(); ++i) {
      const Ring::Event& event = ring_->events[i];
      lengths[event.name].push_back(event.end - event.start);
    }
  }
  std::vector<Total> all;
  for (auto& [name, ns] : lengths) {
    const auto middle = ns.begin() + static_cast<ptrdiff_t>(ns.size() / 2);
    std::nth_element(ns.begin(), middle, ns.end());
    // Span names are static strings: they outlive the ring.
    all.push_back({name.data(), static_cast<int64_t>(ns.size()),
                   std::accumulate(ns.begin(), ns.end(), uint64_t{0}), *middle});
  }
  std::sort(all.begin(), all.end(), [](const Total& a, const Total& b) { return a.ns > b.ns; });
  return all;
}

std::string Tracer::counters_json() const {
  JsonWriter json;
  json.begin_object();
  for (size_t i = 0; i < kCounterCount; ++i) {
    json.field(kCounterNames[i], value(static_cast<Counter>(i)));
  }
  return json.end_object().take();
}

namespace {

void write_name(JsonWriter& json, const char* of, uint32_t track, std::string_view name) {
  json.begin_object().field("name", of).field("ph", "M").field("pid", kDevices).field("tid", track);
  json.key("args").begin_object().field("name", name).end_object().end_object();
}

}  // namespace

std::string Tracer::chrome_json() const {
  std::lock_guard lock(ring_->mutex);
  JsonWriter json;
  json.begin_object().key("traceEvents").begin_array();
  const size_t count = ring_->size(), first = ring_->wrapped ? ring_->next : 0;
  for (size_t i = 0; i < count; ++i) {
    const Ring::Event& event = ring_->events[(first + i) % ring_->events.size()];
    json.begin_object().field("name", event.name).field("ph", "X").field("pid", event.process);
    json.field("tid", event.track).field("ts", static_cast<double>(event.start) / 1e3);
    json.field("dur", static_cast<double>(event.end - event.start) / 1e3);
    json.key("args").begin_object().field("detail", event.detail).field("amount", event.amount);
    json.end_object().end_object();
  }
  if (!ring_->tracks.empty()) write_name(json, "process_name", 0, "devices");
  for (size_t i = 0; i < ring_->tracks.size(); ++i)
    write_name(json, "thread_name", static_cast<uint32_t>(i), ring_->tracks[i]);
  json.end_array().field("displayTimeUnit", "ns");
  return json.key("otherData").raw(counters_json()).end_object().take();
}

}  // namespace weft
