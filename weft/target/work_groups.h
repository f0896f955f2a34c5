// WorkGroups: what a machine can launch whose work items run in groups with memory of their own, as
// data.
#pragma once

#include <array>
#include <cstdint>

#include "weft/target/dtype_set.h"

namespace weft {

struct WorkGroups {
  std::array<int64_t, 3> most_groups{};  ///< along each axis of the grid
  std::array<int64_t, 3> most_items{};   ///< along each axis of a group
  int64_t items = 0;                     ///< of one group, at most; 0: the machine has no groups
  int64_t wave = 1;                      ///< items that run in step: groups are multiples of it
  int64_t local_bytes = 0;               ///< memory that the items of a group share
  int64_t banks = 1, bank_bytes = 4;     ///< of that memory, each of which serves one item at once
  int64_t least_local_bits = 8;          ///< of an element there, whatever its dtype
  /// Of which an item may read what another item of its wave has, without memory. A wave is then a
  /// power of two, and a run of that many items of the group, counted x first.
  DTypeSet shuffled = 0;
  /// A CPU runs the items of a group one after the other, or as lanes of vectors: what they share
  /// lies in ordinary memory, and so does what an item keeps across a barrier.
  bool emulated = false;
  /// Whether reading that memory is cheaper than reading any other: nothing is staged where not.
  bool local_is_near = true;

  bool exist() const { return items > 0; }
  /// Part of every key that code is kept under.
  uint64_t key() const;
};

}  // namespace weft
