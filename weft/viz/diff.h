// Line diffs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::viz {

struct DiffLine {
  enum class Kind : uint8_t { Same, Removed, Added, Skipped };
  Kind kind;
  size_t before = 0, after = 0;  ///< line numbers from 1; 0: it is not there
  std::string_view text = {};
  size_t count = 0;  ///< Skipped: lines that are left out
};

/// The lines of both texts, of which they must outlive the result; of equal ones only `context`
/// around what differs. Shortest for texts that differ in up to some thousand lines (Myers, "An
/// O(ND) Difference Algorithm and Its Variations", 1986); of others all between the equal beginning
/// and end is removed and added.
std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after, size_t context);

}  // namespace weft::viz
