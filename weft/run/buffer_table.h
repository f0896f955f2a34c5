// BufferTable: which Buffer each Buffer node of the tensor graph stands for, and when its memory
// goes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "weft/base/fork.h"
#include "weft/base/function_ref.h"
#include "weft/base/small_vector.h"
#include "weft/device/buffer.h"
#include "weft/graph/graph.h"

namespace weft {

class Storage;

/// A slot of the Context. An entry lives as long as its node: it goes when the graph sweeps the
/// node, or earlier when it is certain that nothing refers to the node any more. Any thread may
/// call.
class BufferTable {
 public:
  explicit BufferTable(Context& context);

  /// A new Buffer node for `buffer`, row-major with extents `dims`. Nothing roots it yet.
  NodeRef add(std::shared_ptr<Buffer> buffer, DType dtype, std::span<const NodeRef> dims,
              DeviceId device);
  /// Of a shape of the tensor graph.
  NodeRef add(std::shared_ptr<Buffer> buffer, DType dtype, const Shape* shape, DeviceId device);
  std::shared_ptr<Buffer> find(int64_t id) const;
  /// The node with this id while it is interned, else null.
  NodeRef node(int64_t id) const;

  /// A storage has this node as its value, or had it last; returns its buffer.
  std::shared_ptr<Buffer> hold(int64_t id, Storage* storage);
  /// It has another one now, or is gone: perhaps the node's last use. Memory that nothing refers to
  /// any more goes at once, unless this thread or another one is building.
  void leave(int64_t id, Storage* storage);
  /// What the room above notes about memory, for as long as the table has it.
  void mark(int64_t id);
  bool is_marked(int64_t id) const;
  /// The storages that hold each node now.
  std::unordered_map<int64_t, std::vector<std::weak_ptr<Storage>>> holders() const;

  /// Gives back the buffers of released nodes that nothing refers to; cheap.
  void reap(Graph::Wait wait = Graph::Wait::UntilTheyEnd);
  /// Sweeps the graph and forgets the buffers of freed nodes.
  void sweep(Graph::Wait wait = Graph::Wait::UntilTheyEnd);
  /// `work`, and once more where memory was missing and a sweep gives some back.
  void with_swept_memory(FunctionRef<void()> work);
  /// reap(), and sweep() when enough garbage has gathered since the last time to be worth it.
  void collect();
  /// A storage without memory is gone. Its nodes go with the next sweep, which comes when many are
  /// there, as no realization may.
  void left_lazy();

 private:
  struct Entry {
    std::shared_ptr<Buffer> buffer;
    NodeRef node;
    SmallVector<Storage*, 2> holders = {};
    bool marked = false;
  };
  struct Released {
    int64_t id;
    NodeRef node;
  };
  using Entries = std::unordered_map<int64_t, Entry>;

  /// Those that no storage has any more.
  SmallVector<Released, 8> take_released();
  bool sweep_frees_memory();
  bool has_many_dead_nodes() const;
  bool has_much_dead_memory() const;   // under the lock
  bool survivors_may_be_dead() const;  // under the lock
  std::shared_ptr<Buffer> forget(Entries::iterator at);

  Graph& graph_;
  using Mutex = ForkableMutex<std::mutex>;
  /// One reap or sweep at a time: nodes that one looks at, another frees.
  Mutex collecting_{ForkLock::Order::Collecting};
  mutable Mutex mutex_{ForkLock::Order::Table};
  Entries entries_;
  std::vector<int64_t> released_;  // since the last reap
  int64_t next_id_ = 1;
  int64_t bytes_ = 0;           // of all entries
  int64_t suspect_bytes_ = 0;   // of released buffers that nodes, perhaps dead ones, still read
  int64_t survivor_bytes_ = 0;  // of buffers that the last sweep left and no storage holds
  std::atomic<size_t> nodes_after_sweep_{0};
  std::atomic<uint32_t> lazy_deaths_{0};
};

}  // namespace weft
