// MemoryUses: which queues used which bytes last, and so which points have to be waited for.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "weft/base/function_ref.h"
#include "weft/base/small_vector.h"
#include "weft/device/device.h"

namespace weft {

/// Bytes of a buffer that a command reads, writes, or both.
struct MemoryUse {
  const Buffer* buffer;
  int64_t begin, end;
  bool reads, writes;
};
void each_use(const Command& command, FunctionRef<void(const MemoryUse&)> visit);

/// A point of each queue; 0, and what is not there: none.
using QueuePoints = SmallVector<uint64_t, 4>;
/// The later of both, queue by queue.
void join(QueuePoints& into, size_t queue, uint64_t point);

class MemoryUses {
 public:
  /// The newest points that have to come before this use: of those that wrote any of its bytes and,
  /// before a write, that read them.
  QueuePoints before(const MemoryUse& use) const;
  void add(const MemoryUse& use, size_t queue, uint64_t point);
  size_t size() const { return ranges_.size(); }
  void clear() { ranges_.clear(); }

 private:
  using Place = std::pair<uint64_t, int64_t>;  // serial of the buffer, first byte
  struct Range {
    int64_t end;
    LastUses uses;
  };
  void split(Place at);

  std::map<Place, Range> ranges_;  // that do not overlap
};

}  // namespace weft
