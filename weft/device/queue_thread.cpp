#include "weft/device/queue_thread.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "weft/base/spans.h"

namespace weft {

struct QueueThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool ends = false;
  std::atomic<uint64_t> pushed{0};
  std::thread thread{[this] { work(); }};  // last: it uses the others

  void work() {
    for (std::unique_lock lock(mutex);;) {
      if (!ends && tasks.empty()) {
        const uint64_t seen = pushed.load();
        lock.unlock();
        look_out(seen);
        lock.lock();
      }
      changed.wait(lock, [this] { return ends || !tasks.empty(); });
      if (tasks.empty()) return;
      const std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }
  /// For the next task, for a short while: who sleeps takes some microseconds to wake.
  void look_out(uint64_t seen) const {
    constexpr uint64_t kShort = 50'000;
    const uint64_t begin = now_ns();
    while (pushed.load() == seen && now_ns() - begin < kShort) std::this_thread::yield();
  }
};

QueueThread::QueueThread() = default;

QueueThread::~QueueThread() {
  if (!is_here()) {
    static_cast<void>(state_.release());  // locks and a thread of the parent's
    return;
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->ends = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

bool QueueThread::is_here() const { return state_ != nullptr && owner_ == ::getpid(); }

void QueueThread::push(std::function<void()> task) {
  if (!is_here()) {
    static_cast<void>(state_.release());
    state_ = std::make_unique<State>();
    owner_ = ::getpid();
  }
  {
    std::lock_guard lock(state_->mutex);
    state_->tasks.push_back(std::move(task));
    state_->pushed.fetch_add(1);
  }
  state_->changed.notify_all();
}

}  // namespace weft
