// CompileReport: what compiling a schedule decided, as data. WEFT_DEBUG=3 and `weft explain` print
// it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/optimize/beam.h"
#include "weft/rewrite/pass.h"
#include "weft/run/arenas.h"

namespace weft {

/// Why a value was computed with its consumer or given a buffer.
struct DecisionReport {
  bool staged;
  std::string value, reason;
  std::string lines;  ///< the user's, "net.cpp:40 .. net.cpp:42"; empty where they are not known
};

/// A kernel that no cache had.
struct KernelReport {
  std::string name, device, lines;
  std::vector<std::string> applied;         ///< how its loops were split, in words
  double flops = 0, bytes = 0;              ///< of one launch, where sizes are static
  std::vector<std::string> each_line = {};  ///< of the user's; `lines` is the first and the last
};

/// A search for a kernel's plan: what it has come to so far.
struct SearchReport {
  std::string kernel, device, lines;
  BeamResult result;
  double seconds = 0;            ///< since it began
  double cycles_per_second = 0;  ///< of the processor, for the model's predictions
  int64_t width = 0;
  bool over = false;
};

struct CompileReport {
  std::vector<DecisionReport> decisions;
  std::vector<KernelReport> kernels;
};

/// What a kernel or copy took that ran alone.
struct CommandReport {
  std::string name, device, lines;
  size_t step = 0, buffers = 0;
  int64_t live_bytes = 0;  ///< of the device's memory
  double seconds = 0, flops = 0, bytes = 0;
};

/// As WEFT_DEBUG=3 prints them, without a newline at the end.
std::string text(const DecisionReport& decision);
std::string text(const KernelReport& kernel);
/// As WEFT_DEBUG=1 prints it when it is over.
std::string text(const SearchReport& search);
/// As WEFT_DEBUG=2 prints it.
std::string text(const CommandReport& command);
/// "lower.unroll reduce_8_8: 120 -> 480, 12 rules, 35 us", as WEFT_DEBUG=8 prints it.
std::string text(const PassRecord& pass);

/// Who wants to know what a context compiles and runs. Called under the run state's mutex.
struct CompileObserver {
  /// Every pass, in order: normalising, the schedule's, each kernel's, memory's.
  std::function<void(const PassRecord&)> passed;
  bool texts = false;  ///< with the graphs before and after it
  std::function<void(const CompileReport&)> compiled;
  std::function<void(const SearchReport&)> searched;  ///< after each round, and at the end
  std::function<void(const PlannedMemory&)> planned;  ///< what is about to run
  std::function<void(const CommandReport&)> ran;      ///< runs everything one by one
};

}  // namespace weft
