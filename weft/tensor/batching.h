// Batching: a graph of tensors with one more axis in front of everything that depends on a batch.
#pragma once

#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"

namespace weft {

/// Rewrites nodes so that what depends on the keys of `batches` (placeholders) is computed for
/// every slice of their images, which have one more axis of `size` in front.
class Batching {
 public:
  Batching(Graph& g, NodeRef size, NodeMap<NodeRef> batches)
      : g_(g), size_(size), images_(std::move(batches)) {}

  /// `root` for every slice: (size, dims of root...). What does not depend on the batch is
  /// repeated.
  NodeRef batched(NodeRef root);

 private:
  NodeRef image(NodeRef n);
  NodeRef movement(NodeRef n);
  NodeRef loop(NodeRef n);
  NodeRef assign(NodeRef n);
  NodeRef get(NodeRef n);
  NodeRef function(NodeRef n);
  NodeRef repeat(NodeRef n);
  NodeRef custom(NodeRef n);
  void batch_upstream(NodeRef function);
  NodeRef with_batch_axis(NodeRef param);
  NodeRef swapped(NodeRef x);
  NodeRef at_every_element(NodeRef init, NodeRef like);
  NodeMap<NodeRef> first_states(std::span<const NodeRef> inits, int64_t old_name, int64_t name,
                                size_t elem, size_t elems);
  NodeRef renamed(NodeRef body, int64_t old_name, int64_t name, const NodeMap<NodeRef>& begun);
  NodeRef in_front(NodeRef n, std::span<const NodeRef> src);
  /// (size, dims...) of a source, repeated where it does not depend on the batch.
  NodeRef whole(NodeRef source);
  /// An elementwise operand of a result of this shape.
  NodeRef operand(NodeRef source, NodeRef result);
  bool depends(NodeRef n) const { return images_.contains(n); }

  Graph& g_;
  NodeRef size_;
  NodeMap<NodeRef> images_;
};

}  // namespace weft
