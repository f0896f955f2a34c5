#include "weft/optimize/place.h"

#include <algorithm>
#include <bit>

namespace weft::optimize {
namespace {

// Enough items that workers can even out what the machine does to them; a number of the kernel's,
// not of the machine's threads, because code may not depend on those.
constexpr int64_t kEnoughItems = 64;
constexpr double kSecondCache = 512 << 10;  // bytes: half of a core's L2

bool every_reduction_needs(const KernelInfo& info, RangeMask ranges) {
  return std::all_of(info.reduces.begin(), info.reduces.end(), [&](NodeRef n) {
    const RangeMask open = info.deps(n) | info.closed_by(n);
    return (open & ranges) == ranges;
  });
}

bool every_store_needs(const KernelInfo& info, RangeMask ranges) {
  return std::all_of(info.accesses.begin(), info.accesses.end(),
                     [&](const Access& a) { return !a.is_store() || (a.deps & ranges) == ranges; });
}

/// Open, in no order that matters, and still a loop.
bool may_run_at_once(const LoopNest& nest, const KernelInfo& info, LoopNest::Axis a) {
  if (nest.binding(a) != Binding::Loop || nest.extent(a) <= 1) return false;
  for (RangeMask m = nest.parts_of(a); m != 0; m &= m - 1) {
    const RangeInfo& r = info.ranges[static_cast<size_t>(std::countr_zero(m))];
    if (!r.open || !r.free()) return false;
  }
  return true;
}

/// Bytes that one iteration of `axis` reads anew while everything inside it runs.
double fresh_bytes(const KernelInfo& info, const Tiling& tiling, size_t axis, RangeMask closed) {
  double fresh = 0, kept = 0;
  for (const Access& a : info.accesses) {
    if (a.is_store() || (a.deps & closed) == 0) continue;
    double bytes = bits(a.node->dtype) / 8.0, share = 1;
    for (RangeMask m = a.deps; m != 0; m &= m - 1) {
      const auto r = static_cast<size_t>(std::countr_zero(m));
      const bool inside = (closed & bit(r)) != 0;
      bytes *= static_cast<double>(inside || r >= tiling.ranges.size() ? info.ranges[r].extent
                                                                       : tiling.ranges[r].size());
      // A window that moves by less than its own size keeps most of what it covers.
      if (inside && a.stride[r] != 0 && a.stride[r] == a.stride[axis] &&
          axis < tiling.ranges.size())
        share = std::min(1.0, static_cast<double>(tiling.ranges[axis].size()) /
                                  static_cast<double>(info.ranges[r].extent));
    }
    if ((a.deps & bit(axis)) != 0)
      fresh += bytes * share;
    else
      kept += bytes;
  }
  return kept > kSecondCache ? fresh + kept : fresh;
}

}  // namespace

void order_loops(LoopNest& nest, const KernelInfo& info, const Tiling& tiling) {
  RangeMask closed = 0;
  for (NodeRef n : info.reduces) closed |= info.closed_by(n);
  if (closed == 0) return;
  std::vector<LoopNest::Axis> open;
  for (LoopNest::Axis a : nest.loops())
    if (may_run_at_once(nest, info, a)) open.push_back(a);
  if (open.size() < 2) return;
  for (LoopNest::Axis a : open)
    if (!every_reduction_needs(info, nest.parts_of(a))) return;
  LoopNest::Axis best = open.back();
  double least = 0;
  for (size_t i = open.size(); i-- > 0;) {
    const auto range = static_cast<size_t>(std::countr_zero(nest.parts_of(open[i])));
    const double bytes = fresh_bytes(info, tiling, range, closed);
    if (open[i] != open.back() && bytes >= least) continue;
    best = open[i];
    least = bytes;
  }
  if (best == open.back()) return;
  // Everything between moves outside instead: the others keep their order.
  for (size_t i = 0; i < open.size(); ++i)
    if (open[i] != best) nest.move_before(open[i], best);
}

void share_out(LoopNest& nest, const KernelInfo& info) {
  const std::vector<LoopNest::Axis> loops = nest.loops();
  auto first = std::find_if(loops.begin(), loops.end(), [&](LoopNest::Axis a) {
    return may_run_at_once(nest, info, a) &&
           (a == loops[0] || every_reduction_needs(info, nest.parts_of(a)));
  });
  if (first == loops.end()) return;
  LoopNest::Axis core = *first;
  nest.move_before(core, loops[0]);
  const bool shared = every_store_needs(info, nest.parts_of(core));
  while (shared && nest.extent(core) < kEnoughItems) {
    const std::vector<LoopNest::Axis>& now = nest.loops();
    if (now.size() < 2 || !may_run_at_once(nest, info, now[1])) break;
    const RangeMask parts = nest.parts_of(now[1]);
    if (!every_store_needs(info, parts) || !every_reduction_needs(info, parts)) break;
    core = nest.fuse(core, now[1]);
  }
  nest.bind(core, Binding::Core);
}

}  // namespace weft::optimize
