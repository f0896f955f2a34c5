// backward() and gradient(): the reverse walk, and the leaves it fills.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "weft/base/context.h"
#include "weft/base/interrupt.h"
#include "weft/graph/provenance.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"
#include "weft/run/active_capture.h"
#include "weft/tensor/gradients.h"

namespace weft {

// ---- the walk

void Backward::mark_needed(const Toposort& order, std::span<const NodeRef> targets) {
  for (NodeRef t : targets) needed_[t] = true;
  for (NodeRef node : order) {
    // Only floating-point values carry gradients; a tuple's are its Gets'.
    if (node->op == Op::Detach || !(is_float(node->dtype) || is_tuple(node->op))) continue;
    const auto src = node->src();
    if (std::any_of(src.begin(), src.end(), [this](NodeRef s) { return needed_.contains(s); }))
      needed_[node] = true;
  }
}

void Backward::give_to(NodeRef source, const Tensor& gradient) {
  if (!needed_.contains(source)) return;
  users_[source] = current_call_site();
  const Tensor fitting = source->rank() == 0 && gradient.ndim() != 0 ? gradient.sum() : gradient;
  Tensor& sum = grads_[source];
  if (sum.defined()) {
    sum = sum + fitting;
  } else if (fitting.dims() == dims_of(source)) {
    sum = fitting;
  } else {
    // A scalar gradient of a tensor that broadcasts it: give it its shape.
    sum = tensor(build::broadcast_to(g, fitting.node(), source->shape->span()));
  }
}

Tensor Backward::result_gradient(size_t k) const {
  NodeRef own = get_result(g, n, k);
  const Tensor* known = grads_.find(own);
  return known && known->defined() ? *known : tensor(own).zeros_like();
}

bool Backward::has_result_gradient(size_t k) const { return grads_.contains(get_result(g, n, k)); }

bool Backward::reached(NodeRef node) const {
  if (!needed_.contains(node)) return false;
  if (!is_tuple(node->op)) return grads_.contains(node);
  for (size_t k = 0; k < result_count(node); ++k)
    if (grads_.contains(get_result(g, node, k))) return true;
  return false;
}

std::vector<Tensor> Backward::run(std::span<const NodeRef> roots, std::span<const Tensor> upstream,
                                  std::span<const NodeRef> targets) {
  const Toposort order(roots);
  mark_needed(order, targets);
  for (size_t i = 0; i < roots.size(); ++i) give_to(roots[i], upstream[i]);
  const auto nodes = order.nodes();
  const auto& lines = context_.get<Provenance>();
  for (size_t i = nodes.size(); i-- > 0;) {
    poll_walk(i);
    n = nodes[i];
    const GradientRule rule = gradient_rule(n->op);
    if (!rule || !reached(n)) continue;
    if (!is_tuple(n->op)) grad = grads_.at(n);
    // The gradient of a line belongs to it, and what lies between public functions to their user's.
    const CallSite own = lines.find(n);
    const CallSite* user = users_.find(n);
    const CallSiteScope site(own || !user ? own : *user, CallSiteScope::Wins::Always);
    rule(*this);
  }
  std::vector<Tensor> out;
  for (NodeRef t : targets) {
    const Tensor* found = grads_.find(t);
    out.push_back(found ? *found : Tensor());
  }
  return out;
}

// ---- leaves

namespace {

/// The cells of a context that take gradients, in the order they came.
struct Leaves {
  std::mutex mutex;
  std::map<uint64_t, TensorCell*> cells;
  std::set<uint64_t>
      lazy;  // of those by number, that asked for gradients before they were computed
  uint64_t last = 0;
  bool filled = false;  // backward() was called

  /// With the mutex held.
  void list(TensorCell& cell) {
    cells.erase(cell.leaf), lazy.erase(cell.leaf);
    cell.leaf = cell.requires_grad || cell.offered.value_or(false) ? ++last : 0;
    if (cell.leaf != 0) cells.emplace(cell.leaf, &cell);
  }
};

/// The cells of a context that were computed because they were read.
struct ReadCells {
  std::mutex mutex;
  std::set<TensorCell*> cells;
};

void require_differentiable(const char* tag, const Tensor& x) {
  if (!is_float(x.dtype()))
    fail_type(tag, "gradients need floating-point numbers: got {} of shape {}; cast it first",
              name(x.dtype()), x.dims().text());
}

/// True where nothing under `n` tells it from an equal expression: constants, positions.
bool is_constant(NodeRef root) {
  for (NodeRef n : Toposort::evaluated({&root, 1}))
    if (n->op == Op::Buffer || n->op == Op::Param) return false;
  return true;
}

}  // namespace

Histories::Histories(Context& context) {
  auto* read = context.get_if<ReadCells>();
  if (!read) return;
  std::lock_guard lock(read->mutex);
  for (const TensorCell* cell : read->cells)
    known_[StorageAccess::peek(*cell)] = cell->history.get();
}

NodeRef Histories::behind(Graph& g, NodeRef root) const {
  const auto is_known = [this](NodeRef n) { return known_.contains(n); };
  // What was read later may have been computed from what was read before.
  while (known_.size() > 0 && std::ranges::any_of(Toposort(root), is_known)) {
    NodeRef further = substitute(g, root, known_);
    if (further == root) break;  // read, but not computed: it failed
    root = further;
  }
  return root;
}

void forget_history(TensorCell& cell) {
  if (!cell.history) return;
  auto& read = cell.context().get<ReadCells>();
  std::lock_guard lock(read.mutex);
  read.cells.erase(&cell);
  cell.history = RootedNode();
}

TensorCell::TensorCell(Context& c, NodeRef value) : Storage(c, value) {
  WriteWatch::made(*this);
  auto& live = c.get<LiveCells>();
  std::lock_guard lock(live.mutex);
  next = live.first;
  if (next) next->previous = this;
  live.first = this;
}

TensorCell::~TensorCell() {
  {
    auto& live = context().get<LiveCells>();
    std::lock_guard lock(live.mutex);
    (previous ? previous->next : live.first) = next;
    if (next) next->previous = previous;
  }
  forget_history(*this);
  if (leaf == 0) return;
  auto& leaves = context().get<Leaves>();
  std::lock_guard lock(leaves.mutex);
  leaves.cells.erase(leaf), leaves.lazy.erase(leaf);
}

CutOff::CutOff(Context& context, std::span<const Tensor> tensors) : context_(context) {
  for (const Tensor& t : tensors) {
    const TensorCell& cell = *t.cell();
    const bool is_cut = cell.leaf == 0 && !cell.history && !cell.lost() && !cell.realized();
    if (is_cut && is_float(cell.value()->dtype)) cells_.push_back(&cell);
  }
}

void CutOff::done() {
  if (cells_.empty()) return;
  auto& table = context_.get<BufferTable>();
  for (const TensorCell* cell : cells_)
    if (cell->realized()) table.mark(buffer_id(cell->value()));
}

bool reads_cut_off(Context& context, NodeRef root) {
  const auto& table = context.get<BufferTable>();
  const Toposort order(root);
  return std::ranges::any_of(
      order, [&](NodeRef n) { return n->op == Op::Buffer && table.is_marked(buffer_id(n)); });
}

bool lacks_gradient(const Tensor& x) {
  auto* leaves = x.context().get_if<Leaves>();
  const TensorCell& cell = *x.cell();
  const bool computed = cell.leaf == 0 && !cell.offered && !TensorAccess::is_detached(x);
  return leaves && leaves->filled && computed && is_float(x.dtype()) && !x.grad().defined();
}

Tensor& Tensor::requires_grad_(bool on, CallSite at) {
  const CallSiteScope site(at);
  require_differentiable("requires_grad_", *this);
  if (TensorAccess::is_detached(*this)) {
    if (!on) return *this;
    const OpScope scope(*this, at);
    *this = scope.result(node());
  }
  if (chain_)
    fail("requires_grad_.view",
         "this Tensor is a view of shape {}: gradients belong to whole tensors; call it on the "
         "tensor "
         "that is viewed, or on contiguous()",
         dims().text());
  if (cell_->requires_grad == on) return *this;
  auto& leaves = context().get<Leaves>();
  bool ambiguous = on && is_constant(cell_->value());
  {
    std::lock_guard lock(leaves.mutex);
    for (const auto& [number, c] : leaves.cells)
      ambiguous |= c != cell_.get() && StorageAccess::peek(*c) == cell_->value();
    cell_->requires_grad = on;
    leaves.list(*cell_);
    if (on && !cell_->realized()) leaves.lazy.insert(cell_->leaf);
  }
  // Equal expressions are one node; a buffer of its own makes this leaf different from the others.
  if (on && ambiguous) realize();
  cell_->former = RootedNode(on ? cell_->value() : nullptr);
  return *this;
}

void compute_leaves_with(Context& context, std::vector<std::shared_ptr<Storage>>& storages) {
  auto* leaves = context.get_if<Leaves>();
  // What a captured function computes it would compute again in every call.
  if (!leaves || active_capture(context)) return;
  std::lock_guard lock(leaves->mutex);
  // Of those that have got another value nothing is known.
  std::erase_if(leaves->lazy, [&](uint64_t number) {
    const TensorCell& cell = *leaves->cells.at(number);
    return StorageAccess::peek(cell) != cell.former.get();
  });
  if (leaves->lazy.empty()) return;
  std::vector<NodeRef> roots;
  for (const auto& s : storages) roots.push_back(StorageAccess::peek(*s));
  NodeMap<bool> used;
  for (NodeRef n : Toposort::evaluated(roots)) used[n] = true;
  for (const uint64_t number : leaves->lazy) {
    TensorCell& cell = *leaves->cells.at(number);
    if (!used.contains(cell.former.get())) continue;
    std::shared_ptr<Storage> held = cell.weak_from_this().lock();
    if (held && std::ranges::find(storages, held) == storages.end())
      storages.push_back(std::move(held));
  }
}

void offer_leaf(const Tensor& x, bool on) {
  TensorCell& cell = *x.cell();
  auto& leaves = cell.context().get<Leaves>();
  std::lock_guard lock(leaves.mutex);
  cell.offered = on;
  leaves.list(cell);
  if (!cell.requires_grad) cell.former = RootedNode(on ? cell.value() : nullptr);
}

void remember_history(const Tensor& x) {
  TensorCell& cell = *x.cell();
  // A list of losses must not hold on to what they were computed from.
  if (cell.leaf != 0 || cell.walked || !is_float(x.dtype()) || active_capture(x.context())) return;
  auto& read = x.context().get<ReadCells>();
  std::lock_guard lock(read.mutex);
  cell.history = RootedNode(cell.value());
  read.cells.insert(&cell);
}

bool Tensor::requires_grad() const {
  return context(), cell_->requires_grad && !TensorAccess::is_detached(*this);
}
Tensor Tensor::grad() const { return context(), chain_ ? Tensor() : cell_->grad; }
void Tensor::zero_grad() { context(), cell_->grad = Tensor(); }

void Tensor::set_grad(const Tensor& g, CallSite at) {
  const CallSiteScope site(at);
  if (!(g.dims() == dims()))
    fail("set_grad", "a gradient of shape {} for a tensor of shape {}: the shapes must be equal",
         g.dims().text(), dims().text());
  cell_->grad = g;
}

Tensor Tensor::detach(CallSite at) const {
  const OpScope scope(*this, at);
  if (TensorAccess::is_detached(*this)) return *this;
  NodeRef chain = TensorAccess::chain(scope.g, *this);
  return TensorAccess::view(*this, scope.g.make(Op::Detach, dtype(), {chain}));
}

// ---- entry points

namespace {

/// Kept alive by the result: the last handle of one must not go while the list is locked.
std::vector<std::shared_ptr<Storage>> live_leaves(Context& context, bool asked) {
  std::vector<std::shared_ptr<Storage>> alive;
  auto& leaves = context.get<Leaves>();
  std::lock_guard lock(leaves.mutex);
  for (const auto& [number, c] : leaves.cells) {
    if (c->requires_grad != asked) continue;
    if (auto held = c->weak_from_this().lock()) alive.push_back(std::move(held));
  }
  return alive;
}

Tensor upstream_of(const char* tag, const Tensor& x) {
  require_differentiable(tag, x);
  if (x.ndim() != 0 && !(x.dims().product() == Dim(1)))
    fail(tag,
         "needs one number to start from, but the shape is {}: reduce it with sum() or mean(), or "
         "give "
         "the upstream gradient",
         x.dims().text());
  return x.ones_like();
}

void require_upstream(const char* tag, const Tensor& x, const Tensor& upstream) {
  require_differentiable(tag, x);
  if (!(upstream.dims() == x.dims()))
    fail(tag, "the upstream gradient has shape {} but the tensor has {}: they must be equal",
         upstream.dims().text(), x.dims().text());
}

/// Whether `root` is computed from what `target` is a view of. A view of a view is one node
/// (build.cpp), so the way there may have been through the target, of which nothing is left.
bool is_bypassed(NodeRef root, NodeRef target) {
  NodeRef viewed = target;
  while (is_movement(viewed->op)) viewed = viewed->src(0);
  const Toposort order(root);
  return viewed != target && std::ranges::find(order, viewed) != order.end();
}

/// Behind the targets' nodes those that leaves among them were when they became such, which graphs
/// hold that are older than their memory; whose they are.
std::vector<size_t> add_former(const std::vector<Tensor>& targets, std::vector<NodeRef>& nodes) {
  std::vector<size_t> whose;
  for (size_t i = 0; i < targets.size(); ++i) {
    NodeRef former = targets[i].cell()->former.get();
    if (!former || targets[i].is_view() || former == targets[i].node()) continue;
    nodes.push_back(former);
    whose.push_back(i);
  }
  return whose;
}

}  // namespace

std::vector<Tensor> Tensor::gradient(const std::vector<Tensor>& targets, CallSite at) const {
  const CallSiteScope site(at);
  return gradient(targets, upstream_of("gradient", *this));
}

std::vector<Tensor> Tensor::gradient(const std::vector<Tensor>& targets, const Tensor& upstream,
                                     CallSite at) const {
  const OpScope scope(*this, at);
  require_upstream("gradient", *this, upstream);
  std::vector<NodeRef> nodes;
  const Histories histories(scope.context);
  for (const Tensor& t : targets) {
    require_differentiable("gradient", t);
    nodes.push_back(histories.behind(scope.g, t.node()));
    if (build::without_broadcast(nodes.back())->op == Op::Const)
      fail("gradient.constant",
           "target {} of shape {} is a constant, and equal constants are one value: call "
           "requires_grad_() on it before using it",
           nodes.size() - 1, t.dims().text());
  }
  const std::vector<size_t> before = add_former(targets, nodes);
  Backward walk(scope.context, scope.g);
  NodeRef root = histories.behind(scope.g, node());
  std::vector<Tensor> grads = walk.run(root, upstream.cast(dtype()), nodes);
  for (size_t k = 0; k < before.size(); ++k)
    if (const Tensor& g = grads[targets.size() + k]; g.defined()) {
      Tensor& sum = grads[before[k]];
      sum = sum.defined() ? sum + g : g;
    }
  grads.resize(targets.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) continue;
    if (is_bypassed(root, nodes[i]))
      fail("gradient.view",
           "target {} is a view of shape {} that this may have been computed through, or not: ask "
           "for the gradient of what is viewed, or use contiguous() of the view in its place",
           i, targets[i].dims().text());
    grads[i] = targets[i].zeros_like();
  }
  return grads;
}

void Tensor::backward(CallSite at) const {
  const CallSiteScope site(at);
  backward(upstream_of("backward", *this));
}

namespace {

/// Cells and the values of theirs that gradients are of.
struct Receivers {
  std::vector<std::shared_ptr<Storage>> alive;  // the last handle of one must not go meanwhile
  std::vector<TensorCell*> cells;
  std::vector<NodeRef> nodes;

  void add(TensorCell* cell, NodeRef n) {
    cells.push_back(cell);
    nodes.push_back(n);
  }
};

Receivers leaves_of(Context& context, bool asked) {
  Receivers out{live_leaves(context, asked), {}, {}};
  for (const auto& leaf : out.alive) {
    auto* cell = static_cast<TensorCell*>(leaf.get());
    NodeRef now = cell->value(), former = cell->former.get();
    out.add(cell, now);
    if (former && former != now) out.add(cell, former);
  }
  return out;
}

/// The tensors that are no leaves and stand on the way from leaves to `root`.
void add_computed(Context& context, NodeRef root, Receivers& out) {
  const Toposort order(root);
  NodeMap<bool> on_the_way;
  for (NodeRef n : order) on_the_way[n] = n != root && n->op != Op::Buffer && is_float(n->dtype);
  auto& live = context.get<LiveCells>();
  std::lock_guard lock(live.mutex);
  for (TensorCell* cell = live.first; cell; cell = cell->next) {
    NodeRef n = StorageAccess::peek(*cell);
    const bool* passes = on_the_way.find(n);
    if (!passes || !*passes || cell->leaf != 0 || cell->offered == false || cell->lost()) continue;
    if (auto held = cell->weak_from_this().lock()) {
      out.alive.push_back(std::move(held));
      out.add(cell, n);
    }
  }
}

using LeafGradients = std::vector<LeafGradient>;

/// Of the leaves that asked, or of the others; empty where `root` depends on none. `computed`: with
/// tensors on the way to them.
LeafGradients gradients_of_leaves(const OpScope& scope, NodeRef root, const Tensor& upstream,
                                  bool asked, bool computed) {
  Receivers to = leaves_of(scope.context, asked);
  const size_t leaves = to.nodes.size();
  if (computed) add_computed(scope.context, root, to);
  Backward walk(scope.context, scope.g);
  const std::vector<Tensor> grads = walk.run(root, upstream, to.nodes);
  const auto reached = [](const Tensor& g) { return g.defined(); };
  // What depends on no memory has no leaves to miss.
  const size_t wanted = !asked && is_constant(root) ? grads.size() : leaves;
  if (std::none_of(grads.begin(), grads.begin() + static_cast<ptrdiff_t>(wanted), reached))
    return {};
  LeafGradients found;
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i].defined())
      found.push_back(
          {std::static_pointer_cast<TensorCell>(to.cells[i]->shared_from_this()), grads[i]});
  scope.context.get<Leaves>().filled = true;
  return found;
}

LeafGradients gradients_of_leaves(const Tensor& loss, const Tensor& upstream, bool computed) {
  const OpScope scope(loss, current_call_site());
  const NodeRef root = Histories(scope.context).behind(scope.g, loss.node());
  const Tensor start = upstream.cast(loss.dtype());
  LeafGradients found = gradients_of_leaves(scope, root, start, true, false);
  if (!found.empty()) return found;
  return gradients_of_leaves(scope, root, start, false, computed);
}

}  // namespace

std::vector<LeafGradient> leaf_gradients(const Tensor& loss) {
  return gradients_of_leaves(loss, loss.ones_like(), false);
}

void add_gradient(TensorCell& cell, const Tensor& gradient) {
  cell.grad = cell.grad.defined() ? cell.grad + gradient : gradient;
}

void note_walked(const Tensor& loss) {
  TensorCell& cell = *loss.cell();
  cell.walked = true;
  forget_history(cell);
  if (cell.value()->rank() == 0)
    loss.context().get<PendingLosses>().note(TensorAccess::shared(loss));
}

void Tensor::backward(const Tensor& upstream, CallSite at) const {
  const OpScope scope(*this, at);
  require_upstream("backward", *this, upstream);
  const LeafGradients found = gradients_of_leaves(*this, upstream, !active_capture(scope.context));
  if (found.empty())
    fail("backward.leaf",
         "this value depends on no tensor with requires_grad_(); if it was realized before, its "
         "history is gone: call backward() first");
  for (const LeafGradient& g : found) add_gradient(*g.leaf, g.gradient);
  note_walked(*this);
}

}  // namespace weft
