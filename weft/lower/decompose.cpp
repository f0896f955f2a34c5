// Ops and dtypes the target lacks, made of those it has.
#include <algorithm>
#include <array>

#include "weft/base/small_vector.h"
#include "weft/lower/legaliser.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"

namespace weft::lower {
namespace {

/// A constant, or a vector of one.
bool is_constant(NodeRef n) {
  return n->op == Op::Const || (n->op == Op::Splat && n->src(0)->op == Op::Const);
}

}  // namespace

NodeRef Legaliser::make(Op op, DType dtype, std::span<const NodeRef> src) {
  if (std::all_of(src.begin(), src.end(), is_constant)) {
    // Approximate ops stay what they are: their expansions are folded.
    NodeRef folded = elementwise(graph_, op, dtype, src);
    if (is_constant(folded)) return folded;
  }
  if (needs_f32(op, dtype, src)) return through_f32(*this, op, dtype, src);
  for (std::span<const Decomposition> table : {int_decompositions(), float_decompositions()})
    for (const Decomposition& d : table)
      if (d.op == op && d.applies(*this, dtype, src)) return d.build(*this, dtype, src);
  return elementwise(graph_, op, dtype, src);
}

NodeRef Legaliser::raw(Op op, DType dtype, std::initializer_list<NodeRef> src) {
  return elementwise(graph_, op, dtype, {src.begin(), src.size()});
}

Expr Expr::op1(Op op) const {
  const NodeRef src[] = {n_};
  return {*l_, l_->make(op, n_->dtype, src)};
}

Expr Expr::op3(Op op, NodeRef b, NodeRef c) const {
  const NodeRef src[] = {n_, b, c};
  const DType result = has_trait(op, kBoolResult) ? DType::Bool : n_->dtype;
  return {*l_, l_->make(op, result, {src, c ? size_t{3} : size_t{2}})};
}

Expr Expr::mul_add(const Expr& b, const Expr& c) const {
  if (l_->target().native(Op::MulAcc, dtype())) return op3(Op::MulAcc, b, c);
  return *this * b + c;
}

Expr where(Expr condition, Expr a, Expr b) {
  const NodeRef src[] = {condition, a, b};
  return {a.legaliser(), a.legaliser().make(Op::Where, a.dtype(), src)};
}

NodeRef decompose(Graph& g, NodeRef sink, const Target& target) {
  Legaliser legal(g, target);
  const NumberedOrder order(sink);
  std::vector<NodeRef> done;
  done.reserve(order.size());
  SmallVector<NodeRef, 16> src;
  for (NodeRef n : order.nodes()) {
    src.clear();
    for (NodeRef s : n->src()) src.push_back(done[order.index(s)]);
    // A fold that is not an op of the target is taken apart where the loop is written out.
    done.push_back(is_alu(n->op) ? splat(g, legal.make(n->op, n->dtype, src), n->lanes)
                                 : g.with_sources(n, src));
  }
  return done.back();
}

}  // namespace weft::lower
