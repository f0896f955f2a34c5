#include "weft/base/slabs.h"

#include <new>

#include "weft/base/sanitizers.h"
#include "weft/base/thread_cache.h"

namespace weft {
namespace {

struct Slab;  // nothing is known of it
void release(Slab* slab) { ::operator delete(slab, std::align_val_t{64}); }

using Spare = ThreadCache<struct SpareSlabs, Slab, 16, release>;  // 256 KiB

// AddressSanitizer sees what is used after its end only if nothing is kept.
constexpr bool kKeep = !kAddressSanitizer;

}  // namespace

void* take_slab() {
  if (Slab* kept = Spare::take()) return kept;
  return ::operator new(kSlabBytes, std::align_val_t{64});
}

void give_slab(void* slab) noexcept {
  if (kKeep)
    Spare::give(static_cast<Slab*>(slab));
  else
    release(static_cast<Slab*>(slab));
}

void give_back_spare_slabs() noexcept {
  while (Slab* slab = Spare::take()) release(slab);
}

}  // namespace weft
