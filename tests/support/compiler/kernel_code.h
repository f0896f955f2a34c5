// What a target's device takes: text for its compiler, machine code, or nothing.
#pragma once
#include <string>

#include "weft/codegen/codegen.h"
#include "weft/lower/lower.h"
#include "weft/render/render.h"

namespace weft::testing {

inline std::string kernel_code(const LinearProgram& program, const Target& target,
                               std::string_view entry) {
  if (target.machine_code) return generate_code(program, target).bytes;
  return target.renderer.empty() ? "" : render(program, target, entry);
}

}  // namespace weft::testing
