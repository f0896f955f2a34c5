// RunState: what the run room keeps in a Context.
#pragma once

#include <memory>
#include <mutex>

#include "weft/run/compile_report.h"
#include "weft/run/compiled_schedule.h"
#include "weft/run/stats.h"

namespace weft {

/// A slot of the Context. One realization, capture end or replay at a time holds the mutex.
class RunState {
 public:
  explicit RunState(Context& context);

  std::recursive_mutex mutex;
  Graph graph{Graph::Sharing::Shared};  ///< of the caches' keys
  LruCache<std::shared_ptr<const CompiledSchedule>> schedules{graph, 512};
  LruCache<std::shared_ptr<const CompiledKernel>> kernels{graph, 8192};
  CompileObserver observer;  ///< `weft explain`'s
  RunStats stats;            ///< the sums; run_stats() fills in the rest

  /// Sweeps the caches' graph once enough dead keys have gathered.
  void collect();

 private:
  size_t nodes_after_sweep_ = 0;
};

}  // namespace weft
