// Buffer: device memory with an owner; Allocator: freed-block cache, hard cap, fault injection.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "weft/graph/node.h"

namespace weft {

class Context;
class Device;
class Allocator;

struct AllocatorState;

/// Bytes on one device, given back to its allocator when destroyed. Host devices align to 64 bytes
/// and set data(). device() is valid while the Context lives; the memory itself is the buffer's
/// own.
class Buffer {
 public:
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device& device() const { return *device_; }
  int64_t bytes() const { return bytes_; }
  void* data() const { return data_; }  ///< host address; null on devices without host memory
  const std::string& label() const { return label_; }
  uint64_t serial() const { return serial_; }  ///< never used twice by one allocator

  /// Memory that is somebody else's and outlives the buffer through `owner`: it may be read by
  /// kernels and is never written. For host devices; aligned to elements at least.
  static std::shared_ptr<Buffer> borrow(Device& device, const void* data, int64_t bytes,
                                        std::shared_ptr<const void> owner);
  bool borrowed() const { return owner_ != nullptr; }

 private:
  friend class Allocator;
  friend struct AllocatorState;
  Buffer(Device& device, int64_t bytes, std::string label)
      : device_(&device), bytes_(bytes), label_(std::move(label)) {}

  std::shared_ptr<AllocatorState> state_;  // buffers may outlive their device; null: borrowed
  std::shared_ptr<const void> owner_;
  Device* device_;
  int64_t bytes_;
  size_t block_bytes_ = 0;  // what the block really has
  void* data_ = nullptr;
  std::string label_;  // who it is for, in messages: "conv1.weight", "arena", "train.cpp:12"
  uint64_t serial_ = 0;
  size_t index_ = 0;  // in the list of live buffers
};

struct AllocatorStats {
  int64_t live_bytes = 0, peak_bytes = 0, cached_bytes = 0;
  int64_t live_buffers = 0, allocations = 0, cache_hits = 0;
};

/// Host memory for devices that compute on the host (and for null, which never touches it). Any
/// thread may call.
class Allocator {
 public:
  /// cap 0: none. Freed blocks up to `cache_limit` bytes in all are kept for reuse.
  Allocator(Context& context, int64_t cap, int64_t cache_limit = int64_t{1} << 30);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// Contents are undefined. Over the cap or refused by the system: an Error of kind Memory that
  /// names the largest live buffers; nothing changes.
  std::shared_ptr<Buffer> allocate(Device& device, int64_t bytes, std::string_view label);

  void trim();  ///< gives the cached blocks back to the system
  AllocatorStats stats() const;
  void reset_peak();

  /// For tests: after `n` more allocations, the next one fails as if memory had run out (once).
  void fail_after(int64_t n);

 private:
  Context& context_;
  std::shared_ptr<AllocatorState> state_;
};

}  // namespace weft
