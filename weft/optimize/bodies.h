// The innermost loops of a kernel and what runs in them, which the cost model counts.
#pragma once
#include <vector>

#include "weft/optimize/kernel_info.h"

namespace weft::optimize {

/// What runs together in one innermost loop: the reductions over the same ranges at the same place,
/// or the stores and what only they need.
struct Body {
  RangeMask deps = 0;     ///< ranges whose loops it runs in
  RangeMask own = 0;      ///< ranges its reductions close; 0 for stores
  int results = 0;        ///< accumulators of one copy
  bool products = false;  ///< a sum of products: multiplication and addition are one operation
  RangeMask masked = 0;   ///< ranges that decide whether anything is folded at all
  struct Work {
    RangeMask deps;
    float cycles;   ///< per vector (or scalar, where it does not depend on the vector range)
    bool per_lane;  ///< masks and addresses, which are computed once per lane
  };
  SmallVector<Work, 8> work = {};
  void add_work(RangeMask in, double cycles, bool per_lane);
  SmallVector<uint32_t, 8> accesses = {};  ///< indices into KernelInfo::accesses
};

/// Of one operation on a vector, or on a scalar.
double op_cycles(Op op, DType dtype);
/// Those of reductions, by the ranges they close, and last that of everything outside of them.
std::vector<Body> find_bodies(const KernelInfo& info);

}  // namespace weft::optimize
