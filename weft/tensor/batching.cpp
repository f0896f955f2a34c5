#include "weft/tensor/batching.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/small_vector.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"
#include "weft/tensor/build.h"

namespace weft {

namespace {

using build::AxisList;
using build::Extents;

Extents with_front(NodeRef size, std::span<const NodeRef> dims) {
  Extents all{size};
  all.append(dims);
  return all;
}

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
  for (NodeRef n : order) {
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
    case Op::Get: return get(n);
    case Op::Gather:
    case Op::Scatter:
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
  if (n->op == Op::Gather || n->op == Op::Scatter || n->op == Op::Window || n->op == Op::Unwindow)
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

/// Elements of all slices, each with loop state of its own. Bodies are scalar expressions and stay
/// as they are, under another loop's name; an initial value that differs from slice to slice comes
/// in as one more element.
NodeRef Batching::loop(NodeRef n) {
  const auto elems = static_cast<size_t>(n->int_arg(1)),
             carries = static_cast<size_t>(n->int_arg(2));
  Extents src;
  uint64_t name = static_cast<uint64_t>(n->int_arg(0));
  for (size_t i = 0; i < elems; ++i) {
    src.push_back(whole(n->src(i)));
    name = hash_combine(name, src.back()->hash);
  }
  SmallVector<int64_t, 8> ints = shifted(n, 4, n->nints - 4);
  NodeMap<NodeRef> begun;  // carry: as it is at every step
  const auto place = [&](Op op, size_t k, DType dtype, int64_t loop) {
    const int64_t of[] = {static_cast<int64_t>(k), loop};
    return g_.make({op, dtype, {}, of});
  };
  const NodeRef like = src[0];
  for (size_t k = 0; k < carries; ++k) {
    NodeRef init = n->src(elems + k);
    if (!depends(init)) continue;
    Extents ones{size_};
    for (size_t i = 1; i < like->rank(); ++i) ones.push_back(g_.index(1));
    src.push_back(build::expand(g_, build::reshape(g_, whole(init), ones), like->shape->span()));
    name = hash_combine(name, src.back()->hash);
  }
  ints[0] = static_cast<int64_t>(name >> 33);
  const size_t first = src.size();
  if (first > elems) src.push_back(position_in_loop(like, std::span(ints).subspan(4)));
  for (size_t k = 0, next = elems; k < carries; ++k) {
    NodeRef init = n->src(elems + k);
    if (!depends(init)) continue;
    NodeRef at = place(Op::Elem, first, src[first]->dtype, ints[0]);
    NodeRef zero = g_.constant(Value::of(at->dtype, 0));
    begun[place(Op::Carry, k, init->dtype, n->int_arg(0))] =
        g_.where(g_.alu(Op::Eq, {at, zero}), place(Op::Elem, next++, init->dtype, ints[0]),
                 place(Op::Carry, k, init->dtype, ints[0]));
  }
  ints[1] = static_cast<int64_t>(src.size());
  auto renamed = [&](NodeRef body) {
    return rebuild(body, [&](NodeRef m, std::span<const NodeRef> s) -> NodeRef {
      const bool state =
          (m->op == Op::Carry || m->op == Op::Elem) && m->int_arg(1) == n->int_arg(0);
      if (!state) return g_.with_sources(m, s);
      if (const NodeRef* known = begun.find(m)) return *known;
      return place(m->op, static_cast<size_t>(m->int_arg(0)), m->dtype, ints[0]);
    });
  };
  for (size_t k = 0; k < carries; ++k) {
    NodeRef init = n->src(elems + k);
    src.push_back(depends(init) ? build::scalar(g_, init->dtype, 0) : init);
  }
  for (size_t k = 0; k < carries; ++k) {
    NodeRef body = n->src(elems + carries + k);
    if (depends(body)) fail("vmap.loop", "a loop's body differs between the slices of a batch");
    src.push_back(renamed(body));
  }
  return g_.make({Op::Loop, n->dtype, src, ints});
}

// ---- several results

NodeRef Batching::get(NodeRef n) {
  NodeRef tuple = whole(n->src(0));
  NodeRef result = g_.make({Op::Get, n->dtype, {&tuple, 1}, n->ints()});
  const bool stacked = n->src(0)->op == Op::Repeat &&
                       static_cast<size_t>(n->int_arg(0)) >= RepeatParts(n->src(0)).nexts.size();
  return stacked ? swapped(result) : result;
}

/// A result's gradient has the batch's axis as well.
void Batching::batch_upstream(NodeRef n) {
  const FunctionParts parts(n);
  for (NodeRef upstream : placeholders_in(parts.gradients, parts.slot, parts.results.size()))
    if (upstream) images_.set(upstream, with_batch_axis(upstream));
}

NodeRef Batching::with_batch_axis(NodeRef param) {
  return g_.param(param_slot(param), param->dtype, with_front(size_, param->shape->span()),
                  param->device);
}

NodeRef Batching::function(NodeRef n) {
  Extents src;
  for (NodeRef s : n->src()) src.push_back(s->op == Op::Sink ? s : whole(s));
  return g_.make({Op::Function, n->dtype, src, n->ints()});
}

/// The first two axes change places: (batch, slices, ...) and (slices, batch, ...).
NodeRef Batching::swapped(NodeRef x) {
  AxisList order{1, 0};
  for (size_t i = 2; i < x->rank(); ++i) order.push_back(static_cast<int64_t>(i));
  return build::permute(g_, x, order);
}

/// All slices go through a body together. What is carried may come to depend on the batch.
NodeRef Batching::repeat(NodeRef n) {
  const RepeatParts parts(n);
  const size_t inputs = evaluated_sources(n);
  const auto holes = placeholders_in(closed_sources(n), parts.slot, inputs);
  NodeMap<NodeRef> inner;
  Extents src;
  for (size_t i = 0; i < inputs; ++i) {
    NodeRef x = n->src(i);
    const bool carried = i >= parts.stacked.size() + parts.whole.size();
    if (!carried && !depends(x)) {
      src.push_back(x);
      continue;
    }
    src.push_back(i < parts.stacked.size() ? swapped(whole(x)) : whole(x));
    if (holes[i]) inner.set(holes[i], with_batch_axis(holes[i]));
  }
  Batching bodies(g_, size_, std::move(inner));
  for (NodeRef body : closed_sources(n)) src.push_back(bodies.batched(body));
  return g_.make({Op::Repeat, n->dtype, src, n->ints()});
}

/// The user's kernel, slice by slice.
NodeRef Batching::custom(NodeRef n) {
  if (!is_int_const(size_, size_->vmin))
    fail("vmap.custom_kernel", "a custom kernel is run for a known number of slices");
  const CustomParts parts(n);
  Extents stacked, rest, src, inside;
  std::vector<NodeRef> holes;
  for (NodeRef x : parts.inputs) (depends(x) ? stacked : rest).push_back(x);
  int64_t slot = kInnerSlots + kSlotsPerLevel;
  NodeMap<NodeRef> hole;
  for (NodeRef x : stacked) hole.set(x, g_.param(slot++, x->dtype, x->shape->span(), x->device));
  for (NodeRef x : rest) hole.set(x, g_.param(slot++, x->dtype, x->shape->span(), x->device));
  for (NodeRef x : stacked) src.push_back(whole(x));
  for (NodeRef x : rest) src.push_back(x);
  for (NodeRef x : parts.inputs) inside.push_back(hole.at(x));
  inside.append(closed_sources(n));
  NodeRef kernel = g_.make({Op::Custom, n->dtype, inside, n->ints(), n->text()});
  for (size_t k = 0; k < parts.outputs.size(); ++k) {
    const int64_t place[] = {static_cast<int64_t>(k)};
    src.push_back(g_.make({Op::Get, parts.outputs[k]->dtype, {&kernel, 1}, place}));
  }
  const int64_t ints[] = {size_->vmin,
                          0,
                          static_cast<int64_t>(stacked.size()),
                          static_cast<int64_t>(rest.size()),
                          0,
                          kInnerSlots + kSlotsPerLevel};
  return g_.make({Op::Repeat, n->dtype, src, ints});
}

/// Each element's number in the order of the loop: 0 where it begins.
NodeRef Batching::position_in_loop(NodeRef like, std::span<const int64_t> axes) {
  NodeRef sum = nullptr;
  for (const int64_t a : axes) {
    NodeRef at = build::iota(g_, like->shape->span(), a, DType::I32);
    sum = sum ? g_.alu(Op::Or, {sum, at}) : at;
  }
  return sum;
}

/// The view is a chain of moves on the old value, and stays one.
NodeRef Batching::assign(NodeRef n) {
  NodeRef old = n->src(0);
  std::vector<NodeRef> chain;
  for (NodeRef v = n->src(1); v != old; v = v->src(0)) chain.push_back(v);
  if (!depends(old)) images_.set(old, g_.make(Op::Contiguous, old->dtype, {whole(old)}));
  for (size_t i = chain.size(); i-- > 0;)
    if (!depends(chain[i])) images_.set(chain[i], image(chain[i]));
  const NodeRef src[] = {whole(old), whole(n->src(1)), whole(n->src(2))};
  return g_.make({Op::Assign, n->dtype, src, n->ints()});
}

}  // namespace weft
