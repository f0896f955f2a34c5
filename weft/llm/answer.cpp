#include "weft/llm/answer.h"

#include <algorithm>
#include <string_view>

namespace weft::llm {

/// How many of the last bytes could be the beginning of a stop text.
size_t Answer::waiting() const {
  size_t most = 0;
  for (const std::string& stop : stop_)
    for (size_t n = std::min(held_.size(), stop.size()); n > most; --n)
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) most = n;
  return most;
}

std::string Answer::shown(const std::string& more, bool whole) {
  held_ += more;
  size_t end = std::string::npos;
  for (const std::string& stop : stop_)
    if (!stop.empty()) end = std::min(end, held_.find(stop));
  stopped_ = end != std::string::npos;
  if (!stopped_) end = whole ? held_.size() : held_.size() - waiting();
  std::string out = held_.substr(0, end);
  held_.erase(0, end);
  if (stopped_) held_.clear();
  return out;
}

}  // namespace weft::llm
