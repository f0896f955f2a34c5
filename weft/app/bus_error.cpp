#include "weft/app/bus_error.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <csignal>
#include <cstdint>
#include <string_view>

#include "weft/app/app.h"

namespace weft {

namespace {

// All of this runs in a signal handler: no memory is asked for, nothing is locked.

uint64_t hex_number(std::string_view& text) {
  uint64_t value = 0;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char c = text[0];
    const bool digit = c >= '0' && c <= '9';
    if (!digit && !(c >= 'a' && c <= 'f')) break;
    value = value * 16 + static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  return value;
}

/// "7f0c-7f0d r--p 00000000 fe:00 1234    /path": the path, where the address lies there.
std::string_view path_at(std::string_view line, uint64_t address) {
  const uint64_t begin = hex_number(line);
  if (line.empty()) return {};
  line.remove_prefix(1);
  const uint64_t end = hex_number(line);
  const size_t path = line.find('/');
  return address >= begin && address < end && path != std::string_view::npos ? line.substr(path)
                                                                             : std::string_view();
}

void say(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<size_t>(written));
  }
}

[[noreturn]] void end_because_of(std::string_view path) {
  say("\nweft: [file] ");
  say(path);
  say(" was cut short by another program while it was read, or its disk failed. Load it again when "
      "it is whole; programs that replace files by renaming new ones do no harm\n"
      "      more: weft explain file.shrunk\n");
  ::_exit(kExitFailure);
}

/// Looks through the list of mappings in pieces; a line that does not fit a buffer is none of a
/// file.
void find_file(uint64_t address) {
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  static char buffer[1 << 16];
  size_t held = 0;
  while (true) {
    const ssize_t got = ::read(fd, buffer + held, sizeof(buffer) - held);
    if (got <= 0) break;
    std::string_view all(buffer, held + static_cast<size_t>(got));
    for (size_t end; (end = all.find('\n')) != std::string_view::npos; all.remove_prefix(end + 1))
      if (const auto path = path_at(all.substr(0, end), address); !path.empty())
        end_because_of(path);
    held = all.size() < sizeof(buffer) ? all.size() : 0;
    for (size_t i = 0; i < held; ++i) buffer[i] = all[i];
  }
  ::close(fd);
}

void explain(int, siginfo_t* info, void*) {
  static std::atomic_flag begun;
  if (info->si_code == BUS_ADRERR) {
    while (begun.test_and_set()) ::sleep(1);  // several threads read the file: one of them says it
    find_file(std::bit_cast<uint64_t>(info->si_addr));
  }
  ::signal(SIGBUS, SIG_DFL);  // the instruction is tried again, and ends the process
}

}  // namespace

void explain_bus_errors() {
  struct sigaction action = {};
  action.sa_sigaction = explain;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigaction(SIGBUS, &action, nullptr);
}

}  // namespace weft
