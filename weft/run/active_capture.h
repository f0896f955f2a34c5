// What a capture in progress hears from the rest of the room; replay.h is what users see.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weft/graph/node.h"

namespace weft {

class Context;
class Storage;
struct RecordedRun;

/// What becomes of storages, and which of them a function only reads.
class StorageListener {
 public:
  virtual void created(Storage& storage) = 0;
  virtual void destroyed(Storage& storage) noexcept = 0;
  virtual void written(Storage& storage) = 0;
  /// Whether this memory is state that later calls will find as it is, for all that is known so
  /// far: what is computed from it alone can be computed once.
  virtual bool stays(int64_t buffer_id) const = 0;

 protected:
  ~StorageListener() = default;
};

class CaptureListener : public StorageListener {
 public:
  /// Somebody looked at a value that has no memory yet.
  virtual void read_lazy(const Storage& storage, NodeRef value) = 0;
  /// Somebody looked at a value whose memory several storages share.
  virtual void read_shared(const Storage& storage) = 0;
  /// The values read_lazy() saw of storages that are older than the capture.
  virtual std::span<const NodeRef> watched() const = 0;
  /// Data of the host became the buffer of this node: a replay would not see new data.
  virtual void host_data(int64_t buffer_id, std::string_view label) = 0;
  /// A variable got a value.
  virtual void bound(NodeRef variable, int64_t value) = 0;
  /// Throws: what the host reads while capturing, it would not read again in a replay.
  virtual void host_read(const Storage& storage) = 0;
  /// A realization ran: commands, buffers and what became of the storages.
  virtual void ran(RecordedRun run) = 0;

 protected:
  ~CaptureListener() = default;
};

/// The capture this thread has in progress in `context`, or null.
CaptureListener* active_capture(Context& context);
/// That, or the rehearsal of one (state_watch.h), or null.
StorageListener* storage_listener(Context& context);

}  // namespace weft
