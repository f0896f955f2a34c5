#include "weft/device/timeline.h"

#include <chrono>
#include <thread>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/spans.h"

namespace weft {

void Failure::raise() const { throw PointError(*this); }

void Timeline::signal(uint64_t point) {
  uint64_t now = value();
  do WEFT_CHECK(point >= now, "a timeline would go back from {} to {}", now, point);
  while (!value_.compare_exchange_weak(now, point));
  // Who counts itself after this sees the new value.
  if (waiting_.load() == 0) return;
  { std::lock_guard lock(mutex_); }
  changed_.notify_all();
}

bool Timeline::wait(uint64_t point, uint64_t deadline_ns, const std::atomic<bool>* cancel) {
  // A thread that sleeps takes some microseconds to wake: as long as a short kernel takes.
  constexpr uint64_t kShort = 20'000;
  for (const uint64_t begin = now_ns(); !reached(point); std::this_thread::yield())
    if (now_ns() - begin > kShort) break;
  if (reached(point)) return true;
  // Nobody notifies us of a cancelled token: look every few milliseconds.
  constexpr uint64_t kPeriod = 5'000'000;
  std::unique_lock lock(mutex_);
  struct Waiting {
    std::atomic<uint32_t>& count;
    ~Waiting() { count.fetch_sub(1); }
  } waiting{waiting_};
  waiting_.fetch_add(1);
  while (value_.load() < point) {
    if (cancel != nullptr && cancel->load(std::memory_order_acquire)) return false;
    if (deadline_ns == 0 && cancel == nullptr) {
      changed_.wait(lock);
      continue;
    }
    const uint64_t now = now_ns();
    if (deadline_ns != 0 && now >= deadline_ns) return false;
    uint64_t sleep = deadline_ns == 0 ? kPeriod : deadline_ns - now;
    if (cancel != nullptr && sleep > kPeriod) sleep = kPeriod;
    changed_.wait_for(lock, std::chrono::nanoseconds(sleep));
  }
  return true;
}

void Timeline::fail(uint64_t point, Failure failure) {
  std::lock_guard lock(mutex_);
  // What never began says nothing that the failure it waited for does not.
  const bool told = !failure.begun;
  if (failure.at.timeline == nullptr) failure.at = {this, point};
  failures_.emplace(point, Told{std::move(failure), told});
  any_failed_.store(true, std::memory_order_release);
}

const Failure* Timeline::failure(uint64_t point) const {
  if (!any_failed_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(mutex_);
  const auto found = failures_.find(point);
  return found == failures_.end() ? nullptr : &found->second.failure;
}

const Failure* Timeline::tell_failure(uint64_t point) {
  if (!any_failed_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(mutex_);
  const auto found = failures_.find(point);
  if (found == failures_.end()) return nullptr;
  found->second.told = true;
  return &found->second.failure;
}

const Failure* Timeline::tell_untold() {
  if (!any_failed_.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(mutex_);
  for (auto& [point, entry] : failures_)
    if (!std::exchange(entry.told, true)) return &entry.failure;
  return nullptr;
}

void raise_failure(TimelinePoint point) {
  if (const Failure* failure = point.timeline->tell_failure(point.value)) failure->raise();
}

}  // namespace weft
