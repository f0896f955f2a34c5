#include "weft/base/arena.h"

#include <cstdint>
#include <cstdlib>

namespace weft {

struct Arena::Slab {
  Slab* older;
};

void* Arena::allocate_slow(size_t size, size_t align) {
  const size_t header = sizeof(Slab) + align - 1;
  if (size > SIZE_MAX - header) throw std::bad_alloc();
  // What does not fit beside small things gets a slab of its own; the current slab stays open.
  const bool own = size + header > kSlabBytes / 4;
  const size_t bytes = own ? size + header : kSlabBytes;
  auto* slab = static_cast<Slab*>(std::malloc(bytes));
  if (slab == nullptr) throw std::bad_alloc();
  bytes_ += bytes;
  slab->older = slabs_;
  slabs_ = slab;
  const size_t start = reinterpret_cast<size_t>(slab + 1);
  const size_t at = (start + align - 1) & ~(align - 1);
  if (!own) {
    next_ = at + size;
    end_ = reinterpret_cast<size_t>(slab) + bytes;
  }
  return reinterpret_cast<void*>(at);
}

void Arena::clear() {
  while (slabs_ != nullptr) {
    Slab* older = slabs_->older;
    std::free(slabs_);
    slabs_ = older;
  }
  next_ = end_ = bytes_ = 0;
}

}  // namespace weft
