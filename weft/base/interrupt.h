// InterruptCheck: how somebody who waits for a long computation may end it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>

#include "weft/base/context.h"
#include "weft/base/function_ref.h"

namespace weft {

// A slot of the Context. A host device calls `ask` before every command, on the thread that
// realizes. What it throws leaves realize(), and every tensor is as it was before: while memory is
// updated in place nobody is asked.
struct InterruptCheck {
  explicit InterruptCheck(Context&) {}
  std::function<void()> ask;
  bool harmless = true;  // what runs could be given up

  // While an InterruptibleScope is open, one at a time:
  std::atomic<std::thread::id> thread{};  // its thread
  std::atomic<bool> ended{false};         // asking threw `why`
  std::exception_ptr why;
};

// Between what changes nothing: in it, and on threads that work for it, poll_interrupt() asks.
class InterruptibleScope {
 public:
  explicit InterruptibleScope(Context& context);
  ~InterruptibleScope();
  InterruptibleScope(const InterruptibleScope&) = delete;
  InterruptibleScope& operator=(const InterruptibleScope&) = delete;

  // `work`, and what asking threw, on whichever thread that was noticed.
  void run(FunctionRef<void()> work);

 private:
  ContextScope current_;
  InterruptCheck* check_;  // null: nobody may ask
};

// Throws where an interruptible computation is to end.
void ask_interrupt();

// For loops that may go on for long: asks now and then, after about half a millisecond.
inline void poll_interrupt() {
  constexpr uint32_t kCallsBetween = 1024;
  thread_local uint32_t calls = 0;
  if (++calls % kCallsBetween == 0) ask_interrupt();
}

// For walks over long graphs outside of any scope, which have changed nothing yet: asks at every
// 1024th `step`, on the thread that walks.
void poll_walk(size_t step);

}  // namespace weft
