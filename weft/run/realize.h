// realize(): values become buffers. What happens between is listed in pipeline.h.
#pragma once

#include <memory>
#include <span>

#include "weft/run/storage.h"

namespace weft {

/// Computes the values of all `storages` together and leaves each with a Buffer node as its value.
/// Storages that are realized already are skipped; equal values share a buffer until one of them is
/// written. A storage that was realized before keeps its memory when nothing else alive can still
/// read the old contents, else it gets fresh memory. When anything fails (an Error is thrown) every
/// storage keeps the value it had. Any thread may call, outside of Graph::Building scopes; one at a
/// time runs.
void realize(Context& context, std::span<const std::shared_ptr<Storage>> storages);

/// Realizes and copies the elements to the host.
void read_bytes(const std::shared_ptr<Storage>& storage, std::span<std::byte> out);

/// Frees graph nodes and buffers that nothing alive refers to. realize() does so when it pays off.
void collect_garbage(Context& context);

}  // namespace weft
