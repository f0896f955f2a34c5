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

/// Bytes on one device, given back to its allocator when destroyed. The device must outlive it (the
/// Context keeps its devices to its end). Host devices align to 64 bytes and set data().
class Buffer {
 public:
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  Device& device() const { return *device_; }
  int64_t bytes() const { return bytes_; }
  void* data() const { return data_; }  ///< host address; null on devices without host memory
  const std::string& label() const { return label_; }

 private:
  friend class Allocator;
  Buffer(Allocator& allocator, Device& device, int64_t bytes, std::string label)
      : allocator_(&allocator), device_(&device), bytes_(bytes), label_(std::move(label)) {}

  Allocator* allocator_;
  Device* device_;
  int64_t bytes_;
  int64_t block_bytes_ = 0;  // what the block really has
  void* data_ = nullptr;
  std::string label_;   // who it is for, in messages: "conv1.weight", "arena", "train.cpp:12"
  uint64_t index_ = 0;  // in the allocator's list of live buffers
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
  friend class Buffer;
  struct State;
  void free(Buffer& buffer);

  Context& context_;
  std::unique_ptr<State> state_;
};

}  // namespace weft
