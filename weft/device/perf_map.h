// The names of generated code for Linux perf.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace weft {

/// Where perf looks for what this process generated: /tmp/perf-<pid>.map. Nothing removes it: perf
/// reads it after the process has ended.
std::string perf_map_path();

/// Appends a line: code of `bytes` bytes at `entry` is called `name`. Any thread may call; where
/// the file cannot be written nothing happens, because kernels run without it.
void add_to_perf_map(const void* entry, size_t bytes, std::string_view name);

}  // namespace weft
