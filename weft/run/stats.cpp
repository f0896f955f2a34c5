#include "weft/run/stats.h"

#include "weft/base/context.h"
#include "weft/base/format.h"
#include "weft/run/buffer_table.h"
#include "weft/run/run_state.h"

namespace weft {
namespace {

constexpr size_t kNodesWorthSweeping = 100000;

}  // namespace

RunState::RunState(Context& context) {
  // Made before us, so destroyed after us: kernels belong to devices.
  context.get<BufferTable>();
}

void RunState::collect() {
  if (graph.live_nodes() < 2 * nodes_after_sweep_ + kNodesWorthSweeping) return;
  graph.sweep();
  nodes_after_sweep_ = graph.live_nodes();
}

RunStats run_stats(Context& context) {
  RunState& run = context.get<RunState>();
  std::lock_guard lock(run.mutex);
  RunStats stats = run.stats;
  const AllocatorStats memory = context.get<DeviceTable>().default_device().allocator().stats();
  stats.memory_live = memory.live_bytes;
  stats.memory_peak = memory.peak_bytes;
  stats.schedules = run.schedules.counts();
  stats.kernel_cache = run.kernels.counts();
  return stats;
}

void reset_run_stats(Context& context) {
  RunState& run = context.get<RunState>();
  std::lock_guard lock(run.mutex);
  run.stats = {};
  context.get<DeviceTable>().default_device().allocator().reset_peak();
}

void clear_run_caches(Context& context) {
  RunState& run = context.get<RunState>();
  std::lock_guard lock(run.mutex);
  run.schedules.clear();
  run.kernels.clear();
}

std::string stats_text(const RunStats& s) {
  return strformat(
      "{} realizes, {} replays: {} kernels, {} copies, {:.3f} Gflop, {:.3f} GB in {:.3f} s; "
      "compiling took {:.3f} s; memory {} live, {} at most; schedules {} hits of {}, kernels {} "
      "hits of {}",
      s.realizes, s.replays, s.kernels, s.copies, s.flops * 1e-9, s.bytes * 1e-9, s.seconds,
      s.compile_seconds, s.memory_live, s.memory_peak, s.schedules.hits,
      s.schedules.hits + s.schedules.misses, s.kernel_cache.hits,
      s.kernel_cache.hits + s.kernel_cache.misses);
}

}  // namespace weft
