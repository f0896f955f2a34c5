#include "weft/base/cpu_count.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/base/file.h"

namespace weft {

namespace {

// The CPUs that a thread may run on, bit by bit.
struct AffinityMask {
  std::vector<unsigned char> bytes;

  cpu_set_t* set() { return reinterpret_cast<cpu_set_t*>(bytes.data()); }
  int count() { return CPU_COUNT_S(bytes.size(), set()); }
};

// Of a thread, 0 for this one; empty where the kernel does not say.
AffinityMask affinity_mask(pid_t thread) {
  // The mask of a very large machine does not fit in cpu_set_t: grow until the kernel accepts.
  for (size_t cpus = 1024; cpus <= size_t{1} << 20; cpus *= 4) {
    AffinityMask mask{std::vector<unsigned char>(cpus / 8)};
    if (::sched_getaffinity(thread, mask.bytes.size(), mask.set()) == 0) return mask;
  }
  return {};
}

int cpus_in_affinity_mask() {
  AffinityMask mask = affinity_mask(0);
  return mask.bytes.empty() ? 1 : mask.count();
}

// This process's group in the unified hierarchy ("0::/user.slice/x"), or in v1's cpu hierarchy.
std::string cgroup_path(std::string_view listing, std::string_view controller) {
  while (!listing.empty()) {
    const std::string_view line = listing.substr(0, listing.find('\n'));
    listing.remove_prefix(std::min(listing.size(), line.size() + 1));
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string_view names = line.substr(first + 1, second - first - 1);
    const bool match =
        controller.empty() ? names.empty() : names.find(controller) != std::string_view::npos;
    if (match) return std::string(line.substr(second + 1));
  }
  return "";
}

// A group is held by every quota from itself up to the root.
int least_quota(std::string path) {
  int least = INT_MAX;
  while (true) {
    const int v2 = cpus_of_quota(read_small_file("/sys/fs/cgroup" + path + "/cpu.max"));
    if (v2 > 0) least = std::min(least, v2);
    const std::string v1 = "/sys/fs/cgroup/cpu" + path;
    const std::string quota = read_small_file(v1 + "/cpu.cfs_quota_us");
    if (!quota.empty() && quota[0] != '-') {
      const int cpus = cpus_of_quota(quota + " " + read_small_file(v1 + "/cpu.cfs_period_us"));
      if (cpus > 0) least = std::min(least, cpus);
    }
    if (path.empty() || path == "/") return least;
    path.erase(path.rfind('/'));
  }
}

}  // namespace

int cpus_of_quota(std::string_view cpu_max) {
  int64_t numbers[2] = {0, 100000};  // microseconds of CPU per microseconds of time
  const char* at = cpu_max.data();
  const char* end = at + cpu_max.size();
  for (int64_t& number : numbers) {
    while (at < end && (*at == ' ' || *at == '\n')) ++at;
    if (at == end) break;
    auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return 0;  // "max"
    at = next;
  }
  if (numbers[0] <= 0 || numbers[1] <= 0) return 0;
  const int64_t cpus = (numbers[0] - 1) / numbers[1] + 1;
  return static_cast<int>(std::min<int64_t>(cpus, INT_MAX));
}

int available_cpus() {
  const std::string listing = read_small_file("/proc/self/cgroup");
  int cpus = cpus_in_affinity_mask();
  cpus = std::min(cpus, least_quota(cgroup_path(listing, "")));
  cpus = std::min(cpus, least_quota(cgroup_path(listing, "cpu")));
  return std::max(cpus, 1);
}

void keep_off(int cpu, std::span<std::thread> threads) {
  AffinityMask others = affinity_mask(::getpid());
  if (cpu < 0 || static_cast<size_t>(cpu) / 8 >= others.bytes.size()) return;
  CPU_CLR_S(static_cast<size_t>(cpu), others.bytes.size(), others.set());
  if (others.count() == 0) return;
  for (std::thread& thread : threads)
    ::pthread_setaffinity_np(thread.native_handle(), others.bytes.size(), others.set());
}

}  // namespace weft
