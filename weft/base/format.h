// Text formatting. The only door to fmt: its implementation is compiled once, in format.cpp.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace weft {

template <class... Args>
std::string strformat(fmt::format_string<Args...> pattern, Args&&... args) {
  return fmt::vformat(pattern, fmt::make_format_args(args...));
}

void append_vformat(std::string& out, fmt::string_view pattern, fmt::format_args args);

template <class... Args>
void append_format(std::string& out, fmt::format_string<Args...> pattern, Args&&... args) {
  append_vformat(out, pattern, fmt::make_format_args(args...));
}

std::string human_bytes(int64_t bytes);  // "1000 B", "1.5 MiB"

}  // namespace weft
