// Arena: memory handed out by moving a pointer and freed all at once.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace weft {

class Arena {
 public:
  Arena() = default;
  ~Arena() { clear(); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(size_t size, size_t align) {
    const size_t at = (next_ + align - 1) & ~(align - 1);
    if (next_ != 0 && at + size <= end_) {
      next_ = at + size;
      return reinterpret_cast<void*>(at);
    }
    return allocate_slow(size, align);
  }

  // Destructors never run, so only types that need none may live here.
  template <class T, class... Args>
  T* make(Args&&... args) {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (allocate(sizeof(T), alignof(T))) T{std::forward<Args>(args)...};
  }

  // `count` value-initialised elements.
  template <class T>
  std::span<T> make_array(size_t count) {
    static_assert(std::is_trivially_destructible_v<T>);
    if (count == 0) return {};
    T* first = static_cast<T*>(allocate(count * sizeof(T), alignof(T)));
    for (size_t i = 0; i < count; ++i) new (first + i) T();
    return {first, count};
  }

  template <class T>
  std::span<const T> copy(std::span<const T> from) {
    static_assert(std::is_trivially_copyable_v<T>);
    if (from.empty()) return {};
    T* first = static_cast<T*>(allocate(from.size_bytes(), alignof(T)));
    std::memcpy(static_cast<void*>(first), from.data(), from.size_bytes());
    return {first, from.size()};
  }

  std::string_view copy(std::string_view text) {
    const std::span<const char> kept = copy(std::span<const char>(text.data(), text.size()));
    return {kept.data(), kept.size()};
  }

  void clear();                            // frees everything
  size_t bytes() const { return bytes_; }  // held from the system, not handed out

 private:
  static constexpr size_t kSlabBytes = size_t{64} << 10;
  struct Slab;

  void* allocate_slow(size_t size, size_t align);

  Slab* slabs_ = nullptr;      // newest first
  size_t next_ = 0, end_ = 0;  // addresses in the current slab
  size_t bytes_ = 0;
};

}  // namespace weft
