// KernelCode: a kernel's machine code with its loops, its registers' lives and what it may cost.
#pragma once

#include <string>
#include <vector>

#include "weft/codegen/machine/flow.h"
#include "weft/isa/x86_estimate.h"
#include "weft/viz/session_data.h"

namespace weft::viz {

struct KernelCode {
  std::vector<CodeLine> lines;
  codegen::ControlFlow flow;
  codegen::RegisterLives lives;
  std::vector<x86::Estimate> estimates;  ///< of loops, without the loops in them
  uint32_t hot = codegen::kNoLoop;  ///< the deepest loop; of several the one that takes longest
  Core core = Core::Unknown;        ///< that estimates are for
  int32_t frame_bytes = 0, in_memory = 0, rematerialised = 0;
  Bytes bytes;  ///< the function's, constants behind it; empty where they are not recorded

  std::string text(size_t line) const;
  Bytes bytes_of(size_t line) const;
  /// "B3"; with the label that jumps name, "B3 .L7".
  std::string block_name(size_t block) const;
  /// Whether the block is part of the hot loop.
  bool is_hot(size_t block) const {
    return hot != codegen::kNoLoop && flow.blocks[block].loop == hot;
  }
  int depth(size_t block) const {
    const uint32_t loop = flow.blocks[block].loop;
    return loop == codegen::kNoLoop ? 0 : flow.loops[loop].depth;
  }
};

/// Errors: viz.parameter where the kernel has no machine code of ours, viz.damaged, viz.limit.
KernelCode kernel_code(const Session::Data& data, uint32_t kernel);

/// Whether kernel_code() has an answer: not of a kernel of another target, nor of one that was
/// never finished.
bool has_kernel_code(const Session::Data& data, uint32_t kernel);

std::string register_name(const codegen::NamedRegister& reg);

}  // namespace weft::viz
