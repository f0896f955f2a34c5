#include "weft/run/stats.h"

#include "weft/base/context.h"
#include "weft/base/format.h"
#include "weft/base/spans.h"
#include "weft/lower/lower.h"
#include "weft/rewrite/switches.h"
#include "weft/run/buffer_table.h"
#include "weft/run/passes.h"
#include "weft/run/run_state.h"
#include "weft/run/storage.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace {

constexpr size_t kNodesWorthSweeping = 100000;

}  // namespace

RunState::RunState(Context& context) : known(tensor_graph(context), graph), plans(context) {
  // Made before us, so destroyed after us: kernels belong to devices.
  context.get<BufferTable>();
  if (!context.options().rules.empty())
    check_switches(context.options().rules, simplify_rule_sets(), lower_rule_sets());
  check_switched_passes(context.options().passes);
  recorder = Recorder::open(context);
  if (!context.options().repro.empty()) note = std::make_unique<CrashNote>(context.options().repro);
}

void RunMutex::lock() {
  const std::thread::id self = std::this_thread::get_id();
  if (forking_.load() && owner_.load(std::memory_order_relaxed) != self) forking_.wait(true);
  mutex_.lock();
  owner_.store(self, std::memory_order_relaxed);
  ++depth_;
}

void RunMutex::unlock() {
  if (--depth_ == 0) owner_.store(std::thread::id(), std::memory_order_relaxed);
  mutex_.unlock();
}

void RunMutex::before_fork() {
  forking_ = true;
  mutex_.lock();
}

void RunMutex::after_in_parent() {
  mutex_.unlock();
  forking_ = false;
  forking_.notify_all();
}

void RunMutex::after_in_child() {
  new (&mutex_) std::recursive_mutex;
  for (int i = 0; i < depth_; ++i) mutex_.lock();  // it was this thread's own
  forking_ = false;
}

void RunState::collect() {
  if (graph.live_nodes() >= nodes_after_sweep_ * 3 / 2 + kNodesWorthSweeping) sweep();
}

void RunState::sweep() {
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

int64_t kernels_compiled_by(Context& context, FunctionRef<void()> work) {
  Tracer& tracer = context.tracer();
  tracer.start();
  work();
  int64_t kernels = 0;
  for (const Tracer::Total& span : tracer.totals())
    if (std::string_view(span.name) == "lower") kernels += static_cast<int64_t>(span.count);
  tracer.stop();
  return kernels;
}

void clear_run_caches(Context& context) {
  RunState& run = context.get<RunState>();
  std::lock_guard lock(run.mutex);
  run.schedules.clear();
  run.kernels.clear();
  run.known.clear();
  run.sweep();
}

}  // namespace weft
