// Storage: what aliasing tensors share. Its value is a node; writing makes a new value, and what
// was read before keeps the old one.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/call_site.h"
#include "weft/base/function_ref.h"
#include "weft/graph/graph.h"
#include "weft/run/buffer_table.h"

namespace weft {

class Context;

/// The context's shared graph of tensor expressions. Hold a Graph::Building scope while you hold
/// nodes that nothing roots.
Graph& tensor_graph(Context& context);

/// One array, whole and row-major. Several threads may read it; writers (set_value, realize) need
/// the caller's own lock against everyone else.
class Storage : public std::enable_shared_from_this<Storage> {
 public:
  /// A lazy value, a node of tensor_graph(context). It stays alive as long as the storage has it.
  Storage(Context& context, NodeRef value);
  virtual ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  Context& context() const { return context_; }
  /// An Error after mark_lost().
  NodeRef value() const;
  /// A new value, lazily. What was built from the old one is not affected. The memory of the last
  /// realized value stays this storage's destination: realize() puts the new value there when
  /// nobody else can still read the old contents.
  void set_value(NodeRef value);
  bool realized() const { return value()->op == Op::Buffer; }
  /// The buffer of a realized value; null otherwise.
  std::shared_ptr<Buffer> buffer() const;

  /// Who it is, in messages and memory reports: a parameter's name. Default: where it was made.
  void set_label(std::string_view label);
  std::string label() const;
  BufferLabel memory_label() const;  ///< likewise, not put together yet
  /// "argument 0 (net.cpp:42)": who it is to somebody who calls it `name`.
  std::string label_as(std::string_view name) const;

  /// From here on value() is an Error that says `why`, until the next set_value().
  void mark_lost(std::string why);
  bool lost() const { return (marks_.load(std::memory_order_acquire) & kLost) != 0; }

 private:
  friend struct StorageAccess;
  friend class BufferTable;
  struct Destination {
    std::shared_ptr<Buffer> buffer;  // null before the first realization
    int64_t id = -1;                 // of its node
  };
  void replace(NodeRef value);  // set_value() that no capture hears of
  void read_marked() const;     // value() of one with a mark
  static constexpr uint8_t kLost = 1, kWatched = 2;

  Context& context_;
  std::atomic<NodeRef> value_;  // rooted
  mutable std::atomic<uint8_t> marks_{0};
  std::atomic<uint64_t> writes_{0};
  CallSite made_;
  mutable std::mutex mutex_;  // of what follows
  Destination destination_;
  std::string label_, why_lost_;
};

/// What only run/ does with a storage.
struct StorageAccess {
  static std::shared_ptr<Buffer> destination(const Storage& s) { return s.destination_.buffer; }
  static int64_t destination_id(const Storage& s) { return s.destination_.id; }
  /// The value without a capture hearing of it; lost ones too.
  static NodeRef peek(const Storage& s) { return s.value_.load(std::memory_order_acquire); }
  /// How often set_value() was called.
  static uint64_t writes(const Storage& s) { return s.writes_.load(std::memory_order_relaxed); }
  /// Whether this thread's capture hears when the value is read: of those that share memory it has
  /// to know which one the function means.
  static void watch(const Storage& s, bool on) {
    if (on)
      s.marks_.fetch_or(Storage::kWatched, std::memory_order_relaxed);
    else
      s.marks_.fetch_and(static_cast<uint8_t>(~Storage::kWatched), std::memory_order_relaxed);
  }
  /// The same contents in another form: nobody can tell, so no capture hears of it.
  static void replace(Storage& s, NodeRef value) { s.replace(value); }
};

// ---- data of the host; Errors while a function is being captured, see replay.h

/// Whether all bools of `data` are 0 or 1, as all kernels take them to be.
bool are_bools(std::span<const std::byte> data);

/// A realized node on `device` (0: the default one) holding a copy of `data`, of which bools other
/// than 0 become 1. Its dims may hold Binds.
NodeRef buffer_from_bytes(Context& context, std::span<const std::byte> data, DType dtype,
                          std::span<const NodeRef> dims, DeviceId device = 0,
                          std::string_view label = {});
std::shared_ptr<Storage> storage_from_bytes(Context& context, std::span<const std::byte> data,
                                            DType dtype, std::span<const NodeRef> dims,
                                            DeviceId device = 0, std::string_view label = {});

/// The bytes of a realized storage.
std::vector<std::byte> storage_to_bytes(const Storage& storage);
void copy_to_host(const Storage& storage, std::span<std::byte> out);
/// In pieces of a few MiB, which `take` gets in order, with their offsets.
void copy_to_host(const Storage& storage,
                  FunctionRef<void(int64_t, std::span<const std::byte>)> take);

}  // namespace weft
