#include "weft/device/wait_check.h"

#include <algorithm>
#include <cerrno>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr size_t kHistory = 4096;  // older points are taken to know nothing
constexpr size_t kPlaces = 1 << 16;

std::string_view label_of(const Buffer& buffer) {
  return buffer.label().empty() ? "a buffer" : std::string_view(buffer.label());
}

}  // namespace

void WaitCheck::Clock::join(const Clock& other) {
  for (size_t q = 0; q < at.size(); ++q) at[q] = std::max(at[q], other.at[q]);
}

WaitCheck::WaitCheck(Device& device) : device_(device) {
  const auto count = static_cast<size_t>(device.queues());
  WEFT_CHECK(count <= kMostQueues, "{} has {} queues; {} can be followed", device.name(), count,
             kMostQueues);
  known_.resize(count);
  history_.resize(count);
}

void WaitCheck::learn(Clock& now, TimelinePoint point) {
  for (size_t q = 0; q < queues(); ++q) {
    if (point.timeline != &device_.timeline(static_cast<int>(q))) continue;
    const auto found = history_[q].upper_bound(point.value);
    if (found != history_[q].begin()) now.join(std::prev(found)->second);
    now.at[q] = std::max(now.at[q], point.value);
  }
}

void WaitCheck::host_waited(TimelinePoint point) {
  std::lock_guard lock(mutex_);
  learn(host_, point);
}

void WaitCheck::check(const Submission& s) {
  std::lock_guard lock(mutex_);
  const auto q = static_cast<size_t>(s.queue);
  Clock& now = known_[q];
  now.join(host_);
  for (const TimelinePoint& w : s.waits) learn(now, w);
  for (const Command& c : s.commands) check(s, c, now);
  now.at[q] = s.point;
  history_[q][s.point] = now;
  if (history_[q].size() > kHistory) history_[q].erase(history_[q].begin());
}

void WaitCheck::check(const Submission& s, const Command& c, const Clock& now) {
  if (c.kind == Command::Kind::Copy) {
    use(s, c.from, false, now, "a copy");
    use(s, c.to, true, now, "a copy");
    return;
  }
  const Executable& kernel = *c.executable;
  if (kernel.params().empty()) return;
  for (size_t i = 0; i < c.buffers.size(); ++i) {
    if (kernel.reads(i)) use(s, c.buffers[i], false, now, kernel.name());
    if (kernel.writes(i)) use(s, c.buffers[i], true, now, kernel.name());
  }
}

void WaitCheck::use(const Submission& s, BufferSlice slice, bool write, const Clock& now,
                    std::string_view who) {
  WEFT_CHECK(slice.buffer != nullptr, "{}: an argument is no buffer", who);
  if (uses_.size() > kPlaces) uses_.clear();
  Uses& uses = uses_[{slice.buffer->serial(), slice.offset}];
  const auto own = static_cast<size_t>(s.queue);
  for (size_t q = 0; q < queues(); ++q) {
    if (q == own) continue;
    const uint64_t needed = write ? std::max(uses.read[q], uses.written[q]) : uses.written[q];
    if (needed > now.at[q])
      fail_device("submit", EINVAL, device_.name(),
                  "{} on queue {} {} {} (offset {}), which queue {} uses at point {}, without "
                  "waiting for that point",
                  who, own, write ? "writes" : "reads", label_of(*slice.buffer), slice.offset, q,
                  needed);
  }
  (write ? uses.written : uses.read)[own] = s.point;
}

void WaitCheck::check_host(const Buffer& buffer, bool writes) {
  std::lock_guard lock(mutex_);
  for (auto at = uses_.lower_bound({buffer.serial(), 0});
       at != uses_.end() && at->first.first == buffer.serial(); ++at)
    for (size_t q = 0; q < queues(); ++q) {
      const Uses& uses = at->second;
      const uint64_t needed = writes ? std::max(uses.read[q], uses.written[q]) : uses.written[q];
      if (needed > host_.at[q])
        fail_device(writes ? "copy_in" : "copy_out", EINVAL, device_.name(),
                    "the host {} {}, which queue {} uses at point {}, without waiting for that "
                    "point",
                    writes ? "writes" : "reads", label_of(buffer), q, needed);
    }
}

}  // namespace weft
