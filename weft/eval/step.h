// Step: what a function of the oracle's table sees of one node; and walks over multi-indices.
#pragma once
#include <span>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/eval/array.h"
#include "weft/graph/node.h"

namespace weft::eval {

struct Inputs;
using Index = std::vector<int64_t>;

/// A node about to be evaluated: its sources' values and its concrete shape.
struct Step {
  NodeRef node;
  Extents extents;
  std::vector<const Array*> src;
  const Inputs& inputs;

  const Array& x() const { return *src[0]; }
  /// Source `i` as a number; sizes and offsets are index scalars.
  int64_t number(size_t i) const { return src[i]->at(0).as_int(); }
  int64_t arg(size_t i) const { return node->int_arg(i); }
  size_t axis_arg(size_t i) const { return static_cast<size_t>(node->int_arg(i)); }
};

/// Row-major position of `index` in an array of `extents`.
int64_t flatten(const Index& index, std::span<const int64_t> extents);
/// The multi-index at row-major position `flat`.
Index unflatten(int64_t flat, std::span<const int64_t> extents);

/// Calls visit(index, flat) for every element in row-major order.
template <class Visit>
void for_each_index(const Extents& extents, Visit visit) {
  const int64_t count = count_of(extents);
  Index index(extents.size(), 0);
  for (int64_t flat = 0; flat < count; ++flat) {
    visit(static_cast<const Index&>(index), flat);
    for (size_t a = extents.size(); a-- > 0;) {
      if (++index[a] < extents[a]) break;
      index[a] = 0;
    }
  }
}

Array evaluate_movement(const Step& step);  // movement.cpp
/// Where element `out` of a movement op comes from in its first source; false: it is 0.
bool movement_source(const Step& step, const Index& out, Index& in);

Array evaluate_cat(const Step& step);

Array evaluate_reduce(const Step& step);  // folds.cpp
Array evaluate_scan(const Step& step);
Array evaluate_scatter(const Step& step);
Array evaluate_cumcount(const Step& step);

/// The results of a Loop over elements of `elem_extents` (loops.cpp). `lookup` gives the values of
/// nodes outside the loop, and null for those inside its bodies.
std::vector<Array> evaluate_loop(NodeRef loop, const Extents& elem_extents, const Extents& extents,
                                 FunctionRef<const Array*(NodeRef)> lookup);

/// What a user's kernel leaves in its outputs (kernel.cpp).
std::vector<Array> evaluate_kernel(NodeRef custom, std::vector<Array> outputs,
                                   std::vector<Array> inputs);

}  // namespace weft::eval
