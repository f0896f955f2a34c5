#include "weft/graph/graph.h"

#include <algorithm>
#include <bit>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/fork.h"
#include "weft/base/interrupt.h"
#include "weft/graph/infer.h"
#include "weft/graph/node_map.h"
#include "weft/graph/node_memory.h"
#include "weft/graph/tuple.h"

namespace weft {
namespace {

uint64_t mix(uint64_t h, uint64_t v) {
  // The finaliser of MurmurHash3 (Austin Appleby, public domain) over a running combination.
  h ^= v + 0x9E3779B97F4A7C15ull + (h << 6) + (h >> 2);
  h ^= h >> 33;
  h *= 0xFF51AFD7ED558CCDull;
  h ^= h >> 29;
  return h;
}

uint64_t hash_text(std::string_view text) {
  uint64_t h = text.size();
  for (char c : text) h = mix(h, static_cast<unsigned char>(c));
  return h;
}

struct Hashes {
  uint64_t structural, key;
};

/// Which buffer it is, or which trace's placeholder, depends on history; that it is one, of this
/// shape and device, does not.
bool is_of_history(const NodeSpec& s) {
  return s.op == Op::Buffer ||
         (s.op == Op::Param && !s.ints.empty() && s.ints[0] >= kInnerSlotsEnd);
}

uint64_t hash_head(const NodeSpec& s) {
  return mix(static_cast<uint64_t>(s.op) << 16 | static_cast<uint64_t>(s.dtype) << 8 | s.lanes,
             s.src.size());
}

uint64_t key_of(const NodeSpec& s) {
  uint64_t k = hash_head(s);
  for (NodeRef x : s.src) k = mix(k, x->key);
  for (int64_t v : s.ints) k = mix(k, static_cast<uint64_t>(v));
  return s.text.empty() ? k : mix(k, hash_text(s.text));
}

Hashes hashes_of(const NodeSpec& s) {
  const bool history = is_of_history(s), bind = s.op == Op::Bind;
  bool one = !history && !bind;  // both hashes are
  uint64_t h = hash_head(s);
  for (size_t i = 0; i < s.src.size(); ++i) {
    // What a variable is bound to this time must not decide about order: other values, same graph.
    h = mix(h, bind && i == 1 ? 0 : s.src[i]->hash);
    one = one && s.src[i]->hash == s.src[i]->key;
  }
  for (size_t i = 0; i < s.ints.size(); ++i)
    h = mix(h, i == 0 && history ? 0 : static_cast<uint64_t>(s.ints[i]));
  if (!s.text.empty()) h = mix(h, hash_text(s.text));
  return {h, one ? h : key_of(s)};
}

/// Of lists so short that memcmp would take longer to call.
template <class T>
bool equal(std::span<const T> a, std::span<const T> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

bool same(NodeRef n, const NodeSpec& s) {
  return n->op == s.op && n->dtype == s.dtype && n->lanes == s.lanes && equal(n->src(), s.src) &&
         equal(n->ints(), s.ints) && n->text() == s.text;
}

size_t node_bytes(size_t nsrc, size_t nints, size_t text) {
  return sizeof(Node) + nsrc * sizeof(NodeRef) + nints * sizeof(int64_t) + text;
}

/// One part of the intern table, with its own lock and memory.
struct Shard {
  std::mutex mutex;
  struct Slot {
    uint64_t key = 0;  // of the node, so that looking past other nodes does not touch them
    Node* node = nullptr;
  };
  std::vector<Slot> slots;
  std::atomic<size_t> count = 0;  // written under the lock; read without it, too
  NodeMemory memory;

  Node* find(const NodeSpec& s, uint64_t key) const {
    if (slots.empty()) return nullptr;
    size_t i = (key >> 8) & (slots.size() - 1);
    for (; slots[i].node; i = (i + 1) & (slots.size() - 1))
      if (slots[i].key == key && same(slots[i].node, s)) return slots[i].node;
    return nullptr;
  }
  void insert(uint64_t key, Node* n) {
    size_t i = (key >> 8) & (slots.size() - 1);
    while (slots[i].node) i = (i + 1) & (slots.size() - 1);
    slots[i] = {key, n};
    count.store(live() + 1, std::memory_order_relaxed);
  }
  size_t live() const { return count.load(std::memory_order_relaxed); }
  void grow_if_full() {
    if ((live() + 1) * 4 < slots.size() * 3) return;
    std::vector<Slot> old(std::max<size_t>(256, slots.size() * 2));
    old.swap(slots);
    count = 0;
    for (const Slot& s : old)
      if (s.node) insert(s.key, s.node);
  }
};

struct ShapeTable {
  std::mutex mutex;
  std::vector<Shape*> slots;
  size_t count = 0;
  NodeMemory memory;
};

thread_local std::vector<std::pair<const void*, int>>
    building_depth;  // per graph; a thread builds in few graphs

int& depth_of(const void* graph) {
  for (auto& [g, depth] : building_depth)
    if (g == graph) return depth;
  return building_depth.emplace_back(graph, 0).second;
}

void drop_depth(const void* graph) {
  std::erase_if(building_depth, [graph](const auto& entry) { return entry.first == graph; });
}

/// A fork comes between the Building scopes of other threads. One of the forking thread itself goes
/// on in the child.
class BuildingAtFork final : public ForkLock {
 public:
  BuildingAtFork(const void* graph, std::shared_mutex& building)
      : graph_(graph), building_(building) {}
  void before_fork() override {
    own_ = is_own();
    if (!own_) building_.lock();
  }
  bool try_before_fork() override {
    own_ = is_own();
    return own_ || building_.try_lock();
  }
  void after_in_parent() override {
    if (!own_) building_.unlock();
  }
  void after_in_child() override {
    new (&building_) std::shared_mutex;
    if (own_) building_.lock_shared();
  }

 private:
  bool is_own() const {
    return std::ranges::any_of(building_depth, [this](const auto& entry) {
      return entry.first == graph_ && entry.second > 0;
    });
  }

  const void* graph_;
  std::shared_mutex& building_;
  bool own_ = false;
  Registration registration_{*this, Order::Building};
};

}  // namespace

struct Graph::State {
  bool shared;
  size_t shard_count;
  std::unique_ptr<Shard[]> shards;
  ShapeTable shapes;
  const Shape* scalar = nullptr;
  std::atomic<size_t> live{0};  // nodes of all shards, where they are shared
  std::shared_mutex building;
  std::optional<BuildingAtFork> at_fork;

  explicit State(bool is_shared)
      : shared(is_shared), shard_count(is_shared ? 16 : 1), shards(new Shard[shard_count]) {
    if (shared) at_fork.emplace(this, building);
  }
  Shard& shard(uint64_t key) { return shards[shared ? key & (shard_count - 1) : 0]; }
};

Graph::Graph(Sharing sharing) : state_(new State(sharing == Sharing::Shared)) {
  state_->scalar = shape({});
}
Graph::~Graph() = default;

const Shape* Graph::scalar_shape() { return state_->scalar; }

const Shape* Graph::shape(std::span<const NodeRef> dims) {
  ShapeTable& t = state_->shapes;
  uint64_t h = dims.size();
  for (NodeRef d : dims) h = mix(h, d->key);
  std::lock_guard lock(t.mutex);
  if ((t.count + 1) * 4 >= t.slots.size() * 3) {
    std::vector<Shape*> old(t.slots.empty() ? 64 : t.slots.size() * 2);
    old.swap(t.slots);
    for (Shape* s : old) {
      if (!s) continue;
      size_t i = s->hash & (t.slots.size() - 1);
      while (t.slots[i]) i = (i + 1) & (t.slots.size() - 1);
      t.slots[i] = s;
    }
  }
  size_t i = h & (t.slots.size() - 1);
  for (; t.slots[i]; i = (i + 1) & (t.slots.size() - 1)) {
    const Shape* s = t.slots[i];
    if (s->hash == h && s->rank == dims.size() &&
        std::equal(dims.begin(), dims.end(), s->span().begin()))
      return s;
  }
  void* p = t.memory.allocate(sizeof(Shape) + dims.size() * sizeof(NodeRef));
  auto* s = new (p) Shape{h, static_cast<uint32_t>(dims.size())};
  std::copy(dims.begin(), dims.end(), reinterpret_cast<NodeRef*>(s + 1));
  t.slots[i] = s;
  ++t.count;
  return s;
}

namespace {

Node* place_node(void* memory, const NodeSpec& s, Hashes hashes, const Inferred& inferred) {
  Node* n = new (memory) Node;
  n->op = s.op;
  n->dtype = s.dtype;
  n->lanes = s.lanes;
  for (size_t i = 0; i < 3; ++i)
    n->src_op[i] = i < s.src.size() ? static_cast<uint8_t>(s.src[i]->op) : 0;
  n->device = inferred.device;
  n->nsrc = static_cast<uint32_t>(s.src.size());
  n->nints = static_cast<uint16_t>(s.ints.size());
  n->hash = hashes.structural;
  n->key = hashes.key;
  n->shape = inferred.shape;
  n->vmin = inferred.vmin;
  n->vmax = inferred.vmax;
  n->recorded.store(UINT32_MAX, std::memory_order_relaxed);
  n->mark = 0;
  n->normal.store(0, std::memory_order_relaxed);
  n->roots.store(0, std::memory_order_relaxed);
  n->readers.store(0, std::memory_order_relaxed);
  for (NodeRef x : s.src)
    if (x->op == Op::Buffer) x->readers.fetch_add(1, std::memory_order_relaxed);
  auto* src = reinterpret_cast<NodeRef*>(n + 1);
  std::copy(s.src.begin(), s.src.end(), src);
  auto* ints = reinterpret_cast<int64_t*>(src + s.src.size());
  std::copy(s.ints.begin(), s.ints.end(), ints);
  auto* text = reinterpret_cast<char*>(ints + s.ints.size());
  std::copy(s.text.begin(), s.text.end(), text);
  n->text_size = static_cast<uint32_t>(s.text.size());
  n->levels = inner_levels(n);
  return n;
}

/// A node that is not there yet. With the shard's lock held, where it has to be.
NodeRef insert(Shard& shard, const NodeSpec& spec, Hashes hashes, const Inferred& inferred) {
  shard.grow_if_full();
  void* p = shard.memory.allocate(node_bytes(spec.src.size(), spec.ints.size(), spec.text.size()));
  Node* n = place_node(p, spec, hashes, inferred);
  shard.insert(hashes.key, n);
  return n;
}

}  // namespace

NodeRef Graph::intern(const NodeSpec& spec) {
  const Hashes hashes = hashes_of(spec);
  Shard& shard = state_->shard(hashes.key);
  {
    std::unique_lock lock(shard.mutex, std::defer_lock);
    if (state_->shared) lock.lock();
    if (Node* found = shard.find(spec, hashes.key)) return found;
  }
  poll_interrupt();
  // Inference may intern index nodes and shapes, so no lock is held while it runs.
  const Inferred inferred = infer(*this, spec);
  std::unique_lock lock(shard.mutex, std::defer_lock);
  if (state_->shared) {
    lock.lock();
    if (Node* found = shard.find(spec, hashes.key)) return found;
  }
  NodeRef n = insert(shard, spec, hashes, inferred);
  if (state_->shared) state_->live.fetch_add(1, std::memory_order_relaxed);
  return n;
}

NodeRef Graph::new_buffer(int64_t id, DType dtype, const Shape* shape, DeviceId device) {
  const int64_t ints[] = {id, device};
  const NodeSpec spec{Op::Buffer, dtype, shape->span(), ints};
  const Hashes hashes = hashes_of(spec);
  const auto [vmin, vmax] = dtype_bounds(dtype);
  Shard& shard = state_->shard(hashes.key);
  std::unique_lock lock(shard.mutex, std::defer_lock);
  if (state_->shared) lock.lock();
  NodeRef n = insert(shard, spec, hashes, {shape, device, vmin, vmax});
  if (state_->shared) state_->live.fetch_add(1, std::memory_order_relaxed);
  return n;
}

// ---- lifetime

Graph::Building::Building(Graph& g) : graph_(g) {
  if (!g.state_->shared) return;
  if (depth_of(g.state_.get())++ == 0) g.state_->building.lock_shared();
}
Graph::Building::~Building() {
  if (!graph_.state_->shared) return;
  if (--depth_of(graph_.state_.get()) == 0) {
    drop_depth(graph_.state_.get());
    graph_.state_->building.unlock_shared();
  }
}

bool Graph::Building::in_progress(const Graph& g) {
  return std::ranges::any_of(building_depth, [&g](const auto& entry) {
    return entry.first == g.state_.get() && entry.second > 0;
  });
}

namespace {

/// The graph to oneself; not owned where that would take waiting that is not wanted.
std::unique_lock<std::shared_mutex> exclusive_lock(std::shared_mutex& building, Graph::Wait wait) {
  if (wait == Graph::Wait::Never) return std::unique_lock(building, std::try_to_lock);
  return std::unique_lock(building);
}

/// Marks what `roots` reach; marks are cleared by the caller.
void mark_from(std::vector<const Node*>& stack) {
  auto visit = [&stack](const Node* n) {
    if (n->mark) return;
    n->mark = 1;
    stack.push_back(n);
  };
  std::vector<const Node*> roots;
  roots.swap(stack);
  for (const Node* n : roots) visit(n);
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    for (NodeRef x : n->src()) visit(x);
    for (NodeRef d : n->shape->span()) visit(d);
  }
}

/// Shapes of live nodes have live dims; the others go.
void sweep_shapes(ShapeTable& table) {
  std::vector<Shape*> old(table.slots.size());
  old.swap(table.slots);
  table.count = 0;
  for (Shape* s : old) {
    if (!s) continue;
    const auto dims = s->span();
    if (!std::all_of(dims.begin(), dims.end(), [](NodeRef d) { return d->mark != 0; })) {
      table.memory.release(s, sizeof(Shape) + dims.size_bytes());
      continue;
    }
    size_t i = s->hash & (table.slots.size() - 1);
    while (table.slots[i]) i = (i + 1) & (table.slots.size() - 1);
    table.slots[i] = s;
    ++table.count;
  }
}

/// Buffers lose the readers that are about to go. Comes before any memory is released.
void drop_readers(const Shard& shard) {
  for (const auto& [key, n] : shard.slots) {
    if (!n || n->mark) continue;
    for (NodeRef x : n->src())
      if (x->op == Op::Buffer) x->readers.fetch_sub(1, std::memory_order_relaxed);
  }
}

/// Fewer than there are only where most would stay empty.
size_t slots_for(const Shard& shard) {
  const auto live = static_cast<size_t>(std::ranges::count_if(
      shard.slots, [](const Shard::Slot& s) { return s.node && s.node->mark; }));
  const size_t enough = std::max<size_t>(256, std::bit_ceil(live * 4));
  return std::min(enough, shard.slots.size());
}

/// Removes unmarked nodes from a shard and clears the marks of the others.
size_t sweep_shard(Shard& shard, std::vector<int64_t>* freed_buffers) {
  std::vector<Shard::Slot> old(slots_for(shard));
  old.swap(shard.slots);
  shard.count = 0;
  size_t freed = 0;
  for (const auto& [key, n] : old) {
    if (!n) continue;
    if (n->mark) {
      n->mark = 0;
      shard.insert(key, n);
      continue;
    }
    ++freed;
    if (freed_buffers && n->op == Op::Buffer) freed_buffers->push_back(buffer_id(n));
    const size_t bytes = node_bytes(n->nsrc, n->nints, n->text_size);
    n->~Node();
    shard.memory.release(n, bytes);
  }
  shard.memory.give_back_empty_slabs();
  return freed;
}

}  // namespace

std::optional<size_t> Graph::sweep(std::vector<int64_t>* freed_buffers, Wait wait) {
  if (!state_->shared || Building::in_progress(*this)) return 0;
  const auto exclusive = exclusive_lock(state_->building, wait);
  if (!exclusive.owns_lock()) return std::nullopt;
  std::vector<const Node*> roots;
  for (size_t s = 0; s < state_->shard_count; ++s)
    for (const auto& [key, n] : state_->shards[s].slots)
      if (n && n->roots.load(std::memory_order_acquire) > 0) roots.push_back(n);
  mark_from(roots);
  sweep_shapes(state_->shapes);
  for (size_t s = 0; s < state_->shard_count; ++s) drop_readers(state_->shards[s]);
  size_t freed = 0;
  for (size_t s = 0; s < state_->shard_count; ++s)
    freed += sweep_shard(state_->shards[s], freed_buffers);
  state_->live.fetch_sub(freed, std::memory_order_relaxed);
  return freed;
}

std::vector<bool> Graph::reachable(std::span<const NodeRef> nodes,
                                   std::span<const NodeRef> except) {
  // The marks belong to whoever holds the graph exclusively.
  if (Building::in_progress(*this)) internal_error("graph", "reachable: called while building");
  std::unique_lock exclusive(state_->building);
  NodeMap<uint32_t> discounted;
  for (NodeRef n : except) ++discounted[n];
  std::vector<const Node*> roots;
  for (size_t s = 0; s < state_->shard_count; ++s) {
    for (const auto& [key, n] : state_->shards[s].slots) {
      if (!n) continue;
      const uint32_t* less = discounted.find(n);
      if (n->roots.load(std::memory_order_acquire) > (less ? *less : 0)) roots.push_back(n);
    }
  }
  mark_from(roots);
  std::vector<bool> found;
  for (NodeRef n : nodes) found.push_back(n->mark != 0);
  for (size_t s = 0; s < state_->shard_count; ++s)
    for (const auto& [key, n] : state_->shards[s].slots)
      if (n) n->mark = 0;
  return found;
}

bool Graph::unread(std::span<const NodeRef> nodes, uint32_t handles, Wait wait) {
  if (Building::in_progress(*this)) internal_error("graph", "unread: called while building");
  const auto exclusive = exclusive_lock(state_->building, wait);
  if (!exclusive.owns_lock()) return false;
  return std::all_of(nodes.begin(), nodes.end(), [handles](NodeRef n) {
    return n->readers.load(std::memory_order_relaxed) == 0 &&
           n->roots.load(std::memory_order_acquire) <= handles;
  });
}

size_t Graph::live_nodes() const {
  return state_->shared ? state_->live.load(std::memory_order_relaxed) : state_->shards[0].live();
}

size_t Graph::bytes() const {
  size_t total = state_->shapes.memory.bytes();
  for (size_t i = 0; i < state_->shard_count; ++i) {
    std::lock_guard lock(state_->shards[i].mutex);
    total +=
        state_->shards[i].memory.bytes() + state_->shards[i].slots.size() * sizeof(Shard::Slot);
  }
  return total;
}

}  // namespace weft
