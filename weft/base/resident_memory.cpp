#include "weft/base/resident_memory.h"

#include <charconv>
#include <string>
#include <string_view>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/base/slabs.h"

namespace weft {

namespace {

/// Of a line such as "VmRSS:     1234 kB" (proc(5)).
int64_t bytes_at(std::string_view status, std::string_view name) {
  size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  at = status.find_first_of("0123456789", at + name.size());
  if (at == std::string_view::npos) return 0;
  int64_t kilobytes = 0;
  std::from_chars(status.data() + at, status.data() + status.size(), kilobytes);
  return kilobytes * 1024;
}

}  // namespace

void give_back_free_memory() {
  give_back_spare_slabs();
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

ResidentMemory resident_memory(int64_t pid) {
  const std::string path =
      pid == 0 ? std::string("/proc/self/status") : strformat("/proc/{}/status", pid);
  const std::string status = read_small_file(path);
  return {bytes_at(status, "VmRSS:"), bytes_at(status, "VmHWM:")};
}

}  // namespace weft
