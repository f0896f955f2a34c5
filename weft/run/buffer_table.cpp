#include "weft/run/buffer_table.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/run/storage.h"

namespace weft {
namespace {

// Garbage below these amounts is not worth a walk over the graph; beside a realization, which costs
// more than the walk, less is. So many nodes and where they are looked up take 400 KiB: what they
// leave free is used again while the second cache still has it.
constexpr size_t kNodesWorthSweeping = 2000;
constexpr int64_t kBytesWorthSweeping = int64_t{1} << 20;
constexpr int64_t kBytesWorthSweepingAlone = int64_t{16} << 20;
// Beside memory that a walk found in use: so many new nodes may have what used it among the dead.
constexpr size_t kNewNodesWorthSweeping = 512;
// What a walk costs for one node, in bytes whose return is worth as much.
constexpr int64_t kBytesOfNode = 64;
// Looking at the number of nodes costs as much as making a few.
constexpr uint32_t kLazyDeathsBetweenLooks = 4096;

/// Not owned where that would take waiting that is not wanted.
template <class Mutex>
std::unique_lock<Mutex> only_one(Mutex& mutex, Graph::Wait wait) {
  if (wait == Graph::Wait::Never) return std::unique_lock(mutex, std::try_to_lock);
  return std::unique_lock(mutex);
}

struct TensorGraph {
  Graph graph{Graph::Sharing::Shared};
};

}  // namespace

Graph& tensor_graph(Context& context) { return context.get<TensorGraph>().graph; }

BufferTable::BufferTable(Context& context) : graph_(tensor_graph(context)) {
  // Made before us, like the graph, so destroyed after us.
  context.get<DeviceTable>();
}

NodeRef BufferTable::add(std::shared_ptr<Buffer> buffer, DType dtype, std::span<const NodeRef> dims,
                         DeviceId device) {
  return add(std::move(buffer), dtype, graph_.shape(dims), device);
}

NodeRef BufferTable::add(std::shared_ptr<Buffer> buffer, DType dtype, const Shape* shape,
                         DeviceId device) {
  std::lock_guard lock(mutex_);
  const int64_t id = next_id_++;
  NodeRef node = graph_.new_buffer(id, dtype, shape, device);
  bytes_ += buffer->bytes();
  entries_.emplace(id, Entry{std::move(buffer), node});
  return node;
}

std::shared_ptr<Buffer> BufferTable::find(int64_t id) const {
  std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  return at == entries_.end() ? nullptr : at->second.buffer;
}

NodeRef BufferTable::node(int64_t id) const {
  std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  return at == entries_.end() ? nullptr : at->second.node;
}

std::shared_ptr<Buffer> BufferTable::hold(int64_t id, Storage* storage) {
  std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  WEFT_CHECK(at != entries_.end(), "buffer {} has no memory", id);
  at->second.holders.push_back(storage);
  return at->second.buffer;
}

void BufferTable::leave(int64_t id, Storage* storage) {
  const bool building = Graph::Building::in_progress(graph_);
  std::shared_ptr<Buffer> dropped;  // its destructor runs outside the locks
  bool others = false, much = false;
  {
    std::unique_lock<Mutex> collecting;
    if (!building) collecting = only_one(collecting_, Graph::Wait::Never);
    std::lock_guard lock(mutex_);
    const auto at = entries_.find(id);
    if (at == entries_.end()) return;
    SmallVector<Storage*, 2>& holders = at->second.holders;
    if (const auto own = std::ranges::find(holders, storage); own != holders.end())
      holders.erase(static_cast<size_t>(own - holders.begin()));
    if (!collecting.owns_lock()) {
      released_.push_back(id);
      return;
    }
    others = !released_.empty();
    NodeRef n = at->second.node;
    if (n->roots.load(std::memory_order_acquire) == 0) {
      if (graph_.unread(n, 0, Graph::Wait::Never))
        dropped = forget(at);
      else
        suspect_bytes_ += at->second.buffer->bytes();
    }
    much = has_much_dead_memory();
  }
  if (others) reap(Graph::Wait::Never);
  if (much) sweep(Graph::Wait::Never);
}

void BufferTable::mark(int64_t id) {
  std::lock_guard lock(mutex_);
  if (const auto at = entries_.find(id); at != entries_.end()) at->second.marked = true;
}

bool BufferTable::is_marked(int64_t id) const {
  std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  return at != entries_.end() && at->second.marked;
}

void BufferTable::left_lazy() {
  if (lazy_deaths_.fetch_add(1, std::memory_order_relaxed) % kLazyDeathsBetweenLooks != 0) return;
  if (!Graph::Building::in_progress(graph_) && has_many_dead_nodes()) sweep(Graph::Wait::Never);
}

std::unordered_map<int64_t, std::vector<std::weak_ptr<Storage>>> BufferTable::holders() const {
  std::lock_guard lock(mutex_);
  std::unordered_map<int64_t, std::vector<std::weak_ptr<Storage>>> all;
  for (const auto& [id, entry] : entries_)
    for (Storage* s : entry.holders) all[id].push_back(s->weak_from_this());
  return all;
}

std::shared_ptr<Buffer> BufferTable::forget(Entries::iterator at) {
  std::shared_ptr<Buffer> buffer = std::move(at->second.buffer);
  bytes_ -= buffer->bytes();
  entries_.erase(at);
  return buffer;
}

SmallVector<BufferTable::Released, 8> BufferTable::take_released() {
  SmallVector<Released, 8> taken;
  std::lock_guard lock(mutex_);
  for (const int64_t id : released_) {
    const auto at = entries_.find(id);
    if (at == entries_.end()) continue;
    NodeRef n = at->second.node;
    if (n->roots.load(std::memory_order_acquire) == 0) taken.push_back({id, n});
  }
  released_.clear();
  return taken;
}

void BufferTable::reap(Graph::Wait wait) {
  std::vector<std::shared_ptr<Buffer>> dropped;  // their destructors run outside the locks
  const auto collecting = only_one(collecting_, wait);
  if (!collecting.owns_lock()) return;
  for (const auto& [id, n] : take_released()) {
    const bool dead = graph_.unread(n, 0, wait);
    std::lock_guard lock(mutex_);
    const auto at = entries_.find(id);
    if (at == entries_.end()) continue;
    if (dead)
      dropped.push_back(forget(at));
    else
      suspect_bytes_ += at->second.buffer->bytes();
  }
}

void BufferTable::sweep(Graph::Wait wait) {
  std::vector<std::shared_ptr<Buffer>> dropped;
  const auto collecting = only_one(collecting_, wait);
  if (!collecting.owns_lock()) return;
  std::vector<int64_t> freed;
  if (!graph_.sweep(&freed, wait)) return;
  std::lock_guard lock(mutex_);
  for (int64_t id : freed)
    if (const auto at = entries_.find(id); at != entries_.end()) dropped.push_back(forget(at));
  nodes_after_sweep_ = graph_.live_nodes();
  suspect_bytes_ = 0;
  survivor_bytes_ = 0;
  for (const auto& [id, entry] : entries_)
    if (entry.holders.empty()) survivor_bytes_ += entry.buffer->bytes();
  released_.clear();
}

bool BufferTable::sweep_frees_memory() {
  const auto count = [this] {
    std::lock_guard lock(mutex_);
    return entries_.size();
  };
  const size_t before = count();
  sweep();
  return count() < before;
}

void BufferTable::with_swept_memory(FunctionRef<void()> work) {
  try {
    return work();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Memory || !sweep_frees_memory()) throw;
  }
  work();
}

bool BufferTable::has_many_dead_nodes() const {
  return graph_.live_nodes() > 2 * nodes_after_sweep_ + kNodesWorthSweeping;
}

/// A walk for each 16 MiB, for each sixteenth of what is in use and for what it costs itself:
/// however long a program goes on without realizing anything, walks stay a small part of its work.
bool BufferTable::has_much_dead_memory() const {
  if (suspect_bytes_ <= std::max(kBytesWorthSweepingAlone, (bytes_ - suspect_bytes_) / 16))
    return false;
  return suspect_bytes_ > kBytesOfNode * static_cast<int64_t>(graph_.live_nodes());
}

/// What read a survivor may have died since, and says nothing when it does. The number of nodes
/// tells: each of them pays for a few steps of the walk.
bool BufferTable::survivors_may_be_dead() const {
  const size_t before = nodes_after_sweep_;
  return survivor_bytes_ > kBytesWorthSweeping &&
         graph_.live_nodes() > before + before / 4 + kNewNodesWorthSweeping;
}

void BufferTable::collect() {
  // Mostly nothing was released, or its memory went at once.
  std::unique_lock lock(mutex_);
  if (!released_.empty()) {
    lock.unlock();
    reap();
    lock.lock();
  }
  const bool worth = suspect_bytes_ > kBytesWorthSweeping || survivors_may_be_dead();
  lock.unlock();
  if (worth || has_many_dead_nodes()) sweep();
}

}  // namespace weft
