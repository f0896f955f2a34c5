// Choosing lanes and unroll factors for every range of a kernel, by the cost model.
#pragma once
#include "weft/optimize/cost.h"
#include "weft/optimize/loop_nest.h"

namespace weft::optimize {

/// How a range of this kernel is cut into pieces of `size` iterations.
enum class Cut : uint8_t {
  No,       ///< it cannot be
  Exact,    ///< size divides
  Overlap,  ///< an parallel range; the last piece overlaps
  Short,    ///< the same, but it may be shorter than a piece: a loop of its own for when it is
  Peel,     ///< a reduction; the remainder gets a loop of its own
};
Cut cut_of(const KernelInfo& info, size_t range, int64_t size);
/// Whether this remainder of a reduction is whole vectors, of which the last overlaps.
bool ends_in_vector(const KernelInfo& info, size_t range, const Tiling::Of& tile);

Tiling choose_tiling(const KernelInfo& info, const CostModel& model, const Target& target);

/// Pairs of ranges, the outer first, that every access walks as one: x[i*n + j] for all i, j.
struct Mergeable {
  size_t outer, inner;
};
bool find_mergeable(const KernelInfo& info, RangeMask done, Mergeable& out);

}  // namespace weft::optimize
