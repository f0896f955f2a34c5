// Targets that have a matrix unit's tiles, and what is by them.
#pragma once
#include <algorithm>
#include <ostream>

#include "weft/graph/loops.h"
#include "weft/optimize/optimize.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"

namespace weft {

inline Target target_with(std::initializer_list<CpuFeature> features) {
  CpuFeatures cpu;
  for (CpuFeature f : features) cpu.set(f, true);
  return make_target("x86", cpu, 2);
}

// Tiles are cut where their columns fill a vector.
inline const Target kWideTiles =
    target_with({CpuFeature::Avx2, CpuFeature::Fma, CpuFeature::Avx512f, CpuFeature::Avx512bw,
                 CpuFeature::Avx512dq, CpuFeature::Avx512vl, CpuFeature::Avx512bf16,
                 CpuFeature::AmxTile, CpuFeature::AmxBf16});

/// Kernels whose sums are of tiles, and all that there are.
struct Kernels {
  size_t tiled = 0, all = 0;
  bool operator==(const Kernels&) const = default;
};
inline Kernels kernels_of(NodeRef sum, const Target& target) {
  const ScheduleOutput out[] = {{sum}};
  const Schedule made = make_schedule(out, target, {});
  Kernels n;
  for (const ScheduleStep& step : made.steps) {
    const Kernel& k = made.kernels[static_cast<size_t>(step.kernel)];
    const Kernel better = optimize_kernel(k, target, {});
    const Toposort nodes(better.sink);
    n.tiled += std::ranges::any_of(nodes.nodes(), [](NodeRef r) {
      return r->op == Op::Range && range_binding(r) == Binding::Tile;
    });
    ++n.all;
  }
  return n;
}
inline std::ostream& operator<<(std::ostream& out, const Kernels& n) {
  return out << n.tiled << " tiled of " << n.all;
}

}  // namespace weft
