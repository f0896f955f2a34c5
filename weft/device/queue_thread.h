// QueueThread: a thread that does what it is given, in that order, for devices whose queues go on
// without the host.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>

namespace weft {

/// Started by the first push(), and again in the child of a fork: the parent's thread is not there,
/// nor is what it had still to do. One thread at a time pushes.
class QueueThread {
 public:
  QueueThread();
  ~QueueThread();  ///< when everything is done
  QueueThread(const QueueThread&) = delete;
  QueueThread& operator=(const QueueThread&) = delete;

  void push(std::function<void()> task);  ///< that does not throw

 private:
  struct State;
  bool is_here() const;

  std::unique_ptr<State> state_;
  pid_t owner_ = 0;  // the process that has the thread
};

}  // namespace weft
