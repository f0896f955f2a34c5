#include "weft/onnx/image_order.h"

#include <algorithm>

#include "weft/tensor/movement.h"

namespace weft::onnx {

namespace {

constexpr int kFarthest = 64;  // nodes

bool puts_last_axis_first(NodeRef n) {
  const auto order = n->ints();
  const auto rank = static_cast<int64_t>(n->rank());
  for (int64_t i = 0; i < rank; ++i)
    if (order[static_cast<size_t>(i)] != (i == 0 ? 0 : i == 1 ? rank - 1 : i - 1)) return false;
  return true;
}

/// The source that has the elements of an image: not numbers, nor scales along its axes.
NodeRef main_source(NodeRef n) {
  for (NodeRef s : n->src())
    if (s->op != Op::Const && s->op != Op::Expand && s->rank() > 2) return s;
  return nullptr;
}

bool keeps_order(Op op) {
  return is_alu(op) || op == Op::Reduce || op == Op::Window || op == Op::Pad || op == Op::Shrink ||
         op == Op::Cat || op == Op::Detach;
}

}  // namespace

Tensor channels_first(const Tensor& x) { return movedim(x, -1, 1); }
Tensor channels_last(const Tensor& x) { return movedim(x, 1, -1); }

bool has_channels_last(const Tensor& x) {
  NodeRef n = x.ndim() > 2 ? x.node() : nullptr;
  for (int i = 0; n && i < kFarthest; ++i) {
    if (n->op == Op::Permute) return n->rank() == x.ndim() && puts_last_axis_first(n);
    n = keeps_order(n->op) ? main_source(n) : nullptr;
  }
  return false;
}

Tensor in_image_order(const Tensor& x) {
  return has_channels_last(x) ? channels_first(channels_last(x).contiguous()) : x;
}

}  // namespace weft::onnx
