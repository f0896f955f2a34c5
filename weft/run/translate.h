// Stages 3 to 5 of pipeline.cpp: one kernel becomes machine code or text.
#pragma once

#include <string>

#include "weft/graph/program.h"
#include "weft/optimize/optimize.h"

namespace weft {

struct Target;

/// What became of a kernel.
struct Translation {
  OptimizeReport report;
  Kernel optimized;  ///< where WEFT_DEBUG=5 prints it
  LinearProgram program;
  std::string code;     ///< text, or machine code; empty where the target runs the program itself
  std::string listing;  ///< of machine code, where WEFT_DEBUG=4 prints it
  int64_t spilled = 0;  ///< values for which machine code has no register
};

/// `entry`: what its function is called in text. `distinct`: no buffer is bound to two slots.
/// `plan`: of its loops, where a search has found one. Runs on any thread.
Translation translate_kernel(const Kernel& kernel, const Target& target, std::string_view entry,
                             bool distinct = true, const LoopPlan* plan = nullptr);

}  // namespace weft
