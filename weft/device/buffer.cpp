#include "weft/device/buffer.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "weft/base/bits.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"

namespace weft {

namespace {

constexpr int64_t kAlign = 64;
constexpr int64_t kHuge = int64_t{2} << 20;

// A little slack makes freed blocks fit the next request more often.
size_t block_size(int64_t bytes) {
  const int64_t step = bytes <= 4096 ? kAlign : bytes <= kHuge ? 4096 : 65536;
  return static_cast<size_t>(round_up(std::max(bytes, kAlign), step));
}

void* system_allocate(size_t bytes) {
  const bool huge = bytes >= static_cast<size_t>(kHuge);
  void* block = nullptr;
  if (::posix_memalign(&block, static_cast<size_t>(huge ? kHuge : kAlign), bytes) != 0) {
    return nullptr;
  }
  // Advice only: without huge pages everything works, slower.
  if (huge) ::madvise(block, bytes / kHuge * kHuge, MADV_HUGEPAGE);
  return block;
}

// What no allocation can be larger than: asking for more would only succeed by overcommitment.
int64_t machine_memory() {
  struct sysinfo info;
  if (::sysinfo(&info) != 0) return INT64_MAX / 2;
  return static_cast<int64_t>((info.totalram + info.totalswap) * info.mem_unit);
}

}  // namespace

struct AllocatorState {
  std::mutex mutex;
  int64_t cap, cache_limit;
  int64_t most = machine_memory();
  AllocatorStats stats;
  std::vector<Buffer*> live;
  std::multimap<size_t, void*> cache;  // freed blocks by size
  uint64_t serial = 0;
  int64_t fail_after = -1;  // -1: never

  ~AllocatorState() { drop_cache(); }

  void drop_cache() {
    for (auto& [size, block] : cache) std::free(block);
    cache.clear();
    stats.cached_bytes = 0;
  }

  // A cached block wastes at most a quarter.
  void* take_block(size_t& bytes) {
    const auto found = cache.lower_bound(bytes);
    if (found != cache.end() && found->first <= bytes + bytes / 4) {
      void* block = found->second;
      bytes = found->first;
      stats.cached_bytes -= static_cast<int64_t>(bytes);
      ++stats.cache_hits;
      cache.erase(found);
      return block;
    }
    if (void* block = system_allocate(bytes)) return block;
    drop_cache();
    return system_allocate(bytes);
  }

  void add(Buffer& buffer) {
    buffer.index_ = live.size();
    buffer.serial_ = ++serial;
    live.push_back(&buffer);
    stats.live_bytes += buffer.bytes_;
    ++stats.live_buffers;
    ++stats.allocations;
    stats.peak_bytes = std::max(stats.peak_bytes, stats.live_bytes);
  }

  void remove(Buffer& buffer) {
    live[buffer.index_] = live.back();
    live[buffer.index_]->index_ = buffer.index_;
    live.pop_back();
    stats.live_bytes -= buffer.bytes_;
    --stats.live_buffers;
  }

  void give_block(void* block, size_t bytes) {
    if (stats.cached_bytes + static_cast<int64_t>(bytes) > cache_limit) return std::free(block);
    cache.emplace(bytes, block);
    stats.cached_bytes += static_cast<int64_t>(bytes);
  }

  // "largest: conv1.weight 8.0 MiB, ...".
  std::string largest() const {
    std::vector<Buffer*> top = live;
    const size_t count = std::min<size_t>(5, top.size());
    std::partial_sort(top.begin(), top.begin() + static_cast<ptrdiff_t>(count), top.end(),
                      [](Buffer* a, Buffer* b) {
                        return a->bytes() != b->bytes() ? a->bytes() > b->bytes()
                                                        : a->serial() < b->serial();
                      });
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      const std::string& label = top[i]->label();
      append_format(text, "{}{} {}",
                    i ? ", " : "; largest: ", label.empty() ? "(unnamed)" : label.c_str(),
                    human_bytes(top[i]->bytes()));
    }
    return text;
  }

  [[noreturn]] void refuse(const Device& device, int64_t bytes, std::string_view label,
                           std::string_view why) const {
    fail_memory("memory", "{} more bytes ({}) for {} on {} {}: {} are live in {} buffers{}", bytes,
                human_bytes(bytes), label.empty() ? "a buffer" : label, device.name(), why,
                human_bytes(stats.live_bytes), live.size(), largest());
  }
};

Buffer::~Buffer() {
  if (state_ == nullptr) return;  // borrowed, or its allocation failed half-way
  std::lock_guard lock(state_->mutex);
  state_->remove(*this);
  state_->give_block(data_, block_bytes_);
}

std::shared_ptr<Buffer> Buffer::borrow(Device& device, const void* data, int64_t bytes,
                                       std::shared_ptr<const void> owner) {
  WEFT_CHECK(data != nullptr && owner != nullptr, "borrowed memory has no owner");
  std::shared_ptr<Buffer> buffer(new Buffer(device, bytes, "borrowed memory"));
  buffer->data_ = const_cast<void*>(data);  // kernels take one kind of pointer
  buffer->owner_ = std::move(owner);
  return buffer;
}

Allocator::Allocator(Context& context, int64_t cap, int64_t cache_limit)
    : context_(context), state_(std::make_shared<AllocatorState>()) {
  state_->cap = cap;
  state_->cache_limit = cache_limit;
}

Allocator::~Allocator() = default;

std::shared_ptr<Buffer> Allocator::allocate(Device& device, int64_t bytes, std::string_view label) {
  WEFT_CHECK(bytes >= 0, "an allocation of {} bytes", bytes);
  // Everything that can throw comes before anything changes.
  std::shared_ptr<Buffer> buffer(new Buffer(device, bytes, std::string(label)));
  AllocatorState& s = *state_;
  std::lock_guard lock(s.mutex);
  if (s.fail_after == 0) {
    s.fail_after = -1;
    s.refuse(device, bytes, label, "are not there (an injected fault)");
  }
  if (s.fail_after > 0) --s.fail_after;
  if (s.cap > 0 && bytes > s.cap - s.stats.live_bytes) {
    s.refuse(device, bytes, label,
             strformat("would pass the cap of {} (WEFT_MEMORY_CAP)", human_bytes(s.cap)));
  }
  if (bytes > s.most) {
    s.refuse(device, bytes, label,
             strformat("are more than this machine's memory, {}", human_bytes(s.most)));
  }
  size_t size = block_size(bytes);
  if (s.cap > 0 && s.stats.live_bytes + bytes + s.stats.cached_bytes > s.cap) s.drop_cache();
  if (s.live.size() == s.live.capacity()) s.live.reserve(2 * s.live.size() + 16);
  buffer->data_ = s.take_block(size);
  if (buffer->data_ == nullptr) s.refuse(device, bytes, label, "were refused by the system");
  buffer->block_bytes_ = size;
  buffer->state_ = state_;
  s.add(*buffer);
  context_.tracer().add(Counter::Allocations);
  context_.tracer().add(Counter::AllocatedBytes, bytes);
  return buffer;
}

void Allocator::trim() {
  std::lock_guard lock(state_->mutex);
  state_->drop_cache();
}

AllocatorStats Allocator::stats() const {
  std::lock_guard lock(state_->mutex);
  return state_->stats;
}

void Allocator::reset_peak() {
  std::lock_guard lock(state_->mutex);
  state_->stats.peak_bytes = state_->stats.live_bytes;
}

void Allocator::fail_after(int64_t n) {
  std::lock_guard lock(state_->mutex);
  state_->fail_after = n;
}

}  // namespace weft
