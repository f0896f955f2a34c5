// Tracing: functions run on placeholders, and what they built is used as a graph.
#pragma once

#include "weft/graph/node_map.h"
#include "weft/tensor/access.h"
#include "weft/tensor/transforms.h"

namespace weft {

/// Stands for something like x, of these sizes.
Tensor placeholder(const Tensor& x, const Dims& dims);
Tensors placeholders(const Tensors& like);

/// `results` with values in the place of placeholders.
Tensors bound(const Tensors& results, const Tensors& holes, const Tensors& values);

/// f(inputs), where f depends on nothing but its inputs and on what `options` say. It is traced
/// once for every `name`, options and form of the inputs; a later call is one node, in the place of
/// which scheduling puts what f computes: it is fused with what is around it. `about`: nodes that f
/// depends on, too.
Tensors called(std::string_view name, const Ints& options, const Tensors& inputs,
               const TensorFunction& f, std::span<const NodeRef> about = {});

/// While it lives, called() of this thread makes calls of inputs with symbolic sizes too, which
/// otherwise are built in place: for who reads the graph and does not run it.
class SymbolicCallsScope {
 public:
  SymbolicCallsScope();
  ~SymbolicCallsScope();
  SymbolicCallsScope(const SymbolicCallsScope&) = delete;
  SymbolicCallsScope& operator=(const SymbolicCallsScope&) = delete;

 private:
  bool before_;
};

std::vector<NodeRef> nodes_of(const Tensors& tensors);
/// Results begin to end - 1 of a node that has several.
Tensors results_of(Context& context, Graph& g, NodeRef tuple, size_t begin, size_t end);

/// What is given to a Repeat's bodies. Stacks have its count as their first axis.
struct RepeatInputs {
  int64_t count = 1;
  bool reversed = false;
  Tensors stacked, whole, carried;
  /// Every round computes all of its own, so that memory is one round's: nothing is split off that
  /// could be computed for all rounds at once.
  bool apart = false;
  int64_t until = -1;  ///< RepeatParts::until
};
/// What bodies make of a slice of each stack, of the whole tensors and of what is carried.
struct RepeatBody {
  Tensors carried, outs;
};
using RepeatFunction =
    FunctionRef<RepeatBody(const Tensors& slices, const Tensors& whole, const Tensors& carried)>;

/// An error where what a body makes of what it carries is not like it.
void require_same(const char* tag, const Tensors& carried, const Tensors& next);
/// The last of what is carried, and stacks of outs. What the body reads from around itself becomes
/// an input too. Its gradient runs the bodies again, backwards, from what was carried then.
RepeatBody repeat(const RepeatInputs& inputs, RepeatFunction body);

}  // namespace weft
