// Random graphs as tensors: what run/ makes of them, to be compared with the oracle or among
// machines.
#pragma once
#include <memory>
#include <vector>

#include "weft/run/storage.h"
#include "weft/trust/random_graph.h"

namespace weft {

/// The graph's roots in `context`, lazy; its params are in memory and its variables bound.
std::vector<std::shared_ptr<Storage>> storages_of(Context& context, const RandomGraph& r,
                                                  const eval::Inputs& binding);

/// What a realized storage holds.
eval::Array array_of(const Storage& s);

}  // namespace weft
