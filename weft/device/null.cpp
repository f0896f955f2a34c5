// NULL: takes any program, runs nothing, and checks what a real asynchronous device would need:
// that work on one queue waits for the work of the other that it depends on.
#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/host_device.h"

namespace weft {

namespace {

constexpr int kQueues = 2;

// How much of each queue is known to be done.
struct Clock {
  uint64_t at[kQueues] = {};
  void join(const Clock& other) {
    for (int q = 0; q < kQueues; ++q)
      if (other.at[q] > at[q]) at[q] = other.at[q];
  }
};

class NullExecutable : public Executable {
 public:
  explicit NullExecutable(const ProgramSource& source)
      : Executable(source.entry.empty() && source.program ? source.program->name : source.entry) {
    if (source.program) params = source.program->params;
  }
  std::vector<ProgramParam> params;  // empty: nothing is known, nothing is checked
};

class NullDevice : public Device {
 public:
  NullDevice(Context& context, std::string name, DeviceId id, std::string_view target)
      : Device(context, std::move(name), id, make_target(target, context), kQueues) {}

  bool computes() const override { return false; }

  std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) override {
    std::vector<std::unique_ptr<Executable>> loaded;
    for (const ProgramSource& s : sources) loaded.push_back(std::make_unique<NullExecutable>(s));
    return loaded;
  }

 protected:
  void execute(int queue, std::span<const Command> commands, std::span<const TimelinePoint> waits,
               uint64_t point) override {
    std::lock_guard lock(mutex_);
    Clock& now = known_[queue];
    for (const TimelinePoint& w : waits) {
      for (int q = 0; q < kQueues; ++q) {
        if (w.timeline != &timeline(q)) continue;
        const auto found = history_[q].upper_bound(w.value);
        if (found != history_[q].begin()) now.join(std::prev(found)->second);
        if (w.value > now.at[q]) now.at[q] = w.value;
      }
    }
    for (const Command& c : commands) check(queue, point, c, now);
    now.at[queue] = point;
    history_[queue][point] = now;
    if (history_[queue].size() > kHistory) history_[queue].erase(history_[queue].begin());
    const auto launched = std::ranges::count_if(
        commands, [](const Command& c) { return c.kind == Command::Kind::Launch; });
    context().tracer().add(Counter::Kernels, launched);
    context().tracer().add(Counter::Copies, static_cast<int64_t>(commands.size()) - launched);
  }

 private:
  static constexpr size_t kHistory = 4096;  // older points are taken to know nothing
  static constexpr size_t kPlaces = 1 << 16;

  struct Uses {
    uint64_t written[kQueues] = {}, read[kQueues] = {};  // newest point of each queue
  };

  void check(int queue, uint64_t point, const Command& c, const Clock& now) {
    if (c.kind == Command::Kind::Copy) {
      use(queue, point, c.from, false, now, "a copy");
      use(queue, point, c.to, true, now, "a copy");
      return;
    }
    const auto& kernel = static_cast<const NullExecutable&>(*c.executable);
    if (kernel.params.empty()) return;
    WEFT_CHECK(kernel.params.size() == c.buffers.size(), "{}: launched with {} buffers, takes {}",
               kernel.name(), c.buffers.size(), kernel.params.size());
    for (size_t i = 0; i < c.buffers.size(); ++i) {
      if (kernel.params[i].read) use(queue, point, c.buffers[i], false, now, kernel.name());
      if (kernel.params[i].written) use(queue, point, c.buffers[i], true, now, kernel.name());
    }
  }

  void use(int queue, uint64_t point, BufferSlice slice, bool write, const Clock& now,
           std::string_view who) {
    WEFT_CHECK(slice.buffer != nullptr, "{}: an argument is no buffer", who);
    if (uses_.size() > kPlaces) uses_.clear();
    Uses& uses = uses_[{slice.buffer->serial(), slice.offset}];
    for (int q = 0; q < kQueues; ++q) {
      if (q == queue) continue;
      const uint64_t needed =
          write && uses.read[q] > uses.written[q] ? uses.read[q] : uses.written[q];
      if (needed > now.at[q]) {
        fail_device("submit", EINVAL, name(),
                    "{} on queue {} {} {} (offset {}), which queue {} uses at point {}, without "
                    "waiting for that point",
                    who, queue, write ? "writes" : "reads",
                    slice.buffer->label().empty() ? "a buffer" : slice.buffer->label().c_str(),
                    slice.offset, q, needed);
      }
    }
    (write ? uses.written : uses.read)[queue] = point;
  }

  std::mutex mutex_;
  Clock known_[kQueues];
  std::map<uint64_t, Clock> history_[kQueues];  // what was known when a point was reached
  std::map<std::pair<uint64_t, int64_t>, Uses> uses_;
};

}  // namespace

std::unique_ptr<Device> make_null_device(Context& context, std::string name, DeviceId id,
                                         std::string_view target) {
  check_features(target, name, context);
  return std::make_unique<NullDevice>(context, std::move(name), id, target);
}

}  // namespace weft
