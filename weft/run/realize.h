// realize(): computes the values of storages.
#pragma once
#include <memory>
#include <span>

#include "weft/run/storage.h"

namespace weft {

/// Computes the values of all `storages` together and leaves each with a Buffer node as its value.
/// Storages that are realized already are skipped. When anything fails (an Error is thrown) every
/// storage keeps the value it had.
void realize(Context& context, std::span<const std::shared_ptr<Storage>> storages);

}  // namespace weft
