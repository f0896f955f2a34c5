// NodeNumbers: the numbers that nodes of a recording's arena have, by Node::key.
#pragma once

#include <cstdint>
#include <vector>

#include "weft/graph/node.h"
#include "weft/graph/node_map.h"

namespace weft {

/// One arena comes after the other in the same memory.
class NodeNumbers {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  uint32_t find(NodeRef n) const {
    const Slot& slot = slots_[locate(n->key)];
    return slot.round == round_ ? slot.number : kNone;
  }
  /// The next number, for a node that has none.
  uint32_t add(NodeRef n) {
    if ((keys_.size() + 1) * 2 > slots_.size()) grow();
    const auto number = static_cast<uint32_t>(keys_.size());
    slots_[locate(n->key)] = {n->key, number, round_};
    keys_.push_back(n->key);
    return number;
  }
  size_t size() const { return keys_.size(); }
  /// None has a number; the memory stays.
  void clear() {
    keys_.clear();
    if (++round_ != 0) return;
    slots_.assign(slots_.size(), {});
    round_ = 1;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    uint32_t number = 0, round = 0;  // empty in every other round
  };

  size_t locate(uint64_t key) const {
    size_t i = spread(key) & (slots_.size() - 1);
    while (slots_[i].round == round_ && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  void grow() {
    slots_.assign(slots_.size() * 2, {});
    for (uint32_t i = 0; i < keys_.size(); ++i) slots_[locate(keys_[i])] = {keys_[i], i, round_};
  }

  std::vector<Slot> slots_ = std::vector<Slot>(256);
  std::vector<uint64_t> keys_;  // by number
  uint32_t round_ = 1;
};

}  // namespace weft
