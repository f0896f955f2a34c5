// Functions that are traced once for all calls like one, which then are one node each.
#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"
#include "weft/tensor/tracing.h"

namespace weft {

namespace {

/// What a call is told apart by: the function, its options, nodes, and the form of its inputs.
struct CallKey {
  std::string_view name;
  SmallVector<int64_t, 16> more;

  friend bool operator<(const CallKey& a, const CallKey& b) {
    return a.name != b.name ? a.name < b.name
                            : std::ranges::lexicographical_compare(a.more, b.more);
  }
};

struct Trace {
  std::vector<RootedNode> params, bodies;
  std::vector<RootedNode> about;  ///< whose addresses are in the key
  Tensors read;                   ///< constant tables that the function reads, which are inputs too
  int64_t slot = kInnerSlots;
  size_t nodes = 0;
};

/// A slot of the Context.
class Traces {
 public:
  explicit Traces(Context&) {}
  static Traces& of(Context& context) {
    if (Traces* made = context.get_if<Traces>()) return *made;
    // Made before us, so destroyed after us: what our tensors lie in.
    context.get<BufferTable>();
    context.get<LiveCells>();
    context.get<DeviceTable>().default_device();
    return context.get<Traces>();
  }

  std::shared_ptr<const Trace> find(const CallKey& key) {
    std::lock_guard lock(mutex_);
    const auto at = traces_.find(key);
    return at == traces_.end() ? nullptr : at->second;
  }
  void add(CallKey key, std::shared_ptr<const Trace> trace) {
    std::lock_guard lock(mutex_);
    nodes_ += trace->nodes;
    if (nodes_ > kMostNodes) traces_.clear(), nodes_ = trace->nodes;
    traces_.emplace(std::move(key), std::move(trace));
  }

 private:
  // A program that calls functions of so many nodes, by ever other sizes, starts anew.
  static constexpr size_t kMostNodes = size_t{1} << 16;

  std::mutex mutex_;
  size_t nodes_ = 0;
  std::map<CallKey, std::shared_ptr<const Trace>> traces_;
};

CallKey key_of(std::string_view name, const Ints& options, std::span<const NodeRef> inputs,
               std::span<const NodeRef> about) {
  CallKey key{name, SmallVector<int64_t, 16>(options)};
  // The trace keeps shapes and nodes alive.
  const auto address = [](const void* p) {
    return static_cast<int64_t>(reinterpret_cast<uintptr_t>(p));
  };
  for (NodeRef n : about) key.more.push_back(address(n));
  for (NodeRef n : inputs) {
    key.more.push_back(address(n->shape));
    key.more.push_back(static_cast<int64_t>(n->dtype) << 32 | n->device);
  }
  return key;
}

/// The memory that `results` are computed from.
std::vector<NodeRef> buffers_under(std::span<const NodeRef> results) {
  std::vector<NodeRef> found;
  for (NodeRef n : Toposort(results))
    if (n->op == Op::Buffer) found.push_back(n);
  return found;
}

std::shared_ptr<const Trace> traced_on(const TensorFunction& f, const Tensors& inputs,
                                       std::span<const NodeRef> about) {
  const Tensors holes = placeholders(inputs), results = f(holes);
  Context& context = inputs[0].context();
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  auto trace = std::make_shared<Trace>();
  for (NodeRef n : about) trace->about.emplace_back(n);
  const std::vector<NodeRef> bodies = nodes_of(results);
  trace->slot = inner_slots_above(bodies);
  trace->nodes = Toposort(bodies).size();
  std::vector<NodeRef> outer = nodes_of(holes);
  for (NodeRef n : buffers_under(bodies)) {
    trace->read.push_back(TensorAccess::make(context, n));
    outer.push_back(n);
  }
  NodeMap<NodeRef> replacement;
  for (NodeRef n : outer) {
    const int64_t slot = trace->slot + static_cast<int64_t>(trace->params.size());
    NodeRef param = g.param(slot, n->dtype, n->shape->span(), n->device);
    trace->params.emplace_back(param);
    replacement.set(n, param);
  }
  for (NodeRef n : bodies) trace->bodies.emplace_back(substitute(g, n, replacement));
  return trace;
}

thread_local bool symbolic_calls = false;

bool is_numbers(NodeRef n) {
  return std::ranges::all_of(n->shape->span(), [](NodeRef d) { return d->op == Op::Const; });
}

}  // namespace

SymbolicCallsScope::SymbolicCallsScope() : before_(std::exchange(symbolic_calls, true)) {}
SymbolicCallsScope::~SymbolicCallsScope() { symbolic_calls = before_; }

Tensors called(std::string_view name, const Ints& options, const Tensors& inputs,
               const TensorFunction& f, std::span<const NodeRef> about) {
  SmallVector<NodeRef, 16> sources;
  for (const Tensor& x : inputs) sources.push_back(x.node());
  if (!symbolic_calls && !std::ranges::all_of(sources, is_numbers)) return f(inputs);
  Context& context = inputs[0].context();
  Traces& traces = Traces::of(context);
  const OpScope scope(context, CallSite::here());
  CallKey key = key_of(name, options, sources, about);
  std::shared_ptr<const Trace> trace = traces.find(key);
  // Traced without a lock, which others want while they build.
  if (!trace) traces.add(std::move(key), trace = traced_on(f, inputs, about));
  for (const Tensor& x : trace->read) sources.push_back(x.node());
  const int64_t ints[] = {static_cast<int64_t>(sources.size()), trace->slot};
  for (const RootedNode& n : trace->bodies) sources.push_back(n.get());
  NodeRef call = scope.g.make({Op::Call, trace->bodies[0].get()->dtype, sources, ints, name});
  Tensors results;
  for (size_t k = 0; k < trace->bodies.size(); ++k)
    results.push_back(scope.result(get_result(scope.g, call, k)));
  return results;
}

}  // namespace weft
