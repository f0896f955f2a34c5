// Storage: what aliasing tensors share. Its value is a node; writing makes a new value, and what
// was read before keeps the old one.
#pragma once
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "weft/device/buffer.h"
#include "weft/graph/graph.h"

namespace weft {

class Context;

/// The context's shared graph of tensor expressions.
Graph& tensor_graph(Context& context);

/// Which Buffer each Buffer node stands for. An entry lives as long as its node: it goes when the
/// graph sweeps the node.
class BufferTable {
 public:
  explicit BufferTable(Context& context);

  /// A new Buffer node for `buffer`, row-major with extents `dims`.
  NodeRef add(std::shared_ptr<Buffer> buffer, DType dtype, std::span<const NodeRef> dims,
              DeviceId device);
  std::shared_ptr<Buffer> find(int64_t id) const;
  /// The node with this id while it is interned, else null.
  NodeRef node(int64_t id) const;

  /// Sweeps the graph and forgets the buffers of freed nodes.
  size_t sweep();
  /// Sweeps when enough garbage has gathered since the last time to be worth it.
  void sweep_if_worthwhile();

 private:
  struct Entry {
    std::shared_ptr<Buffer> buffer;
    NodeRef node;
  };
  int64_t unrooted_bytes() const;

  Context& context_;
  mutable std::mutex mutex_;
  std::unordered_map<int64_t, Entry> entries_;
  int64_t next_id_ = 1;
  size_t nodes_after_sweep_ = 0;
  int64_t unrooted_after_sweep_ = 0;
};

/// One array, whole and row-major. Not internally locked: writers need the caller's own lock.
class Storage {
 public:
  /// A lazy value. The node stays alive as long as the storage has it.
  Storage(Context& context, NodeRef value);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Context& context() const { return context_; }
  NodeRef value() const { return value_; }
  /// A new value, lazily. What was built from the old one is not affected. The buffer of the old
  /// value stays this storage's home: realize() puts the new value there when nobody else still
  /// needs the old contents.
  void set_value(NodeRef value);
  bool realized() const { return value_->op == Op::Buffer; }
  /// The buffer of a realized value; null otherwise.
  std::shared_ptr<Buffer> buffer() const;

  /// Id of the Buffer node this storage had when it was last realized, -1 before.
  int64_t home() const { return home_; }

 private:
  Context& context_;
  NodeRef value_;
  int64_t home_ = -1;
};

/// A realized storage on `device` (0: the default one) holding a copy of `data`.
std::shared_ptr<Storage> storage_from_bytes(Context& context, std::span<const std::byte> data,
                                            DType dtype, std::span<const NodeRef> dims,
                                            DeviceId device = 0);

/// The bytes of a realized storage.
std::vector<std::byte> storage_to_bytes(const Storage& storage);

}  // namespace weft
