// What the compiler would do, step by step: nothing is run, loaded or cached.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/graph/graph.h"
#include "weft/rewrite/pass.h"

namespace weft {

class Context;
class Storage;

/// The passes from a graph to code: from normalising on for values of tensors, from scheduling on
/// for values in normal form, from optimizing on for the sink of a kernel. `texts`: with the states
/// before and after each.
std::vector<PassRecord> explain_passes(Context& context, std::span<const NodeRef> roots,
                                       bool texts);
/// The same of what realize() would compute: nothing where all is in memory already.
std::vector<PassRecord> explain_passes(Context& context,
                                       std::span<const std::shared_ptr<Storage>> storages,
                                       bool texts);

}  // namespace weft
