#include "weft/tensor/batching.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/base/small_vector.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"
#include "weft/tensor/build.h"

namespace weft {

namespace {

using build::AxisList;
using build::Extents;
using build::with_front;

/// The integers of a node, those from `first` on being axes that move by one.
SmallVector<int64_t, 8> shifted(NodeRef n, size_t first, size_t count) {
  SmallVector<int64_t, 8> ints(n->ints());
  for (size_t i = first; i < first + count; ++i) ++ints[i];
  return ints;
}

}  // namespace

NodeRef Batching::batched(NodeRef root) {
  const Toposort order(root);
  for (NodeRef n : order)
    if (n->op == Op::Function) batch_upstream(n);
  size_t step = 0;
  for (NodeRef n : order) {
    poll_walk(step++);
    if (depends(n)) continue;
    // Gradients mention what they are multiplied with, whether or not the function itself depends.
    const auto src = n->op == Op::Function
                         ? n->src().first(static_cast<size_t>(n->int_arg(0) + n->int_arg(1)))
                         : n->src();
    if (std::any_of(src.begin(), src.end(), [this](NodeRef s) { return depends(s); }))
      images_.set(n, image(n));
  }
  return whole(root);
}

NodeRef Batching::whole(NodeRef source) {
  if (const NodeRef* found = images_.find(source)) return *found;
  const Extents dims = build::extents(source);
  NodeRef row = build::reshape(g_, source, with_front(g_.index(1), dims));
  return build::expand(g_, row, with_front(size_, dims));
}

NodeRef Batching::operand(NodeRef source, NodeRef result) {
  if (!depends(source)) return source->rank() == 0 ? source : whole(source);
  NodeRef x = whole(source);
  if (source->rank() != 0 || result->rank() == 0) return x;
  Extents ones{size_};
  for (size_t i = 0; i < result->rank(); ++i) ones.push_back(g_.index(1));
  return build::expand(g_, build::reshape(g_, x, ones), with_front(size_, result->shape->span()));
}

NodeRef Batching::image(NodeRef n) {
  switch (n->op) {
    case Op::Loop: return loop(n);
    case Op::Assign: return assign(n);
    case Op::Function: return function(n);
    case Op::Repeat: return repeat(n);
    case Op::Custom: return custom(n);
    case Op::Call: return n;  // its results are those of its bodies
    case Op::Get: return get(n);
    case Op::Gather:
    case Op::Scatter:
    case Op::CumCount:
    case Op::Cat:
    case Op::Scan:
    case Op::Reduce:
    case Op::Contiguous:
    case Op::Detach:
    case Op::Copy: {
      Extents src;
      for (NodeRef s : n->src()) src.push_back(whole(s));
      return in_front(n, src);
    }
    default: break;
  }
  if (group(n->op) == OpGroup::Movement) return movement(n);
  if (!is_alu(n->op))
    internal_error("vmap", "{} cannot be done for every slice", info(n->op).mnemonic);
  Extents src;
  for (NodeRef s : n->src()) src.push_back(operand(s, n));
  return g_.make({n->op, n->dtype, src, n->ints(), n->text()});
}

/// The same op with its axes one further.
NodeRef Batching::in_front(NodeRef n, std::span<const NodeRef> src) {
  size_t first = 0, count = 0;
  if (n->op == Op::Gather || n->op == Op::Scatter || n->op == Op::CumCount || n->op == Op::Cat ||
      n->op == Op::Window || n->op == Op::Unwindow)
    count = 1;
  if (n->op == Op::Scan || n->op == Op::Reduce) first = 1, count = n->nints - 1;
  if (n->op == Op::Flip) count = n->nints;
  // A fold of no axes is the value itself, of every element.
  return g_.make({n->op, n->dtype, src, shifted(n, first, count)});
}

NodeRef Batching::movement(NodeRef n) {
  NodeRef x = whole(n->src(0));
  const auto rest = n->src().subspan(1);
  const size_t rank = n->src(0)->rank();
  auto front = [&](NodeRef value, size_t from) {
    return with_front(value, rest.subspan(from, rank));
  };
  SmallVector<int64_t, 8> ints{0};
  ints.append(n->ints());
  switch (n->op) {
    case Op::Reshape: return build::reshape(g_, x, with_front(size_, rest));
    case Op::Expand: return build::expand(g_, x, with_front(size_, rest));
    case Op::Permute:
      for (size_t i = 1; i < ints.size(); ++i) ++ints[i];
      return build::permute(g_, x, ints);
    case Op::Pad: return build::pad(g_, x, front(g_.index(0), 0), front(g_.index(0), rank), ints);
    case Op::Shrink:
      ints[0] = 1;
      return build::shrink(g_, x, front(g_.index(0), 0), front(size_, rank), ints);
    default: break;
  }
  Extents src{x};
  src.append(rest);
  return in_front(n, src);
}

namespace {

/// Whether `view` is made of `old` by moves alone.
bool is_chain_on(NodeRef old, NodeRef view) {
  while (view != old && group(view->op) == OpGroup::Movement) view = view->src(0);
  return view == old;
}

}  // namespace

/// The view is a chain of moves on the old value, and stays one: where the old value is moves, too,
/// those that follow each other have been made one, past it.
NodeRef Batching::assign(NodeRef n) {
  NodeRef old = n->src(0);
  std::vector<NodeRef> chain;
  for (NodeRef v = n->src(1); v != old; v = v->src(0)) chain.push_back(v);
  const bool anew = !depends(old) || !is_chain_on(whole(old), whole(n->src(1)));
  if (anew) images_.set(old, g_.make(Op::Contiguous, old->dtype, {whole(old)}));
  for (size_t i = chain.size(); i-- > 0;)
    if (anew || !depends(chain[i])) images_.set(chain[i], image(chain[i]));
  const NodeRef src[] = {whole(old), whole(n->src(1)), whole(n->src(2))};
  return g_.make({Op::Assign, n->dtype, src, n->ints()});
}

}  // namespace weft
