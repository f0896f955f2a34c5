// "Did you mean": the closest known name to one that was mistyped.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace weft {

// Insertions, deletions, substitutions and swaps of neighbours, ignoring case.
int edit_distance(std::string_view a, std::string_view b);

// "; did you mean X?" when a candidate is near enough, else "". Made to end an error message.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace weft
