#include "weft/base/names.h"

#include <algorithm>
#include <vector>

namespace weft {

namespace {
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  const size_t width = b.size() + 1;
  std::vector<int> before(width), last(width), row(width);
  for (size_t j = 0; j < width; ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j < width; ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                           lower(a[i - 2]) == lower(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  // A third of the letters may be wrong: more would suggest unrelated short names.
  int best = static_cast<int>(std::max<size_t>(1, name.size() / 3)) + 1;
  std::string_view nearest;
  for (std::string_view candidate : candidates) {
    const int distance = edit_distance(name, candidate);
    if (distance < best) best = distance, nearest = candidate;
  }
  if (nearest.empty()) return "";
  return "; did you mean " + std::string(nearest) + "?";
}

}  // namespace weft
