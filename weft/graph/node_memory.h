// Memory of a graph's nodes.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>
#include <unordered_set>
#include <utility>
#include <vector>

#include "weft/base/slabs.h"

namespace weft {

/// Slabs cut into units, with free lists by size so that swept nodes are reused.
class NodeMemory {
 public:
  ~NodeMemory() {
    for (const Slab& slab : slabs_) give_slab(slab.memory);
    for (void* large : large_) give_large(large);
  }
  void* allocate(size_t bytes) {
    if (bytes > kSlabBytes) return allocate_large(bytes);
    const SizeClass c = class_of(bytes);
    if (void* p = free_[c.list]) {
      std::memcpy(&free_[c.list], p, sizeof(void*));
      free_bytes_ -= c.units * kUnit;
      return p;
    }
    return bump(c.units * kUnit);
  }
  void release(void* p, size_t bytes) {
    if (bytes > kSlabBytes) {
      total_ -= bytes;
      large_.erase(p);
      return give_large(p);
    }
    const SizeClass c = class_of(bytes);
    std::memcpy(p, &free_[c.list], sizeof(void*));
    free_[c.list] = p;
    free_bytes_ += c.units * kUnit;
  }
  /// Slabs in which no node is left go back, where most of all is free: what grows again as large
  /// between any two sweeps keeps its memory.
  void give_back_empty_slabs() {
    if (free_bytes_ * 4 < total_ * 3 || slabs_.empty()) return;
    if (next_) slabs_.back().used = kSlabBytes - left_;
    void* const last = slabs_.back().memory;
    std::ranges::sort(slabs_, {}, &Slab::memory);
    each_free([this](void* p, size_t list) {
      slab_of(p).free += bytes_of(list);
      return true;
    });
    each_free([this](void* p, size_t list) {
      if (!slab_of(p).empty()) return true;
      free_bytes_ -= bytes_of(list);
      return false;
    });
    const auto give = [&](const Slab& slab) {
      if (!slab.empty()) return false;
      if (slab.memory == last) next_ = nullptr, left_ = 0;
      give_slab(slab.memory);
      total_ -= kSlabBytes;
      return true;
    };
    std::erase_if(slabs_, give);
    for (Slab& slab : slabs_) slab.free = 0;
    const auto at = std::ranges::find(slabs_, last, &Slab::memory);
    if (at != slabs_.end()) std::swap(*at, slabs_.back());
  }
  size_t bytes() const { return total_; }

 private:
  static constexpr size_t kUnit = 16;  // allocation granularity; also the alignment of nodes
  struct Slab {
    void* memory;
    size_t used;  // of one that is full: up to the end of its last node
    size_t free = 0;

    bool empty() const { return free == used; }
  };
  static constexpr size_t kExactUnits = 64;  // larger nodes take a power of two of units
  struct SizeClass {
    size_t list, units;
  };
  static SizeClass class_of(size_t bytes) {
    const size_t units = (bytes + kUnit - 1) / kUnit;
    if (units < kExactUnits) return {units, units};
    const size_t doubled = std::bit_ceil(units);
    return {kExactUnits + static_cast<size_t>(std::countr_zero(doubled / kExactUnits)), doubled};
  }
  static size_t bytes_of(size_t list) {
    return kUnit * (list < kExactUnits ? list : kExactUnits << (list - kExactUnits));
  }

  Slab& slab_of(void* p) { return *(std::ranges::upper_bound(slabs_, p, {}, &Slab::memory) - 1); }
  /// Those of which `stays` is false leave their list.
  template <class F>
  void each_free(F stays) {
    for (size_t list = 0; list < free_.size(); ++list) {
      void* left = std::exchange(free_[list], nullptr);
      for (void* p = left; p; p = left) {
        std::memcpy(&left, p, sizeof(void*));
        if (!stays(p, list)) continue;
        std::memcpy(p, &free_[list], sizeof(void*));
        free_[list] = p;
      }
    }
  }

  void* bump(size_t bytes) {
    if (bytes > left_) {
      add_slab();
      total_ += kSlabBytes;
    }
    void* p = next_;
    next_ += bytes;
    left_ -= bytes;
    return p;
  }

  void add_slab() {
    void* slab = take_slab();
    try {
      slabs_.push_back({slab, kSlabBytes});
    } catch (...) {
      give_slab(slab);
      throw;
    }
    if (next_) slabs_[slabs_.size() - 2].used = kSlabBytes - left_;
    next_ = static_cast<std::byte*>(slab);
    left_ = kSlabBytes;
  }

  void* allocate_large(size_t bytes) {
    void* p = ::operator new(bytes, std::align_val_t{64});
    try {
      large_.insert(p);
    } catch (...) {
      give_large(p);
      throw;
    }
    total_ += bytes;
    return p;
  }
  static void give_large(void* p) { ::operator delete(p, std::align_val_t{64}); }

  std::vector<Slab> slabs_;  // where there is a next node, it lies in the last one
  std::unordered_set<void*> large_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
  size_t total_ = 0, free_bytes_ = 0;
  std::array<void*, kExactUnits + 8> free_{};  // up to a slab: 64 << 6 units
};

}  // namespace weft
