// Whether every access of a kernel is in range, asked of Z3.
#pragma once
#include <cstdint>
#include <string>

#include "weft/graph/node.h"

namespace weft::test {

struct Bounds {
  int64_t proved = 0;
  int64_t unknown = 0;       ///< Z3 gave up within its steps
  std::string refuted = {};  ///< the first access that may be outside, and where
};

/// False where this build has no Z3.
bool can_prove_bounds();

/// For every value of ranges and variables, and whatever data hold: an access whose mask is true is
/// inside of its buffer. `sink` is a kernel whose ranges are still open, as lower.guard_accesses
/// leaves it.
Bounds prove_bounds(NodeRef sink);

}  // namespace weft::test
