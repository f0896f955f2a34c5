// Provenance: which line of the user's program made a node, by structural hash, so that it survives
// sweeps and the same step in the next iteration.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "weft/base/call_site.h"
#include "weft/graph/node.h"

namespace weft {

/// A slot of the Context: context.get<Provenance>(). Any thread may call.
class Provenance {
 public:
  /// The first site wins: the same structure made twice keeps the line that made it first.
  void record(NodeRef n, CallSite site);
  /// An empty site where nothing is known.
  CallSite find(NodeRef n) const;

 private:
  // Forgets everything past this many nodes: it is a comfort, and must not grow without bound.
  static constexpr size_t kMost = size_t{1} << 17;

  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, CallSite> sites_;
};

}  // namespace weft
