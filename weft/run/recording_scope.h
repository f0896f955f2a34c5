// RecordingScope: a stretch of a program that is recorded for `weft viz`.
#pragma once

#include <string>

namespace weft {

class Context;

/// Records to `path` what the context compiles and runs from now on; where that is empty to a new
/// file of the state directory, as WEFT_VIZ=1 would. What was compiled before is compiled again
/// where it is needed, so that there is something to see; functions that were captured keep their
/// kernels. The file's path. Errors: viz.recording where the context records already, viz.place,
/// file.write.
std::string start_recording(Context& context, const std::string& path);
/// Nothing where it does not record.
void stop_recording(Context& context);

///   {
///     const RecordingScope recording("step.weftviz");
///     train_step();
///   }  // weft viz step.weftviz
class RecordingScope {
 public:
  explicit RecordingScope(const std::string& path = "");
  RecordingScope(Context& context, const std::string& path)
      : context_(context), path_(start_recording(context, path)) {}
  ~RecordingScope() { stop_recording(context_); }
  RecordingScope(const RecordingScope&) = delete;
  RecordingScope& operator=(const RecordingScope&) = delete;

  const std::string& path() const { return path_; }

 private:
  Context& context_;
  std::string path_;
};

}  // namespace weft
