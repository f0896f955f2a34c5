// Tuple loops: folds that carry more than one value.
#include <array>

#include "weft/base/hash.h"
#include "weft/graph/tuple.h"
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

NodeRef lowest(Graph& g, DType d) {
  if (is_float(d)) return g.constant(Value::of(d, -float_top(d)));
  return g.constant(Value::of(d, is_bool(d) ? int64_t{0} : int_min(d)));
}
NodeRef highest(Graph& g, DType d) {
  if (is_float(d)) return g.constant(Value::of(d, float_top(d)));
  return g.constant(is_bool(d) ? Value::boolean(true) : Value::of(d, int_max(d)));
}

}  // namespace

NodeRef loop_value(Graph& g, Op op, size_t k, int64_t loop, DType dtype) {
  const int64_t ints[] = {static_cast<int64_t>(k), loop};
  return g.make({op, dtype, {}, ints});
}

std::vector<NodeRef> loop(Graph& g, std::span<const NodeRef> elems, std::span<const NodeRef> inits,
                          int64_t axis, bool stacked, std::span<const int64_t> salt,
                          const LoopBody& body) {
  const int64_t id = loop_id(elems, salt);
  std::vector<NodeRef> in, carried, sources(elems.begin(), elems.end());
  for (size_t k = 0; k < elems.size(); ++k)
    in.push_back(loop_value(g, Op::Elem, k, id, elems[k]->dtype));
  for (size_t k = 0; k < inits.size(); ++k)
    carried.push_back(loop_value(g, Op::Carry, k, id, inits[k]->dtype));
  sources.insert(sources.end(), inits.begin(), inits.end());
  for (NodeRef n : body(in, carried)) sources.push_back(n);
  const int64_t ints[] = {id, static_cast<int64_t>(elems.size()),
                          static_cast<int64_t>(inits.size()), stacked, axis};
  NodeRef made = g.make({Op::Loop, inits[0]->dtype, sources, ints});
  std::vector<NodeRef> results;
  for (size_t k = 0; k < inits.size(); ++k) results.push_back(get_result(g, made, k));
  return results;
}

ExtremeLoop extreme(Graph& g, NodeRef x, int64_t axis, bool largest, bool running) {
  const NodeRef elems[] = {x, positions(g, x->shape->span(), axis)};
  const NodeRef inits[] = {largest ? lowest(g, x->dtype) : highest(g, x->dtype),
                           g.constant(Value::of(elems[1]->dtype, 0))};
  const std::array<int64_t, 2> salt{axis, largest};
  const auto results = loop(g, elems, inits, axis, running, salt, [&](auto in, auto carried) {
    NodeRef value = in[0], best = carried[0];
    NodeRef better = largest ? g.lt(best, value) : g.lt(value, best);
    if (is_float(x->dtype)) {
      // NumPy's rule: the first NaN wins over everything.
      NodeRef nan = g.alu(Op::Ne, {value, value}), had = g.alu(Op::Eq, {best, best});
      better = g.alu(Op::Or, {better, g.logical_and(nan, had)});
    }
    return std::vector<NodeRef>{g.where(better, value, best), g.where(better, in[1], carried[1])};
  });
  return {results[0], results[1]};
}

NodeRef linear_recurrence(Graph& g, NodeRef a, NodeRef b, int64_t axis) {
  const NodeRef elems[] = {a, b}, inits[] = {scalar(g, a->dtype, 0)};
  const std::array<int64_t, 1> salt{axis};
  return loop(g, elems, inits, axis, true, salt, [&](auto in, auto carried) {
    return std::vector<NodeRef>{g.add(g.mul(in[0], carried[0]), in[1])};
  })[0];
}

}  // namespace weft::build
