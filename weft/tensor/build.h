// Movement and reduction nodes from sizes and axes: identities dropped, neighbours merged.
#pragma once

#include <span>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/base/small_vector.h"
#include "weft/graph/graph.h"

namespace weft::build {

using Extents = SmallVector<NodeRef, 6>;
using AxisList = SmallVector<int64_t, 6>;

Extents extents(NodeRef x);
NodeRef product(Graph& g, std::span<const NodeRef> dims);
Extents with_front(NodeRef size, std::span<const NodeRef> dims);

NodeRef reshape(Graph& g, NodeRef x, std::span<const NodeRef> dims);
/// Ranks are equal; axes that differ have size 1 in x.
NodeRef expand(Graph& g, NodeRef x, std::span<const NodeRef> dims);
/// NumPy's rule: axes are aligned from the last; the caller has checked that sizes fit.
NodeRef broadcast_to(Graph& g, NodeRef x, std::span<const NodeRef> dims);
NodeRef permute(Graph& g, NodeRef x, std::span<const int64_t> axes);
NodeRef flip(Graph& g, NodeRef x, std::span<const int64_t> axes);
NodeRef shrink(Graph& g, NodeRef x, std::span<const NodeRef> begin, std::span<const NodeRef> size,
               std::span<const int64_t> steps);
NodeRef pad(Graph& g, NodeRef x, std::span<const NodeRef> before, std::span<const NodeRef> after,
            std::span<const int64_t> interior);
/// The parts one after the other along axis; one part is itself.
NodeRef cat(Graph& g, std::span<const NodeRef> parts, int64_t axis);
NodeRef window(Graph& g, NodeRef x, int64_t axis, int64_t size, int64_t stride, int64_t dilation);
NodeRef reduce(Graph& g, NodeRef x, Fold fold, std::span<const int64_t> axes);
NodeRef scan(Graph& g, NodeRef x, Fold fold, int64_t axis);
/// Each element is its position along axis, as `dtype`.
NodeRef iota(Graph& g, std::span<const NodeRef> dims, int64_t axis, DType dtype);
/// What counts up to `most`, and positions among so many elements, are held in.
constexpr DType position_dtype(int64_t most) { return most > INT32_MAX ? DType::I64 : DType::I32; }
/// Each element is its position along axis, in the position_dtype of that axis.
NodeRef positions(Graph& g, std::span<const NodeRef> dims, int64_t axis);
/// The rank-0 node that x repeats, or x itself.
NodeRef without_broadcast(NodeRef x);
NodeRef scalar(Graph& g, DType dtype, double value);

/// The k-th element (op Elem) or carried value (Carry) inside the loop of this number.
NodeRef loop_value(Graph& g, Op op, size_t k, int64_t loop, DType dtype);

using LoopBody = FunctionRef<std::vector<NodeRef>(std::span<const NodeRef> elems,
                                                  std::span<const NodeRef> carried)>;
/// A fold of several values along axis: the carried values start as inits (rank 0) and become what
/// the body, in terms of one element of each of elems and of themselves, gives. The last ones, or
/// with stacked those of every step. Loops over the same elems differ in their salt.
std::vector<NodeRef> loop(Graph& g, std::span<const NodeRef> elems, std::span<const NodeRef> inits,
                          int64_t axis, bool stacked, std::span<const int64_t> salt,
                          const LoopBody& body);

/// The largest (smallest) value along axis and its first position (i32); NaN wins. With `running`,
/// those up to every element.
struct ExtremeLoop {
  NodeRef value, position;
};
ExtremeLoop extreme(Graph& g, NodeRef x, int64_t axis, bool largest, bool running);
/// y[i] = a[i] * y[i-1] + b[i] along axis, y[-1] = 0.
NodeRef linear_recurrence(Graph& g, NodeRef a, NodeRef b, int64_t axis);

}  // namespace weft::build
