#include "weft/app/bench_busy.h"

#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "weft/base/error.h"

namespace weft {

namespace {

void require_cpu(int cpu) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    fail_errno("bench", "cannot ask which CPUs there are", errno);
  if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &allowed))
    fail("bench", "--busy {}: this process may not run on that CPU; it has {} others", cpu,
         CPU_COUNT(&allowed));
}

}  // namespace

// A shell that counts, and ends with us where nobody is left to kill it. Not a fork of ours, whose
// memory would be copied page by page in the middle of what is measured.
BusyProcess::BusyProcess(int cpu) {
  require_cpu(cpu);
  char shell[] = "/bin/sh", option[] = "-c";
  char program[] =
      "while kill -0 $PPID; do i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; done";
  char *arguments[] = {shell, option, program, nullptr}, *no_environment[] = {nullptr};
  const int status = ::posix_spawn(&pid_, shell, nullptr, nullptr, arguments, no_environment);
  if (status != 0) fail_errno("bench", "cannot start a busy process", status);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  ::sched_setaffinity(pid_, sizeof(one), &one);
}

BusyProcess::~BusyProcess() {
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
}

}  // namespace weft
