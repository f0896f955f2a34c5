// The C renderer: a linear program as freestanding C for GCC or Clang. No headers, no library
// calls.
#pragma once

#include <string>
#include <string_view>

#include "weft/graph/program.h"
#include "weft/render/render.h"

namespace weft {

std::string render_c(const LinearProgram& program, const Target& target, std::string_view entry,
                     const RenderOptions& options);

}  // namespace weft
