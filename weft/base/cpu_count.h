// Which CPUs this process may really use, and how many.
#pragma once

#include <span>
#include <string_view>
#include <thread>

namespace weft {

// The least of the affinity mask and the cgroup quotas (rounded up); at least 1.
int available_cpus();

// Keeps threads off one CPU, until the next call, where the process may use others.
void keep_off(int cpu, std::span<std::thread> threads);

// CPUs granted by the text of cgroup v2's cpu.max ("200000 100000" is 2); 0 is no limit.
int cpus_of_quota(std::string_view cpu_max);

}  // namespace weft
