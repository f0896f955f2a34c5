// Recorder: writes down what a context compiles and runs while it does (WEFT_VIZ), for weft/viz.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/spans.h"
#include "weft/rewrite/pass.h"
#include "weft/run/compile_report.h"

namespace weft {

class Context;
class StreamWriter;

enum class RunKind : uint8_t { Realize, Capture, Replay };

/// What is known of a kernel that was compiled.
struct KernelFacts {
  std::string_view entry;   ///< Executable::name()
  std::string_view target;  ///< Target::name
  std::string_view code;    ///< machine code; empty where it is text, which its last pass has
  int64_t spilled = 0;
  int64_t code_bytes = 0;
  uint64_t ns = 0;  ///< that compiling took
};

/// Runs begin and end under RunState::mutex; the rest any thread may call. Whatever goes wrong with
/// the file ends the recording with a line in the log, never the program.
class Recorder final : public SpanSink {
 public:
  /// Null where WEFT_VIZ is 0. An Error (viz.place) where there is no file to write to.
  static std::unique_ptr<Recorder> open(Context& context);
  /// To this file, or where `path` is empty to one of the state directory.
  static std::unique_ptr<Recorder> open_at(Context& context, std::string path);
  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // ---- a run: a realization, the end of a capture, or a replay
  void begin_run(RunKind kind, std::string_view line);
  /// The run compiles: what its passes did is worth keeping. Those of other runs are not.
  void compiling();
  /// Of what the run executes; null where it came to nothing.
  void end_run(const CompiledSchedule* schedule, bool failed);
  /// For passes of the run itself.
  PassWatcher& run_passes();

  // ---- what is compiled
  RecordedAs new_kernel();
  std::unique_ptr<PassWatcher> kernel_passes(RecordedAs kernel);
  void kernel(RecordedAs as, const KernelReport& report, const KernelFacts& facts);
  void decisions(std::span<const DecisionReport> decisions);
  void schedule(const CompiledSchedule& schedule, FunctionRef<std::string(size_t step)> lines);
  /// Whether this recording has it.
  bool knows(const CompiledSchedule& schedule) const;
  /// Whether the run has compiled something.
  bool compiles() const;
  /// Which tensors the buffers are memory of: by buffer, empty where nothing is known.
  void names(const CompiledSchedule& schedule, std::span<const std::string> of);
  void memory(const PlannedMemory& plan);
  void searched(const SearchReport& report);

  void span(const SpanEvent& event) override;
  void flush() override;
  /// Nothing more is recorded; spans that other threads are about to tell are left out.
  void finish();
  const std::string& path() const;

 private:
  struct State;
  void add_span(const SpanEvent& event);
  explicit Recorder(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A run of a recorder, which may be null; one that ends by an exception has failed.
class RecordedRunScope {
 public:
  RecordedRunScope(Recorder* recorder, RunKind kind);
  ~RecordedRunScope();
  RecordedRunScope(const RecordedRunScope&) = delete;
  RecordedRunScope& operator=(const RecordedRunScope&) = delete;

  void executes(const CompiledSchedule& schedule) { schedule_ = &schedule; }

 private:
  Recorder* recorder_;
  const CompiledSchedule* schedule_ = nullptr;
  int exceptions_;
};

}  // namespace weft
