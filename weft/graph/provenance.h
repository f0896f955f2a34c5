// Provenance: which line of the user's program made a node of the tensor graph.
#pragma once

#include <cstdint>
#include <mutex>

#include "weft/base/call_site.h"
#include "weft/graph/node_map.h"

namespace weft {

/// A slot of the Context: context.get<Provenance>(). Any thread may call. Nodes are known by their
/// key, which tells the same expression of two buffers apart and is never used again.
class Provenance {
 public:
  /// The last site wins: of equal expressions, the one that is about to run.
  void record(NodeRef n, CallSite site);
  /// An empty site where nothing is known.
  CallSite find(NodeRef n) const;

 private:
  // It must not grow without bound, and what was built last is what is asked for: at this many
  // nodes the older half goes.
  static constexpr size_t kHalf = size_t{1} << 16;

  mutable std::mutex mutex_;
  FlatMap<uint64_t, CallSite> newer_, older_;
};

}  // namespace weft
