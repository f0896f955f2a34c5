// Random graphs as tensors: what run/ makes of them, to be compared with the oracle or among
// machines.
#pragma once
#include <memory>
#include <vector>

#include "weft/run/storage.h"
#include "weft/trust/random_graph.h"

namespace weft {

using Storages = std::vector<std::shared_ptr<Storage>>;

/// The graph's params in memory, by slot; null where it has none. Their sizes are bound.
Storages params_of(Context& context, const RandomGraph& r, const eval::Inputs& binding);
/// Its roots in `context`, lazy, over these params.
Storages storages_of(Context& context, const RandomGraph& r, const eval::Inputs& binding,
                     const Storages& params);
/// The same over params of their own.
Storages storages_of(Context& context, const RandomGraph& r, const eval::Inputs& binding);

/// What a realized storage holds.
eval::Array array_of(const Storage& s);

}  // namespace weft
