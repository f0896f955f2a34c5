// Statistics of a context's runs: what was launched, how long it took, what the caches did.
#pragma once

#include <cstdint>
#include <string>

#include "weft/base/function_ref.h"
#include "weft/run/lru_cache.h"

namespace weft {

class Context;

/// Since the context was made or reset_run_stats(). Kernels whose sizes are symbolic count no flops
/// and bytes.
struct RunStats {
  int64_t realizes = 0, replays = 0;
  int64_t kernels = 0, copies = 0;
  double flops = 0, bytes = 0;               ///< of the kernels launched
  double seconds = 0;                        ///< in command lists, host waiting included
  double compile_seconds = 0;                ///< scheduling, lowering and loading
  int64_t memory_live = 0, memory_peak = 0;  ///< bytes, of the default device
  CacheCounts schedules, kernel_cache;
};

RunStats run_stats(Context& context);
/// Sets the sums to 0 and the peak to what is live now; caches keep their contents.
void reset_run_stats(Context& context);
/// Kernels that are compiled while `work` runs, by any thread.
int64_t kernels_compiled_by(Context& context, FunctionRef<void()> work);
/// Forgets every cached schedule and kernel.
void clear_run_caches(Context& context);

}  // namespace weft
