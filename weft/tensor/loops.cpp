// Tuple loops: folds that carry more than one value.
#include <array>

#include "weft/base/hash.h"
#include "weft/tensor/build.h"

namespace weft::build {

namespace {

/// A loop's id follows from what it runs over: the same on every run, different for different loops
/// that may meet in one kernel.
int64_t loop_id(std::span<const NodeRef> elems, std::span<const int64_t> salt) {
  uint64_t h = 0x9e3779b97f4a7c15u;
  for (NodeRef n : elems) h = (h ^ n->hash) * 0xff51afd7ed558ccdu;
  for (const int64_t s : salt) h = (h ^ static_cast<uint64_t>(s)) * 0xc4ceb9fe1a85ec53u;
  return static_cast<int64_t>(h >> 33);
}

NodeRef place(Graph& g, Op op, int64_t k, int64_t loop, DType dtype) {
  const int64_t ints[] = {k, loop};
  return g.make({op, dtype, {}, ints});
}

NodeRef get(Graph& g, NodeRef loop, int64_t k, DType dtype) {
  const int64_t ints[] = {k};
  return g.make({Op::Get, dtype, {&loop, 1}, ints});
}

NodeRef lowest(Graph& g, DType d) {
  if (is_float(d)) return g.constant(Value::of(d, -float_top(d)));
  return g.constant(Value::of(d, is_bool(d) ? int64_t{0} : int_min(d)));
}
NodeRef highest(Graph& g, DType d) {
  if (is_float(d)) return g.constant(Value::of(d, float_top(d)));
  return g.constant(is_bool(d) ? Value::boolean(true) : Value::of(d, int_max(d)));
}

}  // namespace

ExtremeLoop extreme(Graph& g, NodeRef x, int64_t axis, bool largest, bool running) {
  NodeRef position = iota(g, x->shape->span(), axis, DType::I32);
  const NodeRef elems[] = {x, position};
  const int64_t id = loop_id(elems, std::array<int64_t, 2>{axis, largest});
  NodeRef value = place(g, Op::Elem, 0, id, x->dtype);
  NodeRef best = place(g, Op::Carry, 0, id, x->dtype);
  NodeRef better = largest ? g.lt(best, value) : g.lt(value, best);
  if (is_float(x->dtype)) {
    // NumPy's rule: the first NaN wins over everything.
    NodeRef nan = g.alu(Op::Ne, {value, value}), had = g.alu(Op::Eq, {best, best});
    better = g.alu(Op::Or, {better, g.logical_and(nan, had)});
  }
  const NodeRef src[] = {x,
                         position,
                         largest ? lowest(g, x->dtype) : highest(g, x->dtype),
                         g.constant(Value::of(DType::I32, 0)),
                         g.where(better, value, best),
                         g.where(better, place(g, Op::Elem, 1, id, DType::I32),
                                 place(g, Op::Carry, 1, id, DType::I32))};
  const int64_t ints[] = {id, 2, 2, running, axis};
  NodeRef loop = g.make({Op::Loop, x->dtype, src, ints});
  return {get(g, loop, 0, x->dtype), get(g, loop, 1, DType::I32)};
}

NodeRef linear_recurrence(Graph& g, NodeRef a, NodeRef b, int64_t axis) {
  const NodeRef elems[] = {a, b};
  const int64_t id = loop_id(elems, std::array<int64_t, 1>{axis});
  NodeRef y =
      g.add(g.mul(place(g, Op::Elem, 0, id, a->dtype), place(g, Op::Carry, 0, id, a->dtype)),
            place(g, Op::Elem, 1, id, a->dtype));
  const NodeRef src[] = {a, b, scalar(g, a->dtype, 0), y};
  const int64_t ints[] = {id, 2, 1, 1, axis};
  return get(g, g.make({Op::Loop, a->dtype, src, ints}), 0, a->dtype);
}

}  // namespace weft::build
