// Ctrl-C as a flag that a loop looks at. Only the command does this: the library never would.
#pragma once

#include <csignal>

namespace weft {

// While it lives, the first Ctrl-C (or SIGTERM) sets the flag; a second one ends the process.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool requested();

 private:
  struct sigaction old_int_, old_term_;
};

}  // namespace weft
