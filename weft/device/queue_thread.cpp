#include "weft/device/queue_thread.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace weft {

struct QueueThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool ends = false;
  std::thread thread{[this] { work(); }};  // last: it uses the others

  void work() {
    for (std::unique_lock lock(mutex);;) {
      changed.wait(lock, [this] { return ends || !tasks.empty(); });
      if (tasks.empty()) return;
      const std::function<void()> task = std::move(tasks.front());
      tasks.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
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
  }
  state_->changed.notify_all();
}

}  // namespace weft
