#include "weft/run/buffer_table.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/run/storage.h"

namespace weft {
namespace {

// Garbage below these amounts is not worth a walk over the graph.
constexpr size_t kNodesWorthSweeping = 20000;
constexpr int64_t kBytesWorthSweeping = int64_t{1} << 20;

struct TensorGraph {
  Graph graph{Graph::Sharing::Shared};
};

}  // namespace

Graph& tensor_graph(Context& context) { return context.get<TensorGraph>().graph; }

BufferTable::BufferTable(Context& context) : context_(context) {
  // Made before us, so destroyed after us.
  tensor_graph(context);
  context.get<DeviceTable>();
}

NodeRef BufferTable::add(std::shared_ptr<Buffer> buffer, DType dtype, std::span<const NodeRef> dims,
                         DeviceId device) {
  std::lock_guard lock(mutex_);
  const int64_t id = next_id_++;
  NodeRef node = tensor_graph(context_).buffer(id, dtype, dims, device);
  entries_.emplace(id, Entry{std::move(buffer), node, {}});
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
  std::lock_guard lock(mutex_);
  const auto at = entries_.find(id);
  if (at == entries_.end()) return;
  std::erase(at->second.holders, storage);
  released_.push_back(id);
}

std::unordered_map<int64_t, std::vector<std::weak_ptr<Storage>>> BufferTable::holders() const {
  std::lock_guard lock(mutex_);
  std::unordered_map<int64_t, std::vector<std::weak_ptr<Storage>>> all;
  for (const auto& [id, entry] : entries_)
    for (Storage* s : entry.holders) all[id].push_back(s->weak_from_this());
  return all;
}

void BufferTable::reap() {
  std::vector<int64_t> released;
  {
    std::lock_guard lock(mutex_);
    if (released_.empty()) return;
    released.swap(released_);
  }
  Graph& graph = tensor_graph(context_);
  std::vector<std::shared_ptr<Buffer>> dropped;  // their destructors run outside the lock
  for (int64_t id : released) {
    NodeRef n = node(id);
    if (!n || n->roots.load(std::memory_order_acquire) > 0) continue;
    const bool dead = graph.unread(n, 0);
    std::lock_guard lock(mutex_);
    const auto at = entries_.find(id);
    if (at == entries_.end()) continue;
    if (!dead) {
      suspect_bytes_ += at->second.buffer ? at->second.buffer->bytes() : 0;
      continue;
    }
    dropped.push_back(std::move(at->second.buffer));
    entries_.erase(at);
  }
}

size_t BufferTable::sweep() {
  std::vector<int64_t> freed;
  Graph& graph = tensor_graph(context_);
  const size_t nodes = graph.sweep(&freed);
  std::vector<std::shared_ptr<Buffer>> dropped;
  std::lock_guard lock(mutex_);
  for (int64_t id : freed) {
    const auto at = entries_.find(id);
    if (at == entries_.end()) continue;
    dropped.push_back(std::move(at->second.buffer));
    entries_.erase(at);
  }
  nodes_after_sweep_ = graph.live_nodes();
  suspect_bytes_ = 0;
  released_.clear();
  return nodes;
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

void BufferTable::collect() {
  reap();
  bool worth = tensor_graph(context_).live_nodes() > 2 * nodes_after_sweep_ + kNodesWorthSweeping;
  if (!worth) {
    std::lock_guard lock(mutex_);
    worth = suspect_bytes_ > kBytesWorthSweeping;
  }
  if (worth) sweep();
}

}  // namespace weft
