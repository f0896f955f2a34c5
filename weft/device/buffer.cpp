#include "weft/device/buffer.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "weft/base/bits.h"
#include "weft/base/constant_bytes.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/fork.h"
#include "weft/device/device.h"
#include "weft/device/fresh_zeros.h"

namespace weft {

namespace {

constexpr int64_t kHuge = int64_t{2} << 20;
constexpr size_t kPage = 4096;
thread_local int t_small_pages = 0;  // how many scopes there are

// A little slack makes freed blocks fit the next request more often.
size_t block_size(int64_t bytes, int64_t alignment) {
  const int64_t step = bytes <= 4096 ? alignment : bytes <= kHuge ? 4096 : 65536;
  return static_cast<size_t>(round_up(std::max(bytes, alignment), std::max(step, alignment)));
}

/// Large blocks are mappings, whose pages are zero and there when they are touched.
class HostMemory final : public Memory {
 public:
  void* allocate(size_t bytes) override {
    if (gives_zeros(bytes)) return map(bytes);
    void* block = nullptr;
    return ::posix_memalign(&block, kHostAlignment, bytes) == 0 ? block : nullptr;
  }
  void release(void* block) override {
    const auto at = mapped_.find(block);
    if (at == mapped_.end()) return std::free(block);
    ::munmap(block, at->second);
    mapped_.erase(at);
  }
  static bool gives_zeros(size_t bytes) { return bytes >= static_cast<size_t>(kHuge); }
  // Asking for more would only succeed by overcommitment.
  int64_t most() const override {
    struct sysinfo info;
    if (::sysinfo(&info) != 0) return INT64_MAX / 2;
    return static_cast<int64_t>((info.totalram + info.totalswap) * info.mem_unit);
  }
  bool addressable() const override { return true; }

 private:
  void* map(size_t bytes) {
    constexpr auto kAlignment = static_cast<size_t>(kHuge);
    bytes = round_up(bytes, kPage);
    void* whole = ::mmap(nullptr, bytes + kAlignment, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (whole == MAP_FAILED) return nullptr;
    auto* const begin = static_cast<std::byte*>(whole);
    const size_t before = -reinterpret_cast<uintptr_t>(begin) % kAlignment;
    if (before > 0) ::munmap(begin, before);
    if (before < kAlignment) ::munmap(begin + before + bytes, kAlignment - before);
    // Advice only: without huge pages everything works, slower.
    if (t_small_pages == 0)
      ::madvise(begin + before, bytes / kAlignment * kAlignment, MADV_HUGEPAGE);
    mapped_.emplace(begin + before, bytes);
    return begin + before;
  }

  std::map<void*, size_t> mapped_;  // and their bytes; an allocator calls under its own lock
};

}  // namespace

SmallPagesScope::SmallPagesScope() { ++t_small_pages; }
SmallPagesScope::~SmallPagesScope() { --t_small_pages; }

std::string BufferLabel::text() const {
  const std::string where = short_text(made_);
  if (where.empty() || text_.empty()) return text_ + where;
  return text_ + " at " + where;
}

struct AllocatorState {
  /// A freed block, and what may still be using it.
  struct Freed;
  using Cache = std::list<Freed>;
  using Sizes = std::multimap<size_t, Cache::iterator>;
  struct Made final : Buffer {  // in one allocation with its count
    Made(Device& device, int64_t bytes, BufferLabel label)
        : Buffer(device, bytes, std::move(label)) {}
  };
  struct Freed {
    void* block;
    LastUses uses;
    Sizes::iterator size = {};
  };

  ForkableMutex<std::mutex> mutex{ForkLock::Order::Memory};
  int64_t cap, cache_limit;
  std::shared_ptr<Memory> memory;
  std::vector<std::shared_ptr<Timeline>> queues;
  int64_t most = 0;
  AllocatorStats stats;
  std::vector<Buffer*> live;
  Cache cache;  // the one freed last is the first
  Sizes sizes;  // of those in the cache; likewise among equal ones
  // Of blocks that were taken, for those that come: most programs free as often as they allocate.
  Cache spare;
  std::vector<Sizes::node_type> spare_sizes;
  uint64_t serial = 0;
  bool gives_pages = false;            // memory is HostMemory
  std::unordered_set<uint64_t> zeros;  // live buffers that were zero when they came
  int64_t fail_after = -1;             // -1: never

  // A device that is gone has ended everything.
  ~AllocatorState() {
    for (const Freed& freed : cache) memory->release(freed.block);
  }

  bool is_over(const LastUses& uses) const {
    for (size_t q = 0; q < uses.size(); ++q)
      if (!queues[q]->reached(std::max(uses[q].read, uses[q].written))) return false;
    return true;
  }

  void* uncache(Cache::iterator freed) {
    stats.cached_bytes -= static_cast<int64_t>(freed->size->first);
    spare_sizes.push_back(sizes.extract(freed->size));
    spare.splice(spare.begin(), cache, freed);
    return freed->block;
  }

  /// Gives blocks that nothing uses any more back, those freed first before others, until no more
  /// than `limit` bytes are kept.
  void shrink_cache(int64_t limit) {
    for (auto at = cache.end(); at != cache.begin() && stats.cached_bytes > limit;) {
      const auto freed = --at;
      if (!is_over(freed->uses)) continue;
      ++at;
      memory->release(uncache(freed));
    }
  }

  /// All of them: waits for what still uses some. (Work that goes on asks for no memory.)
  void clear_cache() {
    for (const Freed& freed : cache)
      for (size_t q = 0; q < freed.uses.size(); ++q)
        queues[q]->wait(std::max(freed.uses[q].read, freed.uses[q].written));
    shrink_cache(0);
  }

  // A cached block wastes at most a quarter.
  void* take_cached(size_t& bytes) {
    for (auto at = sizes.lower_bound(bytes); at != sizes.end() && at->first <= bytes + bytes / 4;
         ++at) {
      if (!is_over(at->second->uses)) continue;
      bytes = at->first;
      ++stats.cache_hits;
      return uncache(at->second);
    }
    return nullptr;
  }

  void* take_block(size_t& bytes, uint64_t of) {
    if (void* block = take_cached(bytes)) return block;
    void* block = memory->allocate(bytes);
    if (block == nullptr) {
      clear_cache();
      block = memory->allocate(bytes);
    }
    if (block != nullptr && gives_pages && HostMemory::gives_zeros(bytes)) zeros.insert(of);
    return block;
  }

  void add(Buffer& buffer) {
    buffer.index_ = live.size();
    buffer.serial_ = serial;
    live.push_back(&buffer);
    stats.live_bytes += buffer.bytes_;
    ++stats.live_buffers;
    ++stats.allocations;
    stats.peak_bytes = std::max(stats.peak_bytes, stats.live_bytes);
  }

  static bool is_untouched_zeros(const Buffer& buffer) {
    if (buffer.state_ == nullptr || buffer.contents().writes != 0) return false;
    std::lock_guard lock(buffer.state_->mutex);
    return buffer.state_->zeros.contains(buffer.serial_);
  }

  void remove(Buffer& buffer) {
    if (!zeros.empty()) zeros.erase(buffer.serial_);
    live[buffer.index_] = live.back();
    live[buffer.index_]->index_ = buffer.index_;
    live.pop_back();
    stats.live_bytes -= buffer.bytes_;
    --stats.live_buffers;
  }

  /// A size that is asked for again finds the block that was freed last, which is still in a core's
  /// cache; sizes that nobody asks for any more make room.
  void give_block(void* block, size_t bytes, const LastUses& uses) {
    if (static_cast<int64_t>(bytes) > cache_limit && is_over(uses)) return memory->release(block);
    if (spare.empty()) {
      cache.push_front({block, uses});
      cache.front().size = sizes.emplace_hint(sizes.lower_bound(bytes), bytes, cache.begin());
    } else {
      cache.splice(cache.begin(), spare, spare.begin());
      Sizes::node_type size = std::move(spare_sizes.back());
      spare_sizes.pop_back();
      size.key() = bytes, size.mapped() = cache.begin();
      cache.front() = {block, uses, sizes.insert(sizes.lower_bound(bytes), std::move(size))};
    }
    stats.cached_bytes += static_cast<int64_t>(bytes);
    shrink_cache(cache_limit);
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
      const std::string label = top[i]->label();
      append_format(text, "{}{} {}",
                    i ? ", " : "; largest: ", label.empty() ? "(unnamed)" : label.c_str(),
                    human_bytes(top[i]->bytes()));
    }
    return text;
  }

  [[noreturn]] void refuse(const Device& device, const Buffer& buffer, std::string_view why) const {
    const int64_t bytes = buffer.bytes();
    const std::string label = buffer.label();
    fail_memory("memory", "{} more bytes ({}) for {} on {} {}: {} are live in {} buffers{}", bytes,
                human_bytes(bytes), label.empty() ? "a buffer" : label, device.name(), why,
                human_bytes(stats.live_bytes), live.size(), largest());
  }
};

bool is_untouched_zeros(const Buffer& buffer) { return AllocatorState::is_untouched_zeros(buffer); }

Buffer::~Buffer() {
  if (state_ == nullptr) return;  // borrowed, or its allocation failed half-way
  std::lock_guard lock(state_->mutex);
  state_->remove(*this);
  state_->give_block(block_, block_bytes_, uses_);
}

std::shared_ptr<Buffer> Buffer::borrow(Device& device, const void* data, int64_t bytes,
                                       std::shared_ptr<const void> owner) {
  WEFT_CHECK(data != nullptr && owner != nullptr, "borrowed memory has no owner");
  WEFT_CHECK(device.allocator().addressable(), "{} cannot read memory of the host", device.name());
  std::shared_ptr<Buffer> buffer(new Buffer(device, bytes, "borrowed memory"));
  buffer->block_ = buffer->data_ = const_cast<void*>(data);  // kernels take one kind of pointer
  buffer->owner_ = std::move(owner);
  buffer->file_ = MappedFile::of(buffer->owner_);
  buffer->constant_ = are_constant_bytes(buffer->owner_);
  buffer->serial_ = device.allocator().new_serial();
  return buffer;
}

void Buffer::check_mapped() const { file_->check(); }

void Buffer::fetch() const {
  if (file_) file_->fetch({static_cast<const std::byte*>(data_), static_cast<size_t>(bytes_)});
}

void Buffer::let_go() const {
  if (file_) file_->let_go({static_cast<const std::byte*>(data_), static_cast<size_t>(bytes_)});
}

Buffer::Contents Buffer::contents() const {
  return {serial_, file_ ? file_->version() : writes_.load(std::memory_order_relaxed)};
}

void Buffer::read(int64_t offset, std::span<std::byte> to) const {
  const auto* from = static_cast<const std::byte*>(data_) + offset;
  if (file_ != nullptr)
    file_->read(static_cast<uint64_t>(from - file_->bytes().data()), to,
                device_->context().thread_pool());
  else
    std::memcpy(to.data(), from, to.size());
}

Allocator::Allocator(Context& context, int64_t cap, int64_t cache_limit,
                     std::shared_ptr<Memory> memory)
    : context_(context), state_(std::make_shared<AllocatorState>()) {
  state_->gives_pages = !memory;
  state_->memory = memory ? std::move(memory) : std::make_shared<HostMemory>();
  state_->most = state_->memory->most();
  state_->cap = cap;
  state_->cache_limit = cache_limit;
}

Allocator::~Allocator() = default;

std::shared_ptr<Buffer> Allocator::allocate(Device& device, int64_t bytes, BufferLabel label) {
  WEFT_CHECK(bytes >= 0, "an allocation of {} bytes", bytes);
  // Everything that can throw comes before anything changes.
  std::shared_ptr<Buffer> buffer =
      std::make_shared<AllocatorState::Made>(device, bytes, std::move(label));
  AllocatorState& s = *state_;
  std::lock_guard lock(s.mutex);
  if (s.fail_after == 0) {
    s.fail_after = -1;
    s.refuse(device, *buffer, "are not there (an injected fault)");
  }
  if (s.fail_after > 0) --s.fail_after;
  if (s.cap > 0 && bytes > s.cap - s.stats.live_bytes) {
    s.refuse(device, *buffer,
             strformat("would pass the cap of {} (WEFT_MEMORY_CAP)", human_bytes(s.cap)));
  }
  if (bytes > s.most) {
    s.refuse(device, *buffer,
             strformat("are more than {} memory, {}",
                       s.memory->addressable() ? "this machine's" : "the device's",
                       human_bytes(s.most)));
  }
  size_t size = block_size(bytes, s.memory->alignment());
  if (s.cap > 0 && s.stats.live_bytes + bytes + s.stats.cached_bytes > s.cap) s.clear_cache();
  if (s.live.size() == s.live.capacity()) s.live.reserve(2 * s.live.size() + 16);
  buffer->block_ = s.take_block(size, ++s.serial);
  if (buffer->block_ == nullptr) s.refuse(device, *buffer, "were refused by the system");
  s.memory->begin_use(buffer->block_, size);
  if (s.memory->addressable()) buffer->data_ = buffer->block_;
  buffer->block_bytes_ = size;
  buffer->state_ = state_;
  s.add(*buffer);
  context_.tracer().add(Counter::Allocations);
  context_.tracer().add(Counter::AllocatedBytes, bytes);
  return buffer;
}

int64_t Allocator::most() const { return state_->most; }
int64_t Allocator::alignment() const { return state_->memory->alignment(); }
bool Allocator::addressable() const { return state_->memory->addressable(); }

void Allocator::watch(std::vector<std::shared_ptr<Timeline>> queues) {
  state_->queues = std::move(queues);
}

void Allocator::used(const Submission& s) {
  std::lock_guard lock(state_->mutex);
  const auto use = [&](const BufferSlice& slice, bool reads, bool writes) {
    if (slice.buffer == nullptr) return;  // the device says so
    LastUses& uses = slice.buffer->uses_;
    if (uses.empty()) uses.resize(state_->queues.size());
    LastUse& mine = uses[static_cast<size_t>(s.queue)];
    if (reads) mine.read = s.point;
    if (writes) mine.written = s.point;
  };
  for (const Command& c : s.commands) {
    if (c.kind == Command::Kind::Copy) {
      use(c.from, true, false);
      use(c.to, false, true);
      continue;
    }
    for (size_t i = 0; i < c.buffers.size(); ++i)
      use(c.buffers[i], c.executable->reads(i), c.executable->writes(i));
  }
}

LastUses Allocator::last_uses(const Buffer& buffer) const {
  std::lock_guard lock(state_->mutex);
  return buffer.uses_;
}

void Allocator::forget_uses(Buffer& buffer) {
  std::lock_guard lock(state_->mutex);
  buffer.uses_.clear();
}

uint64_t Allocator::new_serial() {
  std::lock_guard lock(state_->mutex);
  return ++state_->serial;
}

void Allocator::trim() {
  std::lock_guard lock(state_->mutex);
  state_->shrink_cache(0);
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
