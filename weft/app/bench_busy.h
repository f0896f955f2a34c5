// A process that keeps one CPU busy for as long as a scope lasts.
#pragma once

#include <sys/types.h>

namespace weft {

class BusyProcess {
 public:
  /// An Error where this process may not run on that CPU.
  explicit BusyProcess(int cpu);
  ~BusyProcess();
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

}  // namespace weft
