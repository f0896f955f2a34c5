#include "weft/lower/vector_nodes.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/target/target.h"

namespace weft::lower {

NodeRef splat(Graph& g, NodeRef n, uint16_t lanes) {
  if (n->lanes == lanes) return n;
  WEFT_CHECK(n->lanes == 1, "a vector of {} lanes where {} are needed", n->lanes, lanes);
  const NodeRef src[] = {n};
  return g.intern({Op::Splat, n->dtype, src, {}, {}, lanes});
}

NodeRef lane(Graph& g, NodeRef n, size_t k) {
  if (n->lanes == 1) return n;
  if (n->op == Op::Splat) return n->src(0);
  if (n->op == Op::Vec) return n->src(k);
  const NodeRef src[] = {n};
  const int64_t ints[] = {static_cast<int64_t>(k)};
  return g.intern({Op::Lane, n->dtype, src, ints});
}

NodeRef vec(Graph& g, std::span<const NodeRef> scalars) {
  if (scalars.size() == 1) return scalars[0];
  const auto lanes = static_cast<uint16_t>(scalars.size());
  const bool equal =
      std::all_of(scalars.begin(), scalars.end(), [&](NodeRef s) { return s == scalars[0]; });
  if (equal) return splat(g, scalars[0], lanes);
  return g.intern({Op::Vec, scalars[0]->dtype, scalars, {}, {}, lanes});
}

namespace {

NodeRef transposition_step(Graph& g, NodeRef a, NodeRef b, size_t size, int64_t odd) {
  const NodeRef src[] = {a, b};
  const int64_t ints[] = {static_cast<int64_t>(size), odd};
  return g.intern({Op::Trn, a->dtype, src, ints, {}, a->lanes});
}

}  // namespace

void transpose_blocks(Graph& g, std::span<NodeRef> vectors) {
  for (size_t size = 1; size < vectors.size(); size *= 2)
    for (size_t i = 0; i < vectors.size(); ++i) {
      if ((i & size) != 0) continue;
      NodeRef a = vectors[i], b = vectors[i + size];
      vectors[i] = transposition_step(g, a, b, size, 0);
      vectors[i + size] = transposition_step(g, a, b, size, 1);
    }
}

namespace {

/// What `n` takes all its lanes from, where that has fewer; else null.
NodeRef shorter(NodeRef n) {
  if (n->op != Op::Vec || n->src(0)->op != Op::Lane || is_bool(n->dtype)) return nullptr;
  NodeRef of = n->src(0)->src(0);
  const bool all = std::ranges::all_of(
      n->src(), [&](NodeRef s) { return s->op == Op::Lane && s->src(0) == of; });
  return all && of->lanes < n->lanes ? of : nullptr;
}

bool takes_same_lanes(NodeRef a, NodeRef b) {
  return std::ranges::equal(
      a->src(), b->src(), {}, [](NodeRef s) { return s->int_arg(0); },
      [](NodeRef s) { return s->int_arg(0); });
}

/// The same of shorter vectors whose lanes the operands take alike; null where they do not.
NodeRef of_shorter(Graph& g, Op op, DType dtype, std::span<const NodeRef> operands) {
  const auto found = std::ranges::find_if(operands, shorter);
  if (found == operands.end() || is_bool(dtype)) return nullptr;
  NodeRef like = *found;
  const uint16_t count = shorter(like)->lanes;
  SmallVector<NodeRef, 4> src;
  for (NodeRef s : operands) {
    NodeRef of = shorter(s);
    const bool alike = of && of->lanes == count && takes_same_lanes(s, like);
    if (!alike && s->op != Op::Splat) return nullptr;
    src.push_back(alike ? of : splat(g, s->src(0), count));
  }
  NodeRef n = elementwise(g, op, dtype, src);
  SmallVector<NodeRef, 16> lanes;
  for (NodeRef s : like->src()) lanes.push_back(lane(g, n, static_cast<size_t>(s->int_arg(0))));
  return vec(g, lanes);
}

}  // namespace

NodeRef elementwise(Graph& g, Op op, DType dtype, std::span<const NodeRef> src) {
  uint16_t lanes = 1;
  for (NodeRef s : src) lanes = std::max(lanes, s->lanes);
  if (lanes == 1) return g.make({op, dtype, src});
  const bool uniform = std::all_of(src.begin(), src.end(),
                                   [](NodeRef s) { return s->lanes == 1 || s->op == Op::Splat; });
  SmallVector<NodeRef, 4> operands;
  for (NodeRef s : src) operands.push_back(uniform ? lane(g, s, 0) : splat(g, s, lanes));
  if (NodeRef few = of_shorter(g, op, dtype, operands)) return few;
  // What is equal in all lanes is computed once.
  const NodeRef n = g.make({op, dtype, operands, {}, {}, uniform ? uint16_t{1} : lanes});
  return splat(g, n, lanes);
}

bool may_contract(const Target& target, Fold fold, NodeRef value) {
  if (fold == Fold::Add && has_trait(value->op, kWords)) return true;
  return fold == Fold::Add && value->op == Op::Mul && is_float(value->dtype) &&
         bits(value->dtype) >= 32 && target.native(Op::MulAcc, value->dtype);
}

namespace {

bool adds_to_nothing(NodeRef n) {
  if (!has_trait(n->op, kWords)) return false;
  NodeRef to = n->src(2)->op == Op::Splat ? n->src(2)->src(0) : n->src(2);
  return to->op == Op::Const && const_value(to).raw_bits() == 0;
}

}  // namespace

NodeRef fold_in(Graph& g, Fold fold, NodeRef so_far, NodeRef value, bool contract) {
  if (contract && (value->op == Op::Mul || adds_to_nothing(value))) {
    const NodeRef src[] = {value->src(0), value->src(1), so_far};
    return elementwise(g, value->op == Op::Mul ? Op::MulAcc : value->op, value->dtype, src);
  }
  const NodeRef src[] = {so_far, value};
  return elementwise(g, fold_op(fold), so_far->dtype, src);
}

NodeRef fold_all(Graph& g, const Target& target, Fold fold, std::span<const NodeRef> values) {
  if (may_contract(target, fold, values[0])) {
    NodeRef sum = values[0];
    for (NodeRef v : values.subspan(1)) sum = fold_in(g, fold, sum, v, true);
    return sum;
  }
  std::vector<NodeRef> level(values.begin(), values.end());
  while (level.size() > 1) {
    const size_t pairs = level.size() / 2;
    for (size_t i = 0; i < pairs; ++i)
      level[i] = fold_in(g, fold, level[2 * i], level[2 * i + 1], false);
    if (level.size() % 2 != 0) level[pairs] = level.back();
    level.resize((level.size() + 1) / 2);
  }
  return level[0];
}

NodeRef fold_lanes(Graph& g, Fold fold, NodeRef vector) {
  // In vectors as long as there are any: half of the lanes with the other half. Of conditions,
  // whose lanes are bits, all are tested at once.
  while (!is_bool(vector->dtype) && vector->lanes > 2) {
    std::vector<NodeRef> halves[2];
    for (size_t k = 0; k < vector->lanes; ++k)
      halves[2 * k / vector->lanes].push_back(lane(g, vector, k));
    vector = fold_in(g, fold, vec(g, halves[0]), vec(g, halves[1]), false);
  }
  std::vector<NodeRef> lanes;
  for (size_t k = 0; k < vector->lanes; ++k) lanes.push_back(lane(g, vector, k));
  for (size_t n = lanes.size(); n > 1;) {
    const size_t half = n / 2;
    for (size_t k = 0; k < half; ++k) lanes[k] = fold_in(g, fold, lanes[k], lanes[k + half], false);
    n = half;
  }
  return lanes[0];
}

}  // namespace weft::lower
