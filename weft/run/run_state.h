// RunState: what the run room keeps in a Context.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include "weft/base/crash_note.h"
#include "weft/base/fork.h"
#include "weft/run/compile_report.h"
#include "weft/run/normalise.h"
#include "weft/run/pipeline.h"
#include "weft/run/plan_cache.h"
#include "weft/run/recorder.h"
#include "weft/run/shared_arenas.h"
#include "weft/run/stats.h"

namespace weft {

/// Recursive. Who waits to fork is next, however busy the others are.
class RunMutex final : ForkLock {
 public:
  void lock();
  void unlock();

 private:
  void before_fork() override;
  bool try_before_fork() override { return mutex_.try_lock(); }
  void after_in_parent() override;
  void after_in_child() override;

  std::recursive_mutex mutex_;
  std::atomic<std::thread::id> owner_;
  int depth_ = 0;  // of the owner's
  std::atomic<bool> forking_{false};
  Registration registration_{*this, Order::Run};
};

/// A slot of the Context. One realization, capture end or replay at a time holds the mutex.
class RunState {
 public:
  explicit RunState(Context& context);

  RunMutex mutex;
  Graph graph{Graph::Sharing::Shared};  ///< of the caches' keys
  // About 4000 kernels of a few dozen operations.
  LruCache<std::shared_ptr<const Prepared>> schedules{graph, 512, size_t{64} << 20};
  LruCache<std::shared_ptr<const CompiledKernel>> kernels{graph, 8192, size_t{64} << 20};
  KnownPrograms known;
  PlanCache plans;                     ///< that searches found
  SharedArenas arenas;                 ///< of captured functions
  CompileObserver observer;            ///< `weft explain`'s
  std::unique_ptr<Recorder> recorder;  ///< with WEFT_VIZ, else null
  std::unique_ptr<CrashNote> note;     ///< with WEFT_REPRO, else null
  /// Ended ones: a thread may be about to tell them of a span.
  std::vector<std::unique_ptr<Recorder>> ended;
  RunStats stats;           ///< the sums; run_stats() fills in the rest
  size_t nodes_walked = 0;  ///< of the tensor graph, when its dead ones last went

  /// Sweeps the caches' graph once enough dead keys have gathered.
  void collect();
  void sweep();

 private:
  size_t nodes_after_sweep_ = 0;
};

}  // namespace weft
