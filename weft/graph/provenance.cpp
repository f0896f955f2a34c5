#include "weft/graph/provenance.h"

namespace weft {

void Provenance::record(NodeRef n, CallSite site) {
  if (!site) return;
  std::lock_guard lock(mutex_);
  if (newer_.size() >= kHalf) older_ = std::exchange(newer_, {});
  newer_.set(n->key, site);
}

CallSite Provenance::find(NodeRef n) const {
  std::lock_guard lock(mutex_);
  const CallSite* site = newer_.find(n->key);
  if (!site) site = older_.find(n->key);
  return site ? *site : CallSite{};
}

}  // namespace weft
