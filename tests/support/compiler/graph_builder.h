// GraphBuilder: tensor graphs in few words, for tests of the stages below tensor/.
#pragma once
#include <algorithm>
#include <vector>

#include "weft/graph/graph.h"

namespace weft::testing {

class GraphBuilder {
 public:
  using Ints = std::vector<int64_t>;

  Graph& graph() { return g_; }
  NodeRef param(int slot, const Ints& dims, DType dtype = DType::F32) {
    return g_.param(slot, dtype, nodes(dims));
  }
  NodeRef constant(double v, DType dtype = DType::F32) { return g_.constant(Value::of(dtype, v)); }
  NodeRef reshape(NodeRef x, const Ints& dims) { return with_dims(Op::Reshape, x, dims); }
  NodeRef expand(NodeRef x, const Ints& dims) { return with_dims(Op::Expand, x, dims); }
  /// x with new axes of size 1 at `axes`, expanded to `dims`.
  NodeRef broadcast(NodeRef x, const Ints& with_ones, const Ints& dims) {
    return expand(reshape(x, with_ones), dims);
  }
  NodeRef permute(NodeRef x, const Ints& axes) { return make(Op::Permute, x->dtype, {x}, axes); }
  NodeRef flip(NodeRef x, const Ints& axes) { return make(Op::Flip, x->dtype, {x}, axes); }
  NodeRef reduce(NodeRef x, Fold fold, Ints axes) {
    axes.insert(axes.begin(), static_cast<int64_t>(fold));
    return make(Op::Reduce, x->dtype, {x}, axes);
  }
  NodeRef scan(NodeRef x, Fold fold, int64_t axis) {
    return make(Op::Scan, x->dtype, {x}, {static_cast<int64_t>(fold), axis});
  }
  NodeRef window(NodeRef x, int64_t axis, int64_t size, int64_t stride = 1, int64_t dilation = 1) {
    return make(Op::Window, x->dtype, {x}, {axis, size, stride, dilation});
  }
  NodeRef unwindow(NodeRef x, int64_t n, int64_t axis, int64_t size, int64_t stride = 1,
                   int64_t dilation = 1) {
    return make(Op::Unwindow, x->dtype, {x, g_.index(n)}, {axis, size, stride, dilation});
  }
  NodeRef pad(NodeRef x, const Ints& before, const Ints& after, Ints interior = {}) {
    if (interior.empty()) interior.assign(x->rank(), 0);
    std::vector<NodeRef> src{x};
    for (int64_t v : before) src.push_back(g_.index(v));
    for (int64_t v : after) src.push_back(g_.index(v));
    return g_.make({Op::Pad, x->dtype, src, interior});
  }
  NodeRef shrink(NodeRef x, const Ints& begin, const Ints& size, Ints steps = {}) {
    if (steps.empty()) steps.assign(x->rank(), 1);
    std::vector<NodeRef> src{x};
    for (int64_t v : begin) src.push_back(g_.index(v));
    for (int64_t v : size) src.push_back(g_.index(v));
    return g_.make({Op::Shrink, x->dtype, src, steps});
  }
  NodeRef gather(NodeRef x, NodeRef index, int64_t axis) {
    return make(Op::Gather, x->dtype, {x, index}, {axis});
  }
  NodeRef scatter(NodeRef base, NodeRef index, NodeRef src, int64_t axis, Fold combine) {
    return make(Op::Scatter, base->dtype, {base, index, src},
                {axis, static_cast<int64_t>(combine), 0});
  }
  NodeRef assign(NodeRef old, NodeRef view, NodeRef value) {
    return make(Op::Assign, old->dtype, {old, view, value}, {});
  }
  NodeRef iota(const Ints& dims, int64_t axis, DType dtype = DType::I32) {
    const int64_t ints[] = {axis};
    return g_.make({Op::Iota, dtype, nodes(dims), ints});
  }
  NodeRef make(Op op, DType dtype, std::vector<NodeRef> src, const Ints& ints) {
    return g_.make({op, dtype, src, ints});
  }
  /// (..., m, k) @ (..., k, n), each of as many axes; the batch's are equal or 1.
  NodeRef matmul(NodeRef a, NodeRef b) {
    const size_t batch = a->rank() - 2;
    const auto dim = [](NodeRef x, size_t axis) { return x->dim(axis)->vmin; };
    const int64_t m = dim(a, batch), k = dim(a, batch + 1), n = dim(b, batch + 1);
    Ints left, right, all;
    for (size_t i = 0; i < batch; ++i) {
      left.push_back(dim(a, i));
      right.push_back(dim(b, i));
      all.push_back(std::max(left[i], right[i]));
    }
    left.insert(left.end(), {m, k, 1});
    right.insert(right.end(), {1, k, n});
    all.insert(all.end(), {m, k, n});
    return reduce(g_.mul(broadcast(a, left, all), broadcast(b, right, all)), Fold::Add,
                  {static_cast<int64_t>(batch) + 1});
  }

 private:
  std::vector<NodeRef> nodes(const Ints& dims) {
    std::vector<NodeRef> out;
    for (int64_t d : dims) out.push_back(g_.index(d));
    return out;
  }
  NodeRef with_dims(Op op, NodeRef x, const Ints& dims) {
    std::vector<NodeRef> src{x};
    for (NodeRef d : nodes(dims)) src.push_back(d);
    return g_.make({op, x->dtype, src});
  }

  Graph g_;
};

}  // namespace weft::testing
