// A linear program as a PTX module with one entry point, in terms of NVIDIA's "Parallel Thread
// Execution ISA": comments name its sections.
#pragma once

#include <string>
#include <string_view>

#include "weft/graph/program.h"
#include "weft/render/render.h"

namespace weft {

/// The first lines of every module, which no other line may repeat: texts are joined without
/// theirs. bf16 conversions and max.NaN begin with sm_80; drivers assemble it for every newer
/// machine. A text that uses what only newer ones have says so here.
inline constexpr std::string_view kPtxHeader = ".version 7.8\n.target sm_80\n.address_size 64\n";

/// Parameters: a .u64 pointer for each param, a .s64 for each variable; where the program is not
/// grouped .u32 begin and end: work item ctaid.x * ntid.x + tid.x runs item begin + that, and none
/// from end on.
std::string render_ptx(const LinearProgram& program, std::string_view entry,
                       const RenderOptions& options);

}  // namespace weft
