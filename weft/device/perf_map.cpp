#include "weft/device/perf_map.h"

#include <fcntl.h>
#include <unistd.h>

#include "weft/base/format.h"

namespace weft {

std::string perf_map_path() { return strformat("/tmp/perf-{}.map", ::getpid()); }

// The format is perf's own (tools/perf/Documentation/jit-interface.txt): "START SIZE symbolname",
// numbers in hexadecimal. One write of a line in append mode is not torn by other threads' lines.
void add_to_perf_map(const void* entry, size_t bytes, std::string_view name) {
  const int file =
      ::open(perf_map_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (file < 0) return;
  const std::string line =
      strformat("{:x} {:x} {}\n", reinterpret_cast<uintptr_t>(entry), bytes, name);
  [[maybe_unused]] const auto written = ::write(file, line.data(), line.size());
  ::close(file);
}

}  // namespace weft
