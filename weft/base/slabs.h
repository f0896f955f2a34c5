// Slabs: blocks of one size for short-lived graphs. A thread keeps a few that it gave back, so that
// lowering a kernel finds warm memory instead of asking the system for pages.
#pragma once

#include <cstddef>

namespace weft {

constexpr size_t kSlabBytes = size_t{16} << 10;

/// A block of kSlabBytes, aligned to 64; throws std::bad_alloc. Any thread may give it back.
void* take_slab();
void give_slab(void* slab) noexcept;
/// What this thread keeps.
void give_back_spare_slabs() noexcept;

}  // namespace weft
