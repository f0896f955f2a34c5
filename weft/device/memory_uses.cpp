#include "weft/device/memory_uses.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft {

void each_use(const Command& c, FunctionRef<void(const MemoryUse&)> visit) {
  const auto use = [&](BufferSlice slice, int64_t bytes, bool reads, bool writes) {
    WEFT_CHECK(slice.buffer != nullptr, "an argument of a command is no buffer");
    const int64_t end = bytes > 0 ? slice.offset + bytes : slice.buffer->bytes();
    if (slice.offset < end) visit({slice.buffer, slice.offset, end, reads, writes});
  };
  if (c.kind == Command::Kind::Copy) {
    if (c.bytes == 0) return;
    use(c.from, c.bytes, true, false);
    use(c.to, c.bytes, false, true);
    return;
  }
  for (size_t i = 0; i < c.buffers.size(); ++i)
    use(c.buffers[i], c.buffers[i].bytes, c.executable->reads(i), c.executable->writes(i));
}

void join(QueuePoints& into, size_t queue, uint64_t point) {
  if (into.size() <= queue) into.resize(queue + 1);
  into[queue] = std::max(into[queue], point);
}

QueuePoints MemoryUses::before(const MemoryUse& use) const {
  QueuePoints points;
  const uint64_t memory = use.buffer->serial();
  auto at = ranges_.upper_bound({memory, use.begin});
  if (at != ranges_.begin()) --at;  // it may reach into these bytes
  for (; at != ranges_.end() && at->first < Place(memory, use.end); ++at) {
    const auto& [end, uses] = at->second;
    if (at->first.first != memory || end <= use.begin) continue;
    for (size_t q = 0; q < uses.size(); ++q)
      join(points, q, use.writes ? std::max(uses[q].read, uses[q].written) : uses[q].written);
  }
  return points;
}

/// No range has `at` inside of it.
void MemoryUses::split(Place at) {
  const auto next = ranges_.lower_bound(at);
  if (next == ranges_.begin()) return;
  const auto& [begin, range] = *std::prev(next);
  if (begin.first != at.first || range.end <= at.second) return;
  const Range rest = range;
  std::prev(next)->second.end = at.second;
  ranges_.emplace(at, rest);
}

void MemoryUses::add(const MemoryUse& use, size_t queue, uint64_t point) {
  const uint64_t memory = use.buffer->serial();
  split({memory, use.begin});
  split({memory, use.end});
  for (int64_t begin = use.begin; begin < use.end;) {
    auto at = ranges_.lower_bound({memory, begin});
    if (at == ranges_.end() || at->first.first != memory || at->first.second > begin) {
      const bool last = at == ranges_.end() || at->first >= Place(memory, use.end);
      const int64_t end = last ? use.end : at->first.second;
      at = ranges_.emplace(Place(memory, begin), Range{end, {}}).first;
    }
    Range& range = at->second;
    if (range.uses.size() <= queue) range.uses.resize(queue + 1);
    if (use.reads) range.uses[queue].read = point;
    if (use.writes) range.uses[queue].written = point;
    begin = range.end;
  }
}

}  // namespace weft
