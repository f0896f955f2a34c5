// LoopPlan: what is chosen about a kernel's loops, as a value: searched for, written down on one
// line, read back.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// How the ranges of one kernel are cut and which of their loops runs around the tiles. A plan for
/// another kernel, or one that nobody made, is found out before anything is cut by it.
struct LoopPlan {
  struct Of {
    int64_t lanes = 1;   ///< of the vector it becomes
    int64_t unroll = 1;  ///< copies, of vectors
    bool operator==(const Of&) const = default;
  };
  uint64_t loops = 0;           ///< whose ranges these are: the structural hash of what is cut
  std::vector<Of> ranges = {};  ///< by position; none: a matrix unit's own tiles
  int64_t innermost = -1;  ///< position of the range whose loop runs right around a tile; -1: any
  int64_t stream = 0;      ///< what comes by again fills 2^stream times its share of a cache
  bool borders = true;     ///< a copy with zeros around it is rows without masks, and borders

  bool unit() const { return ranges.empty(); }
  bool operator==(const LoopPlan&) const = default;
};

/// `loops=0123456789abcdef tiles=1x4,16x2 innermost=0 stream=0 borders=1`: lanes x copies of each
/// range, or `tiles=unit`.
std::string text(const LoopPlan& plan);
/// Null for anything that text() does not write.
std::optional<LoopPlan> parse_loop_plan(std::string_view line);

}  // namespace weft
