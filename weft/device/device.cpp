#include "weft/device/device.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "weft/base/context.h"
#include "weft/base/error.h"

namespace weft {

struct Device::QueueState {
  // Shared with the memory that is given back when its points are reached.
  std::shared_ptr<Timeline> timeline = std::make_shared<Timeline>();
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

Device::Device(Context& context, std::string name, DeviceId id, Target target, int queues,
               std::shared_ptr<Memory> memory)
    : context_(context),
      name_(std::move(name)),
      id_(id),
      target_(std::move(target)),
      allocator_(context, context.options().memory_cap, int64_t{1} << 30, std::move(memory)) {
  std::vector<std::shared_ptr<Timeline>> timelines;
  for (int i = 0; i < queues; ++i) {
    queues_.push_back(std::make_unique<QueueState>());
    timelines.push_back(queues_.back()->timeline);
  }
  allocator_.watch(std::move(timelines));
}

Device::~Device() = default;

Timeline& Device::timeline(int queue) { return *queues_[static_cast<size_t>(queue)]->timeline; }

std::shared_ptr<Buffer> Device::allocate(int64_t bytes, BufferLabel label) {
  return allocator_.allocate(*this, bytes, std::move(label));
}

namespace {

std::byte* address(BufferSlice slice) {
  return static_cast<std::byte*>(slice.buffer->data()) + slice.offset;
}

}  // namespace

void Device::write_memory(BufferSlice to, std::span<const std::byte> from) {
  std::memcpy(address(to), from.data(), from.size());
}

void Device::read_memory(std::span<std::byte> to, BufferSlice from) {
  from.buffer->read(from.offset, to);
}

void Device::copy_in(BufferSlice to, std::span<const std::byte> from) {
  check_slice(to, static_cast<int64_t>(from.size()), "copy_in");
  wait_for(*to.buffer, Access::Write);
  to.buffer->note_write();
  if (!from.empty()) write_memory(to, from);
  context_.tracer().add(Counter::Copies);
  context_.tracer().add(Counter::CopyBytes, static_cast<int64_t>(from.size()));
}

void Device::copy_out(std::span<std::byte> to, BufferSlice from) {
  check_slice(from, static_cast<int64_t>(to.size()), "copy_out");
  wait_for(*from.buffer, Access::Read);
  if (!to.empty()) read_memory(to, from);
  context_.tracer().add(Counter::Copies);
  context_.tracer().add(Counter::CopyBytes, static_cast<int64_t>(to.size()));
}

void Device::wait_for(Buffer& buffer, Access access) {
  if (completes_at_once()) return;
  const LastUses uses = allocator_.last_uses(buffer);
  for (size_t q = 0; q < uses.size(); ++q) {
    Timeline& line = *queues_[q]->timeline;
    const uint64_t last =
        access == Access::Write ? std::max(uses[q].read, uses[q].written) : uses[q].written;
    line.wait(last);
    host_waited({&line, last});
    if (access == Access::Write) continue;
    // Work that never began left the memory as it was.
    if (const Failure* failure = line.tell_failure(uses[q].written); failure && failure->begun)
      failure->raise();
  }
  if (access == Access::Write) allocator_.forget_uses(buffer);
}

void Device::check_waits(int queue, std::span<const TimelinePoint> waits) const {
  for (const TimelinePoint& wait : waits)
    for (const auto& other : queues_)
      if (wait.timeline == other->timeline.get() && wait.value > other->last.load())
        fail_device(
            "submit", EDEADLK, name_,
            "queue {} would wait for point {} that was never submitted (newest: {}); submit "
            "the work that reaches it first",
            queue, wait.value, other->last.load());
}

TimelinePoint Device::submit(int queue, std::span<const Command> commands,
                             std::span<const TimelinePoint> waits,
                             std::span<const TimelinePoint> signals) {
  WEFT_CHECK(queue >= 0 && queue < queues(), "{} has no queue {}", name_, queue);
  QueueState& q = *queues_[static_cast<size_t>(queue)];
  std::lock_guard lock(q.mutex);
  check_waits(queue, waits);
  if (const Failure* failure = q.timeline->tell_untold()) failure->raise();
  const Submission submission{queue, commands, waits, signals, ++q.last};
  try {
    if (!completes_at_once()) allocator_.used(submission);
    enqueue(submission);
  } catch (...) {
    q.timeline->wait(submission.point - 1);  // a timeline goes through its points in order
    finish(submission);
    throw;
  }
  return {q.timeline.get(), submission.point};
}

void Device::enqueue(const Submission& s) {
  for (const TimelinePoint& w : s.waits) {
    w.timeline->wait(w.value);
    raise_failure(w);
  }
  execute(s.queue, s.commands, s.waits, s.point);
  finish(s);
}

void Device::execute(int, std::span<const Command>, std::span<const TimelinePoint>, uint64_t) {
  internal_error("device", "{} runs no commands", name_);
}

void Device::finish(const Submission& s, std::optional<Failure> failure) {
  const auto reach = [&failure](Timeline& line, uint64_t point) {
    if (failure) line.fail(point, *failure);
    line.signal(point);
  };
  // Others' first: who waits for the submission's own may then give up everything it names.
  for (const TimelinePoint& p : s.signals) reach(*p.timeline, p.value);
  reach(timeline(s.queue), s.point);
}

bool Device::traces() const { return context_.tracer().on(); }

void Device::trace(int queue, const CommandTime& time) const {
  if (!traces()) return;
  const std::string track = strformat("{} queue {}", name_, queue);
  context_.tracer().record_on(track, time.name, time.begin_ns, time.end_ns,
                              time.kernel ? time.kernel->name() : "", time.amount);
}

void Device::wait(TimelinePoint point, uint64_t deadline_ns, const std::atomic<bool>* cancel) {
  if (point.timeline == nullptr) return;
  host_waited(point);
  if (point.timeline->reached(point.value)) return raise_failure(point);
  Span span(context_.tracer(), "wait");
  context_.tracer().add(Counter::Waits);
  if (point.timeline->wait(point.value, deadline_ns, cancel)) return raise_failure(point);
  const bool cancelled = cancel != nullptr && cancel->load();
  fail_device("wait", cancelled ? ECANCELED : ETIMEDOUT, name_,
              "{} at point {} while waiting for {}; the work goes on, wait again to see its end",
              cancelled ? "cancelled" : "the deadline passed", point.timeline->value(),
              point.value);
}

}  // namespace weft
