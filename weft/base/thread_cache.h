// ThreadCache: a few objects that a thread has no use for at the moment and keeps for the next
// time.
#pragma once

#include <array>
#include <cstddef>

namespace weft {

/// At most N objects, which end with the thread by Release(object). Empty after that, for whoever
/// is destroyed even later. Tag tells caches of the same kind of object apart.
template <class Tag, class T, size_t N, void (*Release)(T*)>
class ThreadCache {
 public:
  /// Null where there is none.
  static T* take() {
    if (ended_ || here().count_ == 0) return nullptr;
    return here().kept_[--here().count_];
  }
  static void give(T* object) {
    if (ended_ || here().count_ == N) return Release(object);
    here().kept_[here().count_++] = object;
  }

 private:
  ThreadCache() = default;
  ~ThreadCache() {
    while (count_ > 0) Release(kept_[--count_]);
    ended_ = true;
  }
  static ThreadCache& here() {
    thread_local ThreadCache cache;
    return cache;
  }

  static inline thread_local bool ended_ = false;  // outlives the cache, having no destructor
  std::array<T*, N> kept_;
  size_t count_ = 0;
};

}  // namespace weft
