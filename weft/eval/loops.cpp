// Loop: carries that bodies replace together at every element.
#include "weft/eval/scalar.h"
#include "weft/eval/step.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"

namespace weft::eval {
namespace {

using Lookup = FunctionRef<const Array*(NodeRef)>;

/// loop(elems..., inits..., bodies...) [loop, elems, carries, stacked, axes...]
class LoopRun {
 public:
  LoopRun(NodeRef loop, const Extents& all, Lookup lookup)
      : elems_(loop->src().first(static_cast<size_t>(loop->int_arg(1)))),
        inits_(loop->src().subspan(elems_.size(), static_cast<size_t>(loop->int_arg(2)))),
        bodies_(loop->src().subspan(elems_.size() + inits_.size(), inits_.size())),
        axes_(loop->ints().subspan(4)),
        order_(bodies_),
        all_(all),
        kept_(all),
        lookup_(lookup) {
    for (const int64_t axis : axes_) kept_[static_cast<size_t>(axis)] = 1;
  }

  /// Row-major order over all elements visits the axes of every kept position in row-major order.
  void run() {
    for (NodeRef init : inits_) {
      state.emplace_back(init->dtype, kept_);
      steps.emplace_back(init->dtype, all_);
      for (int64_t i = 0; i < state.back().count(); ++i) state.back().set(i, lookup_(init)->at(0));
    }
    for_each_index(all_, [&](const Index& index, int64_t flat) {
      Index at = index;
      for (const int64_t axis : axes_) at[static_cast<size_t>(axis)] = 0;
      visit(flat, flatten(at, kept_));
    });
  }

  std::vector<Array> state;  // last values of the carries, axes kept with extent 1
  std::vector<Array> steps;  // their values after every step

 private:
  void visit(int64_t flat, int64_t place) {
    NodeMap<Value> values;
    for (NodeRef n : order_) values[n] = value_of(n, flat, place, values);
    for (size_t k = 0; k < bodies_.size(); ++k) {
      state[k].set(place, values.at(bodies_[k]));
      steps[k].set(flat, values.at(bodies_[k]));
    }
  }
  Value value_of(NodeRef n, int64_t flat, int64_t place, const NodeMap<Value>& values) {
    if (const Array* outside = lookup_(n)) return outside->at(0);
    const auto k = n->nints ? static_cast<size_t>(n->int_arg(0)) : 0;
    if (n->op == Op::Elem) return lookup_(elems_[k])->at(flat);
    if (n->op == Op::Carry) return state[k].at(place);
    std::vector<Value> operands;
    for (NodeRef s : n->src()) operands.push_back(values.at(s));
    return apply(n->op, n->dtype, operands);
  }

  std::span<const NodeRef> elems_, inits_, bodies_;
  std::span<const int64_t> axes_;
  Toposort order_;
  Extents all_, kept_;
  Lookup lookup_;
};

}  // namespace

std::vector<Array> evaluate_loop(NodeRef loop, const Extents& all, const Extents& extents,
                                 Lookup lookup) {
  LoopRun run(loop, all, lookup);
  run.run();
  if (loop->int_arg(3) != 0) return std::move(run.steps);
  for (Array& a : run.state) a = Array::copy_of(a.dtype(), extents, a.bytes().data());
  return std::move(run.state);
}

}  // namespace weft::eval
