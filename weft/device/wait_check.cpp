#include "weft/device/wait_check.h"

#include <algorithm>
#include <cerrno>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr size_t kHistory = 4096;  // older points are taken to know nothing
constexpr size_t kRanges = 1 << 16;

std::string label_of(const Buffer& buffer) {
  const std::string label = buffer.label();
  return label.empty() ? "a buffer" : label;
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
  const bool copies = c.kind == Command::Kind::Copy;
  if (!copies && c.executable->params().empty()) return;
  const std::string_view who = copies ? "a copy" : std::string_view(c.executable->name());
  each_use(c, [&](const MemoryUse& u) { use(s, u, now, who); });
}

void WaitCheck::use(const Submission& s, const MemoryUse& use, const Clock& now,
                    std::string_view who) {
  if (uses_.size() > kRanges) uses_.clear();
  const auto own = static_cast<size_t>(s.queue);
  const QueuePoints needed = uses_.before(use);
  for (size_t q = 0; q < needed.size(); ++q)
    if (q != own && needed[q] > now.at[q])
      fail_device("submit", EINVAL, device_.name(),
                  "{} on queue {} {} {} (bytes {} to {}), which queue {} uses at point {}, without "
                  "waiting for that point",
                  who, own, use.writes ? "writes" : "reads", label_of(*use.buffer), use.begin,
                  use.end, q, needed[q]);
  uses_.add(use, own, s.point);
}

void WaitCheck::check_host(const Buffer& buffer, bool writes) {
  std::lock_guard lock(mutex_);
  const QueuePoints needed = uses_.before({&buffer, 0, buffer.bytes(), !writes, writes});
  for (size_t q = 0; q < needed.size(); ++q)
    if (needed[q] > host_.at[q])
      fail_device(writes ? "copy_in" : "copy_out", EINVAL, device_.name(),
                  "the host {} {}, which queue {} uses at point {}, without waiting for that point",
                  writes ? "writes" : "reads", label_of(buffer), q, needed[q]);
}

}  // namespace weft
