// Buffer: device memory with an owner; Allocator: freed-block cache, hard cap, fault injection.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/call_site.h"
#include "weft/base/small_vector.h"
#include "weft/graph/node.h"

namespace weft {

class Context;
class Device;
class MappedFile;
class Allocator;

struct AllocatorState;
struct Submission;
class Timeline;

/// A cache line, and the longest vector register, of the CPUs there are.
constexpr int64_t kHostAlignment = 64;

/// Where an allocator's blocks come from. A block is an opaque handle that only its device
/// understands; on host devices it is the address. Buffers keep it alive. Any thread may call.
class Memory {
 public:
  virtual ~Memory() = default;
  virtual void* allocate(size_t bytes) = 0;  ///< null where there is none
  virtual void release(void* block) = 0;
  /// A block is about to become a new buffer: for devices that see to it that nobody reads what
  /// nobody wrote.
  virtual void begin_use(void*, size_t) {}
  virtual int64_t alignment() const { return kHostAlignment; }  ///< of blocks; a power of two
  virtual int64_t most() const = 0;      ///< bytes that no allocation can pass
  virtual bool addressable() const = 0;  ///< by the host: a block is its address
};

/// While one lives, large blocks of host memory that its thread asks for have small pages: for what
/// is written once and read in order from then on. Where a host has to find memory for its virtual
/// machine first, new huge pages take several times as long (docs/measurements.md).
class SmallPagesScope {
 public:
  SmallPagesScope();
  ~SmallPagesScope();
  SmallPagesScope(const SmallPagesScope&) = delete;
  SmallPagesScope& operator=(const SmallPagesScope&) = delete;
};

/// Who memory is for, in messages: "conv1.weight", "arena", "train.cpp:12". Put together when a
/// message is.
class BufferLabel {
 public:
  BufferLabel(std::string_view text = {}, CallSite made = {})
      : text_(text), made_(made) {}                      // NOLINT
  BufferLabel(const std::string& text) : text_(text) {}  // NOLINT
  BufferLabel(const char* text) : text_(text) {}         // NOLINT
  std::string text() const;

 private:
  std::string text_;
  CallSite made_;
};

/// The newest points of a queue's timeline that read and wrote some memory; 0: none.
struct LastUse {
  uint64_t read = 0, written = 0;
};
/// Of each queue of a device; those that are not there never did.
using LastUses = SmallVector<LastUse, 2>;

/// Bytes on one device, given back to its allocator when destroyed; the memory becomes another
/// buffer's, or the system's, when the last points that use it are reached. Host devices set
/// data(). device() is valid while the Context lives; the memory itself is the buffer's own.
class Buffer {
 public:
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device& device() const { return *device_; }
  int64_t bytes() const { return bytes_; }
  void* data() const { return data_; }    ///< host address; null on devices without host memory
  void* block() const { return block_; }  ///< what the device's Memory gave
  std::string label() const { return label_.text(); }
  uint64_t serial() const { return serial_; }  ///< never used twice by one allocator

  /// What is in it, without looking: as long as this is equal, so are the contents. Of a mapped
  /// file: as long as nobody wrote to the file. Not where others may write unseen.
  struct Contents {
    uint64_t serial = 0, writes = 0;
    bool operator==(const Contents&) const = default;
  };
  Contents contents() const;
  bool changes_unseen() const { return owner_ != nullptr && file_ == nullptr && !constant_; }
  /// A kernel, a copy or the host writes to it.
  void note_write() { writes_.fetch_add(1, std::memory_order_relaxed); }

  /// Memory that is somebody else's and outlives the buffer through `owner`: it may be read by
  /// kernels and is never written. For host devices; aligned to elements at least.
  static std::shared_ptr<Buffer> borrow(Device& device, const void* data, int64_t bytes,
                                        std::shared_ptr<const void> owner);
  bool borrowed() const { return owner_ != nullptr; }
  /// Where the memory is a mapped file (its owner says so): an Error where the file has become
  /// shorter. Before whatever touches the memory.
  void check_file() const {
    if (file_ != nullptr) [[unlikely]]
      check_mapped();
  }
  bool in_file() const { return file_ != nullptr; }
  /// Of a mapped file the pages come to memory at once.
  void fetch() const;
  /// They leave memory until somebody looks at them again.
  void let_go() const;
  const std::shared_ptr<const void>& owner() const { return owner_; }  ///< null: its own
  /// Bytes from `offset` on, of memory that the host can address. Of a file they are read, which
  /// no other process can turn into a fault.
  void read(int64_t offset, std::span<std::byte> to) const;

 private:
  friend class Allocator;
  friend struct AllocatorState;
  Buffer(Device& device, int64_t bytes, BufferLabel label)
      : device_(&device), bytes_(bytes), label_(std::move(label)) {}

  std::shared_ptr<AllocatorState> state_;  // buffers may outlive their device; null: borrowed
  void check_mapped() const;

  std::shared_ptr<const void> owner_;
  const MappedFile* file_ = nullptr;  // the owner, where it is one
  bool constant_ = false;             // the owner says that nobody writes to it
  Device* device_;
  int64_t bytes_;
  size_t block_bytes_ = 0;  // what the block really has
  void *block_ = nullptr, *data_ = nullptr;
  BufferLabel label_;
  uint64_t serial_ = 0;
  std::atomic<uint64_t> writes_{0};
  size_t index_ = 0;  // in the list of live buffers
  LastUses uses_;     // on devices that complete later; guarded by the allocator
};

struct AllocatorStats {
  int64_t live_bytes = 0, peak_bytes = 0, cached_bytes = 0;
  int64_t live_buffers = 0, allocations = 0, cache_hits = 0;
};

/// A device's memory; without one, host memory, for devices that compute on the host (and for null,
/// which never touches it). Any thread may call.
class Allocator {
 public:
  /// cap 0: none. Freed blocks up to `cache_limit` bytes in all are kept for reuse.
  Allocator(Context& context, int64_t cap, int64_t cache_limit = int64_t{1} << 30,
            std::shared_ptr<Memory> memory = nullptr);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Contents are undefined. Over the cap or refused by the system: an Error of kind Memory that
  /// names the largest live buffers; nothing changes.
  std::shared_ptr<Buffer> allocate(Device& device, int64_t bytes, BufferLabel label);

  int64_t alignment() const;
  int64_t most() const;      ///< Memory::most
  bool addressable() const;  ///< Memory::addressable

  /// The device's queues; points of its buffers' uses are on these.
  void watch(std::vector<std::shared_ptr<Timeline>> queues);
  void used(const Submission& submission);  ///< its commands read and write their buffers
  LastUses last_uses(const Buffer& buffer) const;
  void forget_uses(Buffer& buffer);  ///< all are over, and what they wrote is overwritten

  uint64_t new_serial();  ///< for memory that is somebody else's
  void trim();            ///< gives the cached blocks that nothing uses back to the system
  AllocatorStats stats() const;
  void reset_peak();

  /// For tests: after `n` more allocations, the next one fails as if memory had run out (once).
  void fail_after(int64_t n);

 private:
  Context& context_;
  std::shared_ptr<AllocatorState> state_;
};

}  // namespace weft
