// Whether every access of a kernel is in range, asked of Z3.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "weft/base/function_ref.h"
#include "weft/graph/node.h"

namespace weft {
struct Target;
}

namespace weft::test {

struct Bounds {
  int64_t plain = 0;  ///< not asked: the bounds of the index lie inside of the memory's
  int64_t proved = 0;
  int64_t unknown = 0;       ///< Z3 gave up within its steps
  std::string refuted = {};  ///< the first access that may be outside, and where
};

/// False where this build has no Z3.
bool can_prove_bounds();

/// For every value of ranges and variables, and whatever data hold: an access whose mask is true is
/// inside of its buffer. `sink` is a kernel whose ranges are still open, as lower.guard_accesses
/// leaves it. `all`: asks of those, too, for which the bounds that nodes have are enough.
Bounds prove_bounds(NodeRef sink, bool all = true);

/// The kernels that the roots become for `target`, right after their accesses were guarded. They
/// live as long as the call. In the current Context.
void each_guarded_kernel(std::span<const NodeRef> roots, const Target& target,
                         FunctionRef<void(const std::string& name, NodeRef sink)> visit);

}  // namespace weft::test
