#include "weft/base/slabs.h"

#include <new>

#include "weft/base/thread_cache.h"

namespace weft {
namespace {

struct Slab;  // nothing is known of it
void release(Slab* slab) { ::operator delete(slab, std::align_val_t{64}); }

using Spare = ThreadCache<struct SpareSlabs, Slab, 16, release>;  // 1 MiB

// AddressSanitizer sees what is used after its end only if nothing is kept.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeep = false;
#elif defined(__has_feature)
constexpr bool kKeep = !__has_feature(address_sanitizer);
#else
constexpr bool kKeep = true;
#endif

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

}  // namespace weft
