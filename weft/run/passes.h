// Every step between a tensor and bytes, as the tables of its stages list them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "weft/rewrite/pass.h"
#include "weft/rewrite/rule_set.h"

namespace weft {

class Context;

/// What a table says of a pass.
struct PassRow {
  const char* name;
  const char* after;
  bool verified;  ///< whether the pass itself asks for what does not hold afterwards
  bool optional;  ///< whether WEFT_PASSES may switch it off
};

/// In the order in which they run; either the codegen stage or the render stage does.
std::vector<PassRow> all_passes();

/// Every rule of the compiler: those that simplify, which WEFT_RULES may switch off, and those of
/// lowering.
std::vector<RuleSetRow> compiler_rule_sets();

/// Throws an Error (passes.unknown) where WEFT_PASSES names no optional pass.
void check_switched_passes(std::string_view list);

/// Records what this thread runs, where the context's observer or WEFT_DEBUG=8 wants that.
/// `watcher`: a recording, which may be null.
std::optional<PassTrace> trace_passes(Context& context, PassWatcher* watcher = nullptr);
/// Tells them what was recorded. The caller holds RunState::mutex.
void tell_passes(Context& context, std::span<const PassRecord> passes);
/// What this thread's trace has recorded so far, and has not told.
void tell_passes(Context& context);

}  // namespace weft
