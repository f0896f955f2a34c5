#include "weft/run/queue_plan.h"

#include <algorithm>

namespace weft {

QueuePlan::QueuePlan(Device& device)
    : device_(&device),
      newest_(static_cast<size_t>(device.queues())),
      barrier_(newest_),
      known_(newest_.size(), newest_),
      count_(newest_.size()) {}

size_t QueuePlan::queue_for(const QueuePoints& needed) const {
  size_t best = newest_.size();
  for (size_t q = 0; q < needed.size(); ++q)
    if (needed[q] != 0 && needed[q] == newest_[q] &&
        (best == newest_.size() || needed[q] > needed[best]))
      best = q;
  if (best < newest_.size()) return best;
  return static_cast<size_t>(std::ranges::min_element(count_) - count_.begin());
}

QueuePlan::Place QueuePlan::add(size_t number, const Command& command) {
  Place place;
  QueuePoints needed;
  each_use(command, [&](const MemoryUse& use) {
    const QueuePoints before = uses_.before(use);
    for (size_t q = 0; q < before.size(); ++q) join(needed, q, before[q]);
  });
  const size_t own = queue_for(needed);
  for (size_t q = 0; q < newest_.size(); ++q) join(needed, q, barrier_[q]);
  for (size_t q = 0; q < newest_.size(); ++q) {
    if (q == own || needed[q] <= known_[own][q]) continue;
    known_[own][q] = needed[q];
    place.after.push_back(needed[q] - 1);
  }
  each_use(command, [&](const MemoryUse& use) { uses_.add(use, own, number + 1); });
  newest_[own] = number + 1;
  ++count_[own];
  place.queue = static_cast<int>(own);
  return place;
}

}  // namespace weft
