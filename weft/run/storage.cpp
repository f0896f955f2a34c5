#include "weft/run/storage.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"

namespace weft {
namespace {

// Garbage below these amounts is not worth a walk over the graph.
constexpr size_t kNodesWorthSweeping = 20000;
constexpr int64_t kBytesWorthSweeping = int64_t{64} << 20;

struct TensorGraph {
  Graph graph{Graph::Sharing::Shared};
};

int64_t static_bytes(DType dtype, std::span<const NodeRef> dims) {
  int64_t count = 1;
  for (NodeRef d : dims) count *= d->vmax;
  return bytes_for(dtype, count);
}

}  // namespace

Graph& tensor_graph(Context& context) { return context.get<TensorGraph>().graph; }

// ---- BufferTable

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

size_t BufferTable::sweep() {
  std::vector<int64_t> freed;
  Graph& graph = tensor_graph(context_);
  const size_t nodes = graph.sweep(&freed);
  std::vector<std::shared_ptr<Buffer>> released;  // their destructors run outside the lock
  std::lock_guard lock(mutex_);
  for (int64_t id : freed) {
    const auto at = entries_.find(id);
    if (at == entries_.end()) continue;
    released.push_back(std::move(at->second.buffer));
    entries_.erase(at);
  }
  nodes_after_sweep_ = graph.live_nodes();
  unrooted_after_sweep_ = unrooted_bytes();
  return nodes;
}

int64_t BufferTable::unrooted_bytes() const {
  int64_t bytes = 0;
  for (const auto& [id, entry] : entries_)
    if (entry.node->roots.load(std::memory_order_relaxed) == 0) bytes += entry.buffer->bytes();
  return bytes;
}

void BufferTable::sweep_if_worthwhile() {
  bool worth = tensor_graph(context_).live_nodes() > 2 * nodes_after_sweep_ + kNodesWorthSweeping;
  if (!worth) {
    std::lock_guard lock(mutex_);
    worth = unrooted_bytes() > unrooted_after_sweep_ + kBytesWorthSweeping;
  }
  if (worth) sweep();
}

// ---- Storage

Storage::Storage(Context& context, NodeRef value) : context_(context), value_(value) {
  tensor_graph(context_).retain(value_);
  if (realized()) home_ = buffer_id(value_);
}

Storage::~Storage() { tensor_graph(context_).release(value_); }

void Storage::set_value(NodeRef value) {
  Graph& graph = tensor_graph(context_);
  graph.retain(value);
  graph.release(value_);
  value_ = value;
  if (realized()) home_ = buffer_id(value_);
}

std::shared_ptr<Buffer> Storage::buffer() const {
  return realized() ? context_.get<BufferTable>().find(buffer_id(value_)) : nullptr;
}

std::shared_ptr<Storage> storage_from_bytes(Context& context, std::span<const std::byte> data,
                                            DType dtype, std::span<const NodeRef> dims,
                                            DeviceId device) {
  DeviceTable& devices = context.get<DeviceTable>();
  Device& target = device ? devices.open(device) : devices.default_device();
  const int64_t bytes = static_bytes(dtype, dims);
  if (static_cast<int64_t>(data.size()) != bytes)
    internal_error("storage", "{} bytes of data for a shape of {} bytes", data.size(), bytes);
  std::shared_ptr<Buffer> buffer = target.allocate(bytes, "from host data");
  target.copy_in({buffer.get(), 0}, data);
  Graph::Building building(tensor_graph(context));
  NodeRef node = context.get<BufferTable>().add(std::move(buffer), dtype, dims, target.id());
  return std::make_shared<Storage>(context, node);
}

std::vector<std::byte> storage_to_bytes(const Storage& storage) {
  std::shared_ptr<Buffer> buffer = storage.buffer();
  if (!buffer) internal_error("storage", "read before it was realized");
  std::vector<std::byte> out(
      static_cast<size_t>(static_bytes(storage.value()->dtype, storage.value()->shape->span())));
  Device& device = buffer->device();
  device.copy_out(out, {buffer.get(), 0});
  return out;
}

}  // namespace weft
