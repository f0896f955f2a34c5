#include "weft/graph/provenance.h"

namespace weft {

void Provenance::record(NodeRef n, CallSite site) {
  if (!site) return;
  std::lock_guard lock(mutex_);
  if (sites_.size() >= kMost) sites_.clear();
  sites_.try_emplace(n->hash, site);
}

CallSite Provenance::find(NodeRef n) const {
  std::lock_guard lock(mutex_);
  const auto found = sites_.find(n->hash);
  return found == sites_.end() ? CallSite{} : found->second;
}

}  // namespace weft
