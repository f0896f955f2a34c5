// NodeMap: an open-addressing map from NodeRef to a small value; what every pass memoises with.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "weft/graph/node.h"

namespace weft {

/// Where a hash table looks for an address or a hash. Addresses are at least 16-byte aligned; mixed
/// so that neighbours spread.
template <class Key>
size_t spread(Key key) {
  return static_cast<size_t>((uint64_t)key * 0x9E3779B97F4A7C15ull >> 20);  // NOLINT: either kind
}

/// Keys are addresses or hashes, and never null or 0.
template <class Key, class T>
class FlatMap {
 public:
  FlatMap() = default;
  explicit FlatMap(size_t expected) { reserve(expected); }

  void reserve(size_t expected) {
    size_t capacity = 16;
    while (capacity * 3 < expected * 4 + 4) capacity *= 2;
    if (capacity > slots_.size()) rehash(capacity);
  }

  T* find(Key key) {
    if (slots_.empty()) return nullptr;
    Slot& s = slots_[locate(key)];
    return s.key ? &s.value : nullptr;
  }
  const T* find(Key key) const { return const_cast<FlatMap*>(this)->find(key); }
  bool contains(Key key) const { return find(key) != nullptr; }
  const T& at(Key key) const { return *find(key); }

  /// Inserts or overwrites.
  T& set(Key key, T value) {
    T& place = (*this)[key];
    place = std::move(value);
    return place;
  }

  /// Inserts where it is new; only then do the others move.
  T& operator[](Key key) {
    if (slots_.empty()) rehash(16);
    size_t i = locate(key);
    if (!slots_[i].key) {
      if ((size_ + 1) * 4 > slots_.size() * 3) {
        rehash(slots_.size() * 2);
        i = locate(key);
      }
      slots_[i].key = key;
      ++size_;
    }
    return slots_[i].value;
  }

  size_t size() const { return size_; }
  void clear() {
    slots_.clear();
    size_ = 0;
  }

 private:
  struct Slot {
    Key key{};
    T value{};
  };

  size_t locate(Key key) const {
    size_t i = spread(key) & (slots_.size() - 1);
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

template <class T>
using NodeMap = FlatMap<NodeRef, T>;

/// Which nodes a walk has seen.
class NodeSet {
 public:
  NodeSet() : slots_(64) {}
  /// False where `n` is in it already.
  bool insert(NodeRef n) {
    Slot& slot = slots_[locate(n)];
    if (slot.round == round_) return false;
    slot = {n, round_};
    if (++size_ * 2 > slots_.size()) grow();
    return true;
  }
  /// Empty again, at no cost.
  void clear() {
    ++round_;
    size_ = 0;
  }

 private:
  struct Slot {
    NodeRef node = nullptr;
    uint64_t round = 0;  // the slot is empty in every other one
  };

  size_t locate(NodeRef n) const {
    size_t i = spread(n) & (slots_.size() - 1);
    while (slots_[i].round == round_ && slots_[i].node != n) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void grow() {
    std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 4));
    for (const Slot& s : old)
      if (s.round == round_) slots_[locate(s.node)] = s;
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
  uint64_t round_ = 1;
};

/// Where each of these nodes stands.
inline NodeMap<uint32_t> positions_in(std::span<const NodeRef> order) {
  NodeMap<uint32_t> positions(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) positions.set(order[i], i);
  return positions;
}

}  // namespace weft
