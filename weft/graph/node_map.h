// NodeMap: an open-addressing map from NodeRef to a small value; what every pass memoises with.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "weft/graph/node.h"

namespace weft {

template <class T>
class NodeMap {
 public:
  NodeMap() = default;
  explicit NodeMap(size_t expected) { reserve(expected); }

  void reserve(size_t expected) {
    size_t capacity = 16;
    while (capacity * 3 < expected * 4 + 4) capacity *= 2;
    if (capacity > slots_.size()) rehash(capacity);
  }

  T* find(NodeRef key) {
    if (slots_.empty()) return nullptr;
    Slot& s = slots_[locate(key)];
    return s.key ? &s.value : nullptr;
  }
  const T* find(NodeRef key) const { return const_cast<NodeMap*>(this)->find(key); }
  bool contains(NodeRef key) const { return find(key) != nullptr; }
  const T& at(NodeRef key) const { return *find(key); }

  /// Inserts or overwrites.
  T& set(NodeRef key, T value) {
    T& place = (*this)[key];
    place = std::move(value);
    return place;
  }

  T& operator[](NodeRef key) {
    if ((size_ + 1) * 4 > slots_.size() * 3) rehash(slots_.empty() ? 16 : slots_.size() * 2);
    Slot& s = slots_[locate(key)];
    if (!s.key) {
      s.key = key;
      ++size_;
    }
    return s.value;
  }

  size_t size() const { return size_; }
  void clear() {
    slots_.clear();
    size_ = 0;
  }

 private:
  struct Slot {
    NodeRef key = nullptr;
    T value{};
  };

  size_t locate(NodeRef key) const {
    // Addresses are at least 16-byte aligned; mix so that neighbours spread.
    uint64_t h = reinterpret_cast<uintptr_t>(key) * 0x9E3779B97F4A7C15ull;
    size_t i = static_cast<size_t>(h >> 20) & (slots_.size() - 1);
    while (slots_[i].key && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void rehash(size_t capacity) {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(capacity));
    for (Slot& s : old)
      if (s.key) slots_[locate(s.key)] = std::move(s);
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace weft
