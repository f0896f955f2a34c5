// What a Tensor is: a cell shared with its aliases, and a chain of movement over the cell's value.
#include <algorithm>
#include <array>
#include <memory>
#include <new>

#include "weft/base/context.h"
#include "weft/graph/provenance.h"
#include "weft/tensor/access.h"

namespace weft {

namespace {

// Stands for the storage's value in a chain. No schedule ever sees it.
constexpr int64_t kPlaceholderSlot = INT32_MAX;

bool is_placeholder(NodeRef n) { return n->op == Op::Param && param_slot(n) == kPlaceholderSlot; }

const TensorCell& checked(const CellRef& cell) {
  if (!cell)
    fail("tensor.undefined",
         "this Tensor holds nothing: it was default-made or moved from; give it a value first, for "
         "example with Tensor::zeros or Tensor::of");
  return *cell;
}

std::shared_ptr<TensorCell>& as_shared(unsigned char* bytes) {
  return *std::launder(reinterpret_cast<std::shared_ptr<TensorCell>*>(bytes));
}
const std::shared_ptr<TensorCell>& as_shared(const unsigned char* bytes) {
  return *std::launder(reinterpret_cast<const std::shared_ptr<TensorCell>*>(bytes));
}

}  // namespace

// ---- scopes and handles

using SharedCell = std::shared_ptr<TensorCell>;
static_assert(sizeof(SharedCell) == sizeof(CellRef) && alignof(SharedCell) == alignof(CellRef));

CellRef::CellRef() noexcept { new (shared_) SharedCell(); }
CellRef::CellRef(const CellRef& b) noexcept { new (shared_) SharedCell(as_shared(b.shared_)); }
CellRef::CellRef(CellRef&& b) noexcept {
  new (shared_) SharedCell(std::move(as_shared(b.shared_)));
}
CellRef& CellRef::operator=(const CellRef& b) noexcept {
  as_shared(shared_) = as_shared(b.shared_);
  return *this;
}
CellRef& CellRef::operator=(CellRef&& b) noexcept {
  as_shared(shared_) = std::move(as_shared(b.shared_));
  return *this;
}
CellRef::~CellRef() { as_shared(shared_).~shared_ptr(); }
TensorCell* CellRef::get() const noexcept { return as_shared(shared_).get(); }

OpScope::OpScope(Context& c, CallSite at)
    : site_(at), context(c), g(tensor_graph(c)), building_(g) {}
OpScope::OpScope(const Tensor& x, CallSite at)
    : site_(at), context(x.context()), g(tensor_graph(context)), building_(g) {}

Tensor OpScope::result(NodeRef value) const {
  context.get<Provenance>().record(value, current_call_site());
  return TensorAccess::make(context, value);
}

Tensor unshared(const Tensor& x) {
  const OpScope scope(x, CallSite::here());
  return scope.result(x.node());
}

CellRef TensorAccess::ref(std::shared_ptr<TensorCell> cell) {
  CellRef out;
  as_shared(out.shared_) = std::move(cell);
  return out;
}
const std::shared_ptr<TensorCell>& TensorAccess::shared(const Tensor& x) {
  return as_shared(x.cell_.shared_);
}

Tensor TensorAccess::make(Context& context, NodeRef value) {
  return whole(std::make_shared<TensorCell>(context, value));
}

NodeRef TensorAccess::chain(Graph& g, const Tensor& x) {
  if (x.chain_) return x.chain_.get();
  NodeRef value = checked(x.cell_).value();
  return placeholder(g, value->dtype, value->shape->span());
}

NodeRef TensorAccess::placeholder(Graph& g, DType dtype, std::span<const NodeRef> dims) {
  return g.param(kPlaceholderSlot, dtype, dims);
}

Tensor TensorAccess::view(const Tensor& x, NodeRef chain) {
  return Tensor(x.cell_, is_placeholder(chain) ? RootedNode() : RootedNode(chain));
}

NodeRef TensorAccess::apply(Graph& g, NodeRef chain, NodeRef value) {
  NodeRef placeholder = chain;
  while (!is_placeholder(placeholder)) placeholder = placeholder->src(0);
  return rebase(g, chain, placeholder, value);
}

namespace {

using Moves = SmallVector<NodeRef, 16>;  // from the outermost to the innermost

bool keeps_values(Op op) { return op == Op::Detach || op == Op::Bitcast; }

/// Takes the movement ops off `chain`, down to what they move.
NodeRef take_moves(NodeRef chain, Moves& moves) {
  for (; is_movement(chain->op) || keeps_values(chain->op); chain = chain->src(0))
    if (is_movement(chain->op)) moves.push_back(chain);
  return chain;
}

void require_writable(const Moves& moves) {
  for (NodeRef move : moves)
    if (move->op == Op::Expand || move->op == Op::Window)
      fail(
          "assign.shared",
          "cannot write through {}: several of its elements are one; write to the tensor it views, "
          "or to a copy made with contiguous()",
          move->op == Op::Expand ? "an expanded view" : "sliding windows");
}

/// What whole-array moves made `seen` of; null if some move is not.
NodeRef undone(Graph& g, const Moves& moves, NodeRef seen) {
  for (NodeRef move : moves) {
    switch (move->op) {
      case Op::Reshape: seen = build::reshape(g, seen, move->src(0)->shape->span()); break;
      case Op::Flip: seen = build::flip(g, seen, move->ints()); break;
      case Op::Permute: {
        build::AxisList inverse(move->nints);
        for (size_t i = 0; i < move->nints; ++i)
          inverse[static_cast<size_t>(move->int_arg(i))] = static_cast<int64_t>(i);
        seen = build::permute(g, seen, inverse);
        break;
      }
      default: return nullptr;
    }
  }
  return seen;
}

NodeRef moved(Graph& g, const Moves& moves, NodeRef base) {
  Moves src;
  for (size_t i = moves.size(); i-- > 0;) {
    src.assign(moves[i]->src());
    src[0] = base;
    base = g.make({moves[i]->op, base->dtype, src, moves[i]->ints()});
  }
  return base;
}

/// (..., n) as (..., n, 1).
NodeRef with_last(Graph& g, NodeRef x) {
  build::Extents dims = build::extents(x);
  dims.push_back(g.index(1));
  return build::reshape(g, x, dims);
}

}  // namespace

NodeRef TensorAccess::written(Graph& g, NodeRef chain, NodeRef old, NodeRef seen) {
  while (!is_placeholder(chain)) {
    if (chain->op == Op::Cast) {  // narrower pieces of an expanded axis: see bits.cpp
      NodeRef wide = chain->src(0)->src(0)->src(0);
      seen = with_last(g, build::from_pieces(g, seen, wide->dtype));
      chain = wide;
    } else if (chain->op == Op::Reduce) {  // wider numbers made of pieces
      NodeRef pieces = chain->src(0)->src(0)->src(0);
      seen = build::in_pieces(g, with_last(g, seen), pieces->dtype);
      chain = pieces;
    } else {
      Moves moves;
      NodeRef base = take_moves(chain, moves);
      require_writable(moves);
      seen = build::bitcast(g, seen, base->dtype);
      NodeRef whole = undone(g, moves, seen), now = apply(g, base, old);
      seen = whole ? whole : g.make(Op::Assign, now->dtype, {now, moved(g, moves, now), seen});
      chain = base;
    }
  }
  return seen;
}

bool TensorAccess::is_detached(const Tensor& x) {
  if (!x.chain_) return false;
  NodeRef n = x.chain_.get();
  while (!is_placeholder(n) && n->op != Op::Detach) n = n->src(0);
  return n->op == Op::Detach;
}

Tensor TensorAccess::attached(const Tensor& x) {
  NodeRef chain = x.chain_.get();
  const bool alias = chain && chain->op == Op::Detach && is_placeholder(chain->src(0));
  return alias ? Tensor(x.cell_, RootedNode()) : x;
}

Tensor Tensor::from_node(NodeRef n) { return TensorAccess::make(Context::current(), n); }

NodeRef Tensor::node() const {
  NodeRef value = checked(cell_).value();
  return chain_ ? TensorAccess::apply(tensor_graph(cell_->context()), chain_.get(), value) : value;
}

Context& Tensor::context() const { return checked(cell_).context(); }

// ---- what it is

namespace {
/// What has the tensor's shape and dtype.
NodeRef form_of(const TensorCell& cell, const RootedNode& chain) {
  return chain ? chain.get() : cell.value();
}
}  // namespace

DType Tensor::dtype() const { return form_of(checked(cell_), chain_)->dtype; }
size_t Tensor::ndim() const { return form_of(checked(cell_), chain_)->rank(); }
Dims Tensor::dims() const { return dims_of(form_of(checked(cell_), chain_)); }

std::vector<int64_t> Tensor::shape(CallSite at) const {
  const CallSiteScope site(at);
  std::vector<int64_t> sizes;
  for (const Dim& d : dims()) sizes.push_back(d.value());
  return sizes;
}

int64_t Tensor::size(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  return dim(axis).value();
}

Dim Tensor::dim(int64_t axis, CallSite at) const {
  const CallSiteScope site(at);
  NodeRef n = form_of(checked(cell_), chain_);
  return Dim(n->dim(static_cast<size_t>(checked_axis("dim", axis, *this))));
}

int64_t Tensor::numel(CallSite at) const {
  const CallSiteScope site(at);
  return dims().product().value();
}

// ---- writing

namespace {
const std::shared_ptr<const char>& this_thread_mark() {
  thread_local const std::shared_ptr<const char> mark = std::make_shared<const char>();
  return mark;
}
}  // namespace

Noted::Noted(std::weak_ptr<Storage> cell) : cell_(std::move(cell)), thread_(this_thread_mark()) {}
const void* Noted::me() { return this_thread_mark().get(); }
bool Noted::is_mine() const {
  const std::shared_ptr<const char> thread = thread_.lock();
  return !thread || thread.get() == me();
}
std::shared_ptr<Storage> Noted::taken() const { return is_mine() ? cell_.lock() : nullptr; }

void PendingWrites::note(TensorCell& cell) {
  std::lock_guard lock(mutex_);
  if (cell.write_noted == Noted::me()) return;
  cell.write_noted = Noted::me();
  cells_.emplace_back(cell.weak_from_this());
  if (cells_.size() < prune_at_) return;
  std::erase_if(cells_, [](const Noted& c) { return c.gone(); });
  prune_at_ = 2 * cells_.size() + 64;
}

std::vector<std::shared_ptr<Storage>> PendingWrites::take() {
  std::vector<std::shared_ptr<Storage>> alive;
  std::lock_guard lock(mutex_);
  for (const Noted& c : cells_)
    if (auto held = c.taken()) alive.push_back(std::move(held));
  for (const auto& held : alive) static_cast<TensorCell&>(*held).write_noted = nullptr;
  std::erase_if(cells_, [](const Noted& c) { return c.is_mine() || c.gone(); });
  return alive;
}

namespace {
thread_local WriteWatch* t_watch = nullptr;
}

WriteWatch::WriteWatch() : outer_(t_watch) { t_watch = this; }
WriteWatch::~WriteWatch() { t_watch = outer_; }

void WriteWatch::made(const TensorCell& cell) {
  for (WriteWatch* w = t_watch; w; w = w->outer_) w->made_.insert(&cell);
}

void WriteWatch::note(TensorCell& cell) {
  for (WriteWatch* w = t_watch; w; w = w->outer_) {
    const auto is_same = [&](const Write& x) { return x.cell.lock().get() == &cell; };
    if (std::ranges::none_of(w->writes_, is_same))
      w->writes_.push_back({cell.weak_from_this(), RootedNode(cell.value())});
  }
}

Tensor& Tensor::assign(const Operand& value, CallSite at) {
  const OpScope scope(*this, at);
  Graph& g = scope.g;
  NodeRef v = value.tensor() ? value.tensor()->node() : g.constant(value.scalar().as(dtype()));
  NodeRef chain = TensorAccess::chain(g, *this);
  // As NumPy has it, axes of size 1 in front are none.
  while (v->rank() > chain->rank() && is_int_const(v->dim(0), 1))
    v = build::reshape(g, v, v->shape->span().subspan(1));
  const build::Extents common = broadcast("assign", std::array{chain, v});
  if (!std::equal(common.begin(), common.end(), chain->shape->span().begin(),
                  chain->shape->span().end()))
    fail("assign.shape",
         "a value of shape {} does not fit {}: sizes must be equal, or 1 in the value; reshape it",
         shape_text(v), shape_text(chain));
  v = build::broadcast_to(g, g.cast(v, dtype()), common);
  WriteWatch::note(*cell_);
  cell_->set_value(TensorAccess::written(g, chain, cell_->value(), v));
  cell_->former = RootedNode();
  forget_history(*cell_);
  cell_->walked = false;
  scope.context.get<PendingWrites>().note(*cell_);
  // A value that is computed elsewhere belongs to the line that computes it.
  auto& lines = scope.context.get<Provenance>();
  if (!lines.find(cell_->value())) lines.record(cell_->value(), current_call_site());
  return *this;
}

}  // namespace weft
