// Batching of nodes with several results: loops, functions, repeated bodies, the user's kernels.
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/small_vector.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/calls.h"
#include "weft/rewrite/driver.h"
#include "weft/tensor/batching.h"
#include "weft/tensor/build.h"

namespace weft {

namespace {

using build::AxisList;
using build::Extents;
using build::loop_value;
using build::with_front;

/// Each element's number in the order of the loop: 0 where it begins.
NodeRef position_in_loop(Graph& g, NodeRef like, std::span<const int64_t> axes) {
  NodeRef sum = nullptr;
  for (const int64_t a : axes) {
    NodeRef at = build::iota(g, like->shape->span(), a, DType::I32);
    sum = sum ? g.alu(Op::Or, {sum, at}) : at;
  }
  return sum;
}

}  // namespace

// ---- loops of scalars

/// Elements of all slices, each with loop state of its own. Bodies are scalar expressions and stay
/// as they are, under another loop's name; an initial value that differs from slice to slice comes
/// in as one more element.
NodeRef Batching::loop(NodeRef n) {
  const auto elems = static_cast<size_t>(n->int_arg(1)),
             carries = static_cast<size_t>(n->int_arg(2));
  const auto inits = n->src().subspan(elems, carries), bodies = n->src().last(carries);
  SmallVector<int64_t, 8> ints(n->ints());
  for (size_t i = 4; i < ints.size(); ++i) ++ints[i];
  Extents src;
  for (NodeRef e : n->src().first(elems)) src.push_back(whole(e));
  for (NodeRef init : inits)
    if (depends(init)) src.push_back(at_every_element(init, src[0]));
  if (src.size() > elems) src.push_back(position_in_loop(g_, src[0], std::span(ints).subspan(4)));
  uint64_t name = static_cast<uint64_t>(n->int_arg(0));
  for (NodeRef e : src) name = hash_combine(name, e->hash);
  ints[0] = static_cast<int64_t>(name >> 33);
  ints[1] = static_cast<int64_t>(src.size());
  const NodeMap<NodeRef> begun = first_states(inits, n->int_arg(0), ints[0], elems, src.size());
  for (NodeRef init : inits)
    src.push_back(depends(init) ? build::scalar(g_, init->dtype, 0) : init);
  for (NodeRef body : bodies) {
    if (depends(body)) fail("vmap.loop", "a loop's body differs between the slices of a batch");
    src.push_back(renamed(body, n->int_arg(0), ints[0], begun));
  }
  return g_.make({Op::Loop, n->dtype, src, ints});
}

NodeRef Batching::at_every_element(NodeRef init, NodeRef like) {
  Extents ones{size_};
  for (size_t i = 1; i < like->rank(); ++i) ones.push_back(g_.index(1));
  return build::expand(g_, build::reshape(g_, whole(init), ones), like->shape->span());
}

/// What the carries that begin differently in each slice are at a step: their element at first.
NodeMap<NodeRef> Batching::first_states(std::span<const NodeRef> inits, int64_t old_name,
                                        int64_t name, size_t elem, size_t elems) {
  NodeMap<NodeRef> begun;
  for (size_t k = 0; k < inits.size(); ++k) {
    if (!depends(inits[k])) continue;
    const DType d = inits[k]->dtype;
    NodeRef at = loop_value(g_, Op::Elem, elems - 1, name, DType::I32);
    NodeRef first = g_.alu(Op::Eq, {at, g_.constant(Value::of(DType::I32, 0))});
    begun.set(loop_value(g_, Op::Carry, k, old_name, d),
              g_.where(first, loop_value(g_, Op::Elem, elem++, name, d),
                       loop_value(g_, Op::Carry, k, name, d)));
  }
  return begun;
}

NodeRef Batching::renamed(NodeRef body, int64_t old_name, int64_t name,
                          const NodeMap<NodeRef>& begun) {
  return rebuild(body, [&](NodeRef m, std::span<const NodeRef> s) -> NodeRef {
    const bool of_loop = (m->op == Op::Carry || m->op == Op::Elem) && m->int_arg(1) == old_name;
    if (!of_loop) return g_.with_sources(m, s);
    if (const NodeRef* known = begun.find(m)) return *known;
    return loop_value(g_, m->op, static_cast<size_t>(m->int_arg(0)), name, m->dtype);
  });
}

// ---- several results

NodeRef Batching::get(NodeRef n) {
  if (n->src(0)->op == Op::Call) {
    const auto results = results_on(g_, n->src(0), CallParts(n->src(0)).inputs);
    return batched(results[static_cast<size_t>(n->int_arg(0))]);
  }
  NodeRef tuple = whole(n->src(0));
  NodeRef result = g_.make({Op::Get, n->dtype, {&tuple, 1}, n->ints()});
  const bool stacked = n->src(0)->op == Op::Repeat &&
                       static_cast<size_t>(n->int_arg(0)) >= RepeatParts(n->src(0)).nexts.size();
  return stacked ? swapped(result) : result;
}

/// A result's gradient, and the result, have the batch's axis as well.
void Batching::batch_upstream(NodeRef n) {
  const FunctionParts parts(n);
  for (NodeRef hole : placeholders_in(parts.gradients, parts.slot, 2 * parts.results.size()))
    if (hole) images_.set(hole, with_batch_axis(hole));
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
  for (NodeRef x : parts.inputs) (depends(x) ? stacked : rest).push_back(x);
  const int64_t first_slot = kInnerSlots + kSlotsPerLevel;  // a level above the kernel's
  int64_t slot = first_slot;
  NodeMap<NodeRef> hole;
  for (NodeRef x : stacked) hole.set(x, g_.param(slot++, x->dtype, x->shape->span(), x->device));
  for (NodeRef x : rest) hole.set(x, g_.param(slot++, x->dtype, x->shape->span(), x->device));
  for (NodeRef x : stacked) src.push_back(whole(x));
  for (NodeRef x : rest) src.push_back(x);
  for (NodeRef x : parts.inputs) inside.push_back(hole.at(x));
  inside.append(closed_sources(n));
  NodeRef kernel = g_.make({Op::Custom, n->dtype, inside, n->ints(), n->text()});
  for (size_t k = 0; k < parts.outputs.size(); ++k) src.push_back(get_result(g_, kernel, k));
  const int64_t ints[] = {
      size_->vmin, 0, static_cast<int64_t>(stacked.size()), static_cast<int64_t>(rest.size()), 0,
      first_slot};
  return g_.make({Op::Repeat, n->dtype, src, ints});
}

}  // namespace weft
