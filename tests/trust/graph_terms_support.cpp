#if __has_include(<z3++.h>) && defined(WEFT_HAVE_Z3)
#include "tests/trust/term_runs_support.h"
#include "weft/base/format.h"
#include "weft/eval/evaluate.h"
#include "weft/eval/scalar.h"
#include "weft/eval/step.h"
#include "weft/graph/node_map.h"

namespace weft::test {
namespace {

using Terms = std::vector<Term>;  // of a node, row-major
using eval::Extents;

class GraphRun {
 public:
  GraphRun(TermAlgebra& algebra, const TermMemory& params, const Variables& variables, Steps& steps)
      : algebra_(algebra), params_(params), variables_(variables), steps_(steps) {}

  TermMemory run(std::span<const NodeRef> roots) {
    for (NodeRef n : Toposort(roots)) terms_[n] = terms(n);
    TermMemory out;
    for (NodeRef n : roots) out.push_back(terms_.at(n));
    return out;
  }

 private:
  Extents extents(NodeRef n) const {
    Extents out;
    for (NodeRef d : n->shape->span()) out.push_back(trust::index_value(d, variables_));
    return out;
  }
  static int64_t count(const Extents& of) {
    int64_t n = 1;
    for (int64_t e : of) n *= e;
    return n;
  }
  const Terms& of(NodeRef n, size_t i) const { return terms_.at(n->src(i)); }

  Terms terms(NodeRef n) {
    switch (n->op) {
      case Op::Const: return {{const_value(n)}};
      case Op::Variable: return {TermAlgebra::index(variables_.at(std::string(n->text())))};
      case Op::Param: return params_.at(static_cast<size_t>(param_slot(n)));
      case Op::Contiguous:
      case Op::Detach: return of(n, 0);
      case Op::Gather: return gathered(n);
      case Op::Reduce: return folded(n, reduce_axes(n), false);
      case Op::Scan: return folded(n, n->ints().subspan(1), true);
      case Op::Iota: return counted(n);
      case Op::Cat: return moved(n, n->nsrc);
      default: break;
    }
    if (is_movement(n->op)) return moved(n, 1);
    if (is_alu(n->op)) return elementwise(n);
    throw Unsupported{strformat("{} of tensors", info(n->op).mnemonic)};
  }

  Terms elementwise(NodeRef n) {
    Terms out;
    const auto all = static_cast<size_t>(count(extents(n)));
    for (size_t i = 0; i < all; ++i) {
      steps_.take();
      std::vector<Term> operands;
      for (size_t k = 0; k < n->nsrc; ++k)
        operands.push_back(of(n, k).at(n->src(k)->rank() == 0 ? 0 : i));
      out.push_back(algebra_.apply(n->op, n->dtype, operands));
    }
    return out;
  }

  Terms counted(NodeRef n) const {
    const Extents shape = extents(n);
    Terms out;
    for (int64_t i = 0; i < count(shape); ++i)
      out.push_back(
          {Value::of(n->dtype, eval::unflatten(i, shape)[static_cast<size_t>(n->int_arg(0))])});
    return out;
  }

  /// Where the oracle moves elements to: those of the first `moving` sources are numbered from 1
  /// on, 0 is none of them.
  Terms moved(NodeRef n, size_t moving) {
    Graph g;
    eval::Inputs inputs;
    inputs.variables = variables_;
    Terms all;
    std::vector<NodeRef> src;
    for (NodeRef s : n->src()) {
      const size_t slot = src.size();
      if (slot >= moving) {
        src.push_back(g.import(s));
        continue;
      }
      src.push_back(
          g.param(static_cast<int64_t>(slot), DType::I64, g.import_all(s->shape->span())));
      eval::Array& numbers = inputs.params.emplace_back(DType::I64, extents(s));
      for (int64_t i = 0; i < numbers.count(); ++i) {
        all.push_back(of(n, slot).at(static_cast<size_t>(i)));
        numbers.set(i, Value::of(DType::I64, static_cast<int64_t>(all.size())));
      }
    }
    Terms out;
    for (int64_t place :
         eval::evaluate(g.intern({n->op, DType::I64, src, n->ints()}), inputs).ints())
      out.push_back(place == 0 ? Term{Value::of(n->dtype, 0)}
                               : all.at(static_cast<size_t>(place) - 1));
    return out;
  }

  Terms gathered(NodeRef n) {
    const Extents from = extents(n->src(0)), shape = extents(n);
    const auto axis = static_cast<size_t>(n->int_arg(0));
    Terms out;
    for (int64_t i = 0; i < count(shape); ++i) {
      steps_.take();
      eval::Index at = eval::unflatten(i, shape);
      Terms line;  // what is along the axis here
      for (at[axis] = 0; at[axis] < from[axis]; ++at[axis])
        line.push_back(of(n, 0).at(static_cast<size_t>(eval::flatten(at, from))));
      const Term& index = of(n, 1).at(static_cast<size_t>(i));
      const Term operands[] = {index, TermAlgebra::index(from[axis])};
      // Outside of the axis the clamped index is another number.
      const Term clamped[] = {algebra_.apply(Op::ToIndex, DType::Index, operands)};
      const Term same[] = {algebra_.apply(Op::Cast, index.dtype, clamped), index};
      out.push_back(algebra_.where(algebra_.apply(Op::Eq, DType::Bool, same),
                                   algebra_.read(line, clamped[0]), {Value::of(n->dtype, 0)}));
    }
    return out;
  }

  /// Of all elements along the axes, in row-major order; `running`: what it is after each.
  Terms folded(NodeRef n, std::span<const int64_t> axes, bool running) {
    const Extents shape = extents(n->src(0));
    Extents kept = shape;
    for (int64_t axis : axes) kept[static_cast<size_t>(axis)] = 1;
    Terms state(static_cast<size_t>(count(kept)), {eval::fold_identity(fold_of(n), n->dtype)});
    Terms steps;
    for (int64_t i = 0; i < count(shape); ++i) {
      steps_.take();
      eval::Index at = eval::unflatten(i, shape);
      for (int64_t axis : axes) at[static_cast<size_t>(axis)] = 0;
      Term& sum = state.at(static_cast<size_t>(eval::flatten(at, kept)));
      sum = algebra_.fold(fold_of(n), sum, of(n, 0).at(static_cast<size_t>(i)));
      if (running) steps.push_back(sum);
    }
    return running ? steps : state;
  }

  TermAlgebra& algebra_;
  const TermMemory& params_;
  const Variables& variables_;
  Steps& steps_;
  NodeMap<Terms> terms_;
};

}  // namespace

TermMemory run_graph(TermAlgebra& algebra, std::span<const NodeRef> roots, const TermMemory& params,
                     const Variables& variables, Steps& steps) {
  return GraphRun(algebra, params, variables, steps).run(roots);
}

}  // namespace weft::test
#endif
