// Log lines. Silent unless asked: what is printed depends on Options::debug and on the sink.
#pragma once

#include <string_view>

#include "weft/base/format.h"

namespace weft {

class Context;

// True when WEFT_DEBUG is at least `level`.
bool log_enabled(const Context& context, int level);

// One line (a newline is added), whatever the level: ask log_enabled first.
void log_line(Context& context, std::string_view line);

template <class... Args>
void log_at(Context& context, int level, fmt::format_string<Args...> pattern, Args&&... args) {
  if (log_enabled(context, level)) {
    log_line(context, fmt::vformat(pattern, fmt::make_format_args(args...)));
  }
}

}  // namespace weft
