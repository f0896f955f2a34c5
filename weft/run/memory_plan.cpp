#include "weft/run/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "weft/base/checked.h"

namespace weft {
namespace {

constexpr int64_t kAlign = 64;  // what host devices align buffers to

int64_t padded(int64_t bytes) { return add_or_fail("memory", bytes, kAlign - 1) / kAlign * kAlign; }

struct Placed {
  int64_t begin, end;
  int first, last;
};

/// The lowest offset where `bytes` fit between what is placed and live at the same time. `placed`
/// is ordered by begin.
int64_t lowest_gap(const std::vector<Placed>& placed, const Lifetime& l, int64_t bytes) {
  int64_t at = 0;
  for (const Placed& p : placed) {
    if (p.last < l.first || p.first > l.last) continue;
    if (p.begin - at >= bytes) break;
    at = std::max(at, p.end);
  }
  return at;
}

int64_t most_live(std::span<const Lifetime> lifetimes) {
  struct Change {
    int step;
    int64_t bytes;
  };
  std::vector<Change> changes;
  for (const Lifetime& l : lifetimes) {
    changes.push_back({l.first, padded(l.bytes)});
    changes.push_back({l.last + 1, -padded(l.bytes)});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.step != b.step ? a.step < b.step : a.bytes < b.bytes;
  });
  int64_t live = 0, most = 0;
  for (const Change& c : changes) most = std::max(most, live += c.bytes);
  return most;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lifetimes[a].bytes != lifetimes[b].bytes ? lifetimes[a].bytes > lifetimes[b].bytes
                                                    : a < b;
  });
  std::vector<Placed> placed;
  for (size_t i : order) {
    const Lifetime& l = lifetimes[i];
    const int64_t bytes = padded(l.bytes);
    const int64_t at = lowest_gap(placed, l, bytes);
    const Placed p{at, add_or_fail("memory", at, bytes), l.first, l.last};
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), p,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        p);
    plan.offsets[i] = at;
    plan.bytes = std::max(plan.bytes, p.end);
  }
  plan.least = most_live(lifetimes);
  return plan;
}

}  // namespace weft
