// NodeNumbers: the numbers that nodes of a recording's arena have, by Node::key.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "weft/graph/node.h"
#include "weft/graph/node_map.h"

namespace weft {

/// One arena comes after the other in the same memory. Most nodes are asked for again and again:
/// each remembers the number that it had last, so that the table, which is in no cache by then, is
/// asked about new ones alone.
class NodeNumbers {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t find(NodeRef n) const {
    const uint32_t last = n->recorded.load(std::memory_order_relaxed);
    if (has(last, n->key)) return last;
    const uint32_t number = slots_[locate(n->key)].number;
    if (number != kNone) n->recorded.store(number, std::memory_order_relaxed);
    return number;
  }
  /// The next number, for a node that has none.
  uint32_t add(NodeRef n) {
    if ((keys_.size() + 1) * 2 > room_) grow(room_ * 2);
    const auto number = static_cast<uint32_t>(keys_.size());
    place(n->key, number);
    keys_.push_back(n->key);
    n->recorded.store(number, std::memory_order_relaxed);
    return number;
  }
  size_t size() const { return keys_.size(); }
  /// None has a number; the memory stays, and of it what fits a cache is used again first.
  void clear() {
    keys_.clear();
    grow(kLeastRoom);
  }

 private:
  static constexpr size_t kLeastRoom = 256;

  struct Slot {
    uint32_t number = kNone;
    uint32_t tag = 0;  // of the key: few others are looked at
  };
  static uint32_t tag_of(uint64_t key) { return static_cast<uint32_t>(key >> 32); }

  bool has(uint32_t number, uint64_t key) const {
    return number < keys_.size() && keys_[number] == key;
  }
  size_t locate(uint64_t key) const {
    const uint32_t tag = tag_of(key);
    size_t i = spread(key) & (room_ - 1);
    while (slots_[i].number != kNone && !(slots_[i].tag == tag && keys_[slots_[i].number] == key))
      i = (i + 1) & (room_ - 1);
    return i;
  }
  /// Of a key that has none.
  void place(uint64_t key, uint32_t number) {
    size_t i = spread(key) & (room_ - 1);
    while (slots_[i].number != kNone) i = (i + 1) & (room_ - 1);
    slots_[i] = {number, tag_of(key)};
  }
  void grow(size_t room) {
    room_ = room;
    if (slots_.size() < room_)
      slots_.assign(room_, {});
    else
      std::fill_n(slots_.begin(), room_, Slot{});
    for (uint32_t i = 0; i < keys_.size(); ++i) place(keys_[i], i);
  }

  std::vector<Slot> slots_ = std::vector<Slot>(kLeastRoom);  // the first room_ of them count
  size_t room_ = kLeastRoom;
  std::vector<uint64_t> keys_;  // by number
};

}  // namespace weft
