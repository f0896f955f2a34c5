#include "weft/run/recording_scope.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/run/run_state.h"

namespace weft {

std::string start_recording(Context& context, const std::string& path) {
  RunState& run = context.get<RunState>();
  const std::lock_guard lock(run.mutex);
  if (run.recorder)
    fail("viz.recording",
         "cannot record to {}: what runs is recorded to {} already; end that first",
         path.empty() ? "a new file" : path, run.recorder->path());
  auto recorder = Recorder::open_at(context, path);
  clear_run_caches(context);
  run.recorder = std::move(recorder);
  return run.recorder->path();
}

void stop_recording(Context& context) {
  RunState& run = context.get<RunState>();
  const std::lock_guard lock(run.mutex);
  if (!run.recorder) return;
  run.recorder->finish();
  run.ended.push_back(std::move(run.recorder));
}

RecordingScope::RecordingScope(const std::string& path)
    : RecordingScope(Context::current(), path) {}

}  // namespace weft
