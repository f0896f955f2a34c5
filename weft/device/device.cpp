#include "weft/device/device.h"

#include <cerrno>
#include <cstring>
#include <mutex>

#include "weft/base/context.h"
#include "weft/base/error.h"

namespace weft {

struct Device::QueueState {
  Timeline timeline;
  std::mutex mutex;               // one submission at a time
  std::atomic<uint64_t> last{0};  // newest point handed out
};

Command Command::launch(const Executable& executable, std::span<const BufferSlice> buffers,
                        std::span<const int64_t> vars, int64_t items) {
  Command c;
  c.executable = &executable;
  c.buffers = buffers;
  c.vars = vars;
  c.items = items;
  return c;
}

Command Command::copy(BufferSlice from, BufferSlice to, int64_t bytes) {
  Command c;
  c.kind = Kind::Copy;
  c.from = from;
  c.to = to;
  c.bytes = bytes;
  return c;
}

Device::Device(Context& context, std::string name, DeviceId id, Target target, int queues)
    : context_(context),
      name_(std::move(name)),
      id_(id),
      target_(std::move(target)),
      allocator_(context, context.options().memory_cap) {
  for (int i = 0; i < queues; ++i) queues_.push_back(std::make_unique<QueueState>());
}

Device::~Device() = default;

Timeline& Device::timeline(int queue) { return queues_[static_cast<size_t>(queue)]->timeline; }

std::shared_ptr<Buffer> Device::allocate(int64_t bytes, std::string_view label) {
  return allocator_.allocate(*this, bytes, label);
}

namespace {

std::byte* checked(BufferSlice slice, int64_t bytes, const char* call) {
  const bool inside = slice.buffer != nullptr && slice.offset >= 0 && bytes >= 0 &&
                      slice.offset <= slice.buffer->bytes() &&
                      bytes <= slice.buffer->bytes() - slice.offset;
  WEFT_CHECK(inside, "{}: {} bytes at {} lie outside the buffer", call, bytes, slice.offset);
  return static_cast<std::byte*>(slice.buffer->data()) + slice.offset;
}

}  // namespace

void Device::copy_in(BufferSlice to, std::span<const std::byte> from) {
  std::byte* target = checked(to, static_cast<int64_t>(from.size()), "copy_in");
  if (!from.empty()) std::memcpy(target, from.data(), from.size());
  context_.tracer().add(Counter::Copies);
  context_.tracer().add(Counter::CopyBytes, static_cast<int64_t>(from.size()));
}

void Device::copy_out(std::span<std::byte> to, BufferSlice from) {
  const std::byte* source = checked(from, static_cast<int64_t>(to.size()), "copy_out");
  if (!to.empty()) std::memcpy(to.data(), source, to.size());
  context_.tracer().add(Counter::Copies);
  context_.tracer().add(Counter::CopyBytes, static_cast<int64_t>(to.size()));
}

TimelinePoint Device::submit(int queue, std::span<const Command> commands,
                             std::span<const TimelinePoint> waits,
                             std::span<const TimelinePoint> signals) {
  WEFT_CHECK(queue >= 0 && queue < queues(), "{} has no queue {}", name_, queue);
  QueueState& q = *queues_[static_cast<size_t>(queue)];
  std::lock_guard lock(q.mutex);
  for (const TimelinePoint& wait : waits) {
    for (const auto& other : queues_) {
      if (wait.timeline == &other->timeline && wait.value > other->last.load()) {
        fail_device(
            "submit", EDEADLK, name_,
            "queue {} would wait for point {} that was never submitted (newest: {}); submit "
            "the work that reaches it first",
            queue, wait.value, other->last.load());
      }
    }
  }
  const uint64_t point = ++q.last;
  struct Finish {
    Timeline& timeline;
    uint64_t point;
    std::span<const TimelinePoint> signals;
    ~Finish() {
      timeline.signal(point);
      for (const TimelinePoint& s : signals) s.timeline->signal(s.value);
    }
  } finish{q.timeline, point, signals};
  for (const TimelinePoint& w : waits) w.timeline->wait(w.value);
  execute(queue, commands, waits, point);
  return {&q.timeline, point};
}

void Device::wait(TimelinePoint point, uint64_t deadline_ns, const std::atomic<bool>* cancel) {
  if (point.timeline == nullptr || point.timeline->reached(point.value)) return;
  Span span(context_.tracer(), "wait");
  context_.tracer().add(Counter::Waits);
  if (point.timeline->wait(point.value, deadline_ns, cancel)) return;
  const bool cancelled = cancel != nullptr && cancel->load();
  fail_device("wait", cancelled ? ECANCELED : ETIMEDOUT, name_,
              "{} at point {} while waiting for {}; the work goes on, wait again to see its end",
              cancelled ? "cancelled" : "the deadline passed", point.timeline->value(),
              point.value);
}

}  // namespace weft
