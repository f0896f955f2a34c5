// The pass after which a kernel computes something else, found by executing it before and after.
#pragma once
#include <optional>

#include "weft/trust/bisect.h"

namespace weft::trust {

/// For what cannot be left out: every kernel of `program` is compiled for the device of `options`
/// and executed by the definition of its graph (kernel_eval.h) before and after each pass, on
/// numbers made up. The first pass that differs; nothing where none does, or where graphs are too
/// large or no graphs any more, as after linearising.
std::optional<Culprit> guilty_pass(const RandomGraph& program, const Options& options,
                                   const Isolation& isolation = {});

}  // namespace weft::trust
