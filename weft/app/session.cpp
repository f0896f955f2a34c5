#include <unistd.h>

#include <cerrno>

#include "weft/app/commands.h"
#include "weft/base/error.h"

namespace weft {

std::string Session::styled(const char* code, std::string_view text) const {
  return colour ? strformat("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string standard_input() {
  std::string all;
  char part[1 << 16];
  while (true) {
    const ssize_t size = ::read(STDIN_FILENO, part, sizeof(part));
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) fail_errno("file.read", "cannot read standard input", errno);
    if (size == 0) return all;
    all.append(part, static_cast<size_t>(size));
  }
}

}  // namespace weft
