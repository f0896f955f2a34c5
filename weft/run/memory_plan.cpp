#include "weft/run/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "weft/base/checked.h"

namespace weft {
namespace {

int64_t padded(int64_t bytes, int64_t alignment) {
  return add_or_fail("memory", bytes, alignment - 1) / alignment * alignment;
}

/// The lifetimes of sizes that are multiples of the alignment.
std::vector<Lifetime> padded(std::span<const Lifetime> lifetimes, int64_t alignment) {
  std::vector<Lifetime> out(lifetimes.begin(), lifetimes.end());
  for (Lifetime& l : out) l.bytes = padded(l.bytes, alignment);
  return out;
}

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
    changes.push_back({l.first, l.bytes});
    changes.push_back({l.last + 1, -l.bytes});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.step != b.step ? a.step < b.step : a.bytes < b.bytes;
  });
  int64_t live = 0, most = 0;
  for (const Change& c : changes) most = std::max(most, live += c.bytes);
  return most;
}

/// Free runs of memory by where they begin; neighbours are joined. The last has no end.
class FreeRuns {
 public:
  /// Where `bytes` fit best.
  int64_t take(int64_t bytes) {
    const auto at = by_size_.lower_bound({bytes, 0});
    const auto [size, begin] = *at;
    by_size_.erase(at);
    by_begin_.erase(begin);
    if (size > bytes) add(begin + bytes, size - bytes);
    return begin;
  }
  void give(int64_t begin, int64_t bytes) {
    const auto next = by_begin_.find(begin + bytes);
    if (next != by_begin_.end()) {
      bytes += next->second;
      remove(next);
    }
    const auto after = by_begin_.lower_bound(begin);
    if (after != by_begin_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == begin) {
        begin = before->first;
        bytes += before->second;
        remove(before);
      }
    }
    add(begin, bytes);
  }

 private:
  static constexpr int64_t kEndless = INT64_MAX / 2;
  void add(int64_t begin, int64_t bytes) {
    by_begin_[begin] = bytes;
    by_size_.insert({bytes, begin});
  }
  void remove(std::map<int64_t, int64_t>::iterator run) {
    by_size_.erase({run->second, run->first});
    by_begin_.erase(run);
  }
  std::map<int64_t, int64_t> by_begin_{{0, kEndless}};
  std::set<std::pair<int64_t, int64_t>> by_size_{{kEndless, 0}};
};

/// In the order of their first steps, each where it fits best: n log n, but large ones may find the
/// memory in pieces.
void place_by_time(std::span<const Lifetime> lifetimes, MemoryPlan& plan) {
  std::vector<size_t> order(lifetimes.size()), ends(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  ends = order;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(lifetimes[a].first, a) < std::pair(lifetimes[b].first, b);
  });
  std::sort(ends.begin(), ends.end(), [&](size_t a, size_t b) {
    return std::pair(lifetimes[a].last, a) < std::pair(lifetimes[b].last, b);
  });
  FreeRuns free;
  auto dead = ends.begin();
  for (size_t i : order) {
    for (; lifetimes[*dead].last < lifetimes[i].first; ++dead)
      if (const int64_t bytes = lifetimes[*dead].bytes) free.give(plan.offsets[*dead], bytes);
    const int64_t bytes = lifetimes[i].bytes;
    plan.offsets[i] = bytes == 0 ? 0 : free.take(bytes);
    plan.bytes = std::max(plan.bytes, add_or_fail("memory", plan.offsets[i], bytes));
  }
}

/// The largest first, each at the lowest place that is free while it lives: close to the least that
/// is possible, for the square of their number.
void place_by_size(std::span<const Lifetime> lifetimes, MemoryPlan& plan) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lifetimes[a].bytes != lifetimes[b].bytes ? lifetimes[a].bytes > lifetimes[b].bytes
                                                    : a < b;
  });
  std::vector<Placed> placed;
  for (size_t i : order) {
    const Lifetime& l = lifetimes[i];
    const int64_t at = lowest_gap(placed, l, l.bytes);
    const Placed p{at, add_or_fail("memory", at, l.bytes), l.first, l.last};
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), p,
                         [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
        p);
    plan.offsets[i] = at;
    plan.bytes = std::max(plan.bytes, p.end);
  }
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> unpadded, int64_t alignment) {
  const std::vector<Lifetime> lifetimes = padded(unpadded, alignment);
  constexpr size_t kMany = 4096;  // 10 ms of placing by size
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  if (lifetimes.size() > kMany)
    place_by_time(lifetimes, plan);
  else
    place_by_size(lifetimes, plan);
  plan.least = most_live(lifetimes);
  return plan;
}

}  // namespace weft
