// A linear program as text in a dialect of C. Freestanding: no headers but a dialect's own, no
// library calls.
#pragma once

#include <string>
#include <string_view>

#include "weft/graph/program.h"
#include "weft/render/dialect.h"
#include "weft/render/render.h"

namespace weft {

std::string render_c(const LinearProgram& program, const CDialect& dialect, std::string_view entry,
                     const RenderOptions& options);

}  // namespace weft
