// A linear program as a WGSL module with one entry point, in terms of the baseline language:
// https://www.w3.org/TR/WGSL/ without extensions.
#pragma once

#include <string>
#include <string_view>

#include "weft/graph/program.h"

namespace weft {

/// Invocations of a workgroup, where the program does not say.
constexpr uint32_t kWgslGroup = 64;

/// Work item i runs item args.begin + i, and none from args.end on; in a program of groups, the
/// item that its group and its place there say. Bindings of group 0: the
/// uniform `args` (words: begin, end, zero, where each param begins in its binding in elements,
/// low and high word of each variable), then param i at i + 1 where the program uses it.
std::string render_wgsl(const LinearProgram& program, std::string_view entry);

}  // namespace weft
