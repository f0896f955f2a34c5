// Transposed convolutions. What Tensor::conv_transpose2d makes of one is long: what it may have
// been given is read off the sums, and it is asked again; equal graphs are one node.
#include <algorithm>

#include "weft/onnx/exporter.h"

namespace weft::onnx {

namespace {

struct Transposed {
  NodeRef x = nullptr, weight = nullptr;
  int64_t groups = 1;
  std::vector<int64_t> stride, before, after;  // what is cut off at both ends; after < 0: added
};

bool is_cut(NodeRef n) { return n->op == Op::Pad || n->op == Op::Shrink; }

NodeRef without_casts(Exporter& e, NodeRef n) {
  for (n = e.meaning(n); n->op == Op::Cast; n = e.meaning(n->src(0))) {}
  return n;
}

/// The sums (n, g, out, sizes..., strides...) behind the result and its permutation; or null.
NodeRef sums_of(Exporter& e, NodeRef whole) {
  if (whole->op != Op::Reshape) return nullptr;
  NodeRef sums = without_casts(e, whole->src(0));
  if (sums->op == Op::Permute) sums = e.meaning(sums->src(0));  // of one axis it is none
  const size_t spatial = whole->rank() - 2;
  const bool fits = sums->op == Op::Reduce && fold_of(sums) == Fold::Add && whole->rank() > 2 &&
                    sums->rank() == 3 + 2 * spatial;
  return fits && is_static(whole) ? sums : nullptr;
}

/// The product (n, g, out, in, sizes..., kernel...) that is summed; or null.
NodeRef product_of(Exporter& e, NodeRef sums, size_t spatial) {
  NodeRef n = without_casts(e, sums->src(0));
  while (n->op == Op::Reshape || n->op == Op::Pad) n = without_casts(e, n->src(0));
  return n->op == Op::Mul && n->rank() == 4 + 2 * spatial ? n : nullptr;
}

/// Below a factor, what has this shape.
std::vector<NodeRef> of_shape(Exporter& e, NodeRef factor, std::span<const int64_t> shape) {
  std::vector<NodeRef> found;
  for (NodeRef n = factor;; n = n->src(0)) {
    n = e.meaning(n);
    const auto same = [](NodeRef d, int64_t size) { return is_int_const(d, size); };
    if (std::ranges::equal(n->shape->span(), shape, same)) found.push_back(n);
    if (!is_movement(n->op) && n->op != Op::Cast) return found;
  }
}

/// Whether that is what makes n.
bool makes(Exporter& e, const Transposed& t, NodeRef n) {
  ConvOptions o{.groups = t.groups};
  Ints stride, padding, more;
  for (const int64_t s : t.stride) stride.push_back(s);
  for (size_t i = t.stride.size(); i-- > 0;) {
    padding.push_back(t.before[i]);
    padding.push_back(std::max<int64_t>(0, t.after[i]));
  }
  for (const int64_t cut : t.after) more.push_back(std::max<int64_t>(0, -cut));
  o.stride = stride;
  o.padding = padding;
  o.output_padding = more;
  return e.meaning(e.tensor(t.x).conv_transpose2d(e.tensor(t.weight), {}, o).node()) == n;
}

/// What is cut off of `whole` before and behind n, as far as that can be seen.
bool find_ends(NodeRef n, NodeRef whole, Transposed& t) {
  t.before.assign(t.stride.size(), 0), t.after.assign(t.stride.size(), 0);
  for (; n != whole; n = n->src(0))
    for (size_t i = 0; i < t.stride.size(); ++i) {
      const size_t axis = 2 + i;
      NodeRef begin = n->src(1 + axis);
      if (!is_const(begin) || !is_static(n) || !is_static(n->src(0))) return false;
      const int64_t less = n->src(0)->dim(axis)->vmin - n->dim(axis)->vmin;
      const int64_t before = n->op == Op::Pad ? -begin->vmin : begin->vmin;
      t.before[i] += before;
      t.after[i] += less - before;
    }
  return true;
}

std::optional<Transposed> transposed_of(Exporter& e, NodeRef n) {
  NodeRef whole = n;
  for (int i = 0; i < 2 && is_cut(whole); ++i) whole = whole->src(0);
  NodeRef sums = sums_of(e, whole);
  NodeRef product = sums ? product_of(e, sums, whole->rank() - 2) : nullptr;
  if (!product || !is_static(product)) return std::nullopt;
  const size_t spatial = whole->rank() - 2;
  const auto size = [&](size_t axis) { return product->dim(axis)->vmin; };
  Transposed t;
  t.groups = size(1);
  std::vector<int64_t> of_x{size(0), t.groups * size(3)}, of_weight{t.groups * size(3), size(2)};
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t stride = sums->dim(3 + spatial + i)->vmin, kernel = size(4 + spatial + i);
    if (stride < 1) return std::nullopt;
    const int64_t taps = (kernel + stride - 1) / stride;
    t.stride.push_back(stride);
    of_x.push_back(size(4 + i) - taps + 1);
    of_weight.push_back(kernel);
  }
  if (!find_ends(n, whole, t)) return std::nullopt;
  for (size_t i = 0; i < spatial; ++i)  // of whole kernels
    t.after[i] -=
        (of_weight[2 + i] + t.stride[i] - 1) / t.stride[i] * t.stride[i] - of_weight[2 + i];
  for (size_t side = 0; side < 2; ++side)
    for (NodeRef x : of_shape(e, product->src(side), of_x))
      for (NodeRef weight : of_shape(e, product->src(1 - side), of_weight)) {
        t.x = x, t.weight = weight;
        if (makes(e, t, n)) return t;
      }
  return std::nullopt;
}

Emission written(Exporter& e, const Transposed& t, NodeRef bias) {
  Emission made{{t.x, t.weight}, {}};
  if (bias) made.needs.push_back(bias);
  std::vector<int64_t> pads, more;
  for (const int64_t cut : t.before) pads.push_back(cut);
  for (const int64_t cut : t.after) pads.push_back(std::max<int64_t>(0, cut));
  for (const int64_t cut : t.after) more.push_back(std::max<int64_t>(0, -cut));
  const std::vector<Attribute> attributes{attribute("strides", t.stride), attribute("pads", pads),
                                          attribute("output_padding", more),
                                          attribute("group", t.groups)};
  made.write = [&e, attributes](const Names& in) {
    return e.out.node("ConvTranspose", in, attributes);
  };
  return made;
}

MaybeEmission transposed_convolution(Exporter& e, NodeRef n) {
  if (const auto t = transposed_of(e, n)) return written(e, *t, nullptr);
  if (n->op != Op::Add) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    NodeRef y = e.meaning(n->src(i)), bias = vector_of_channels(n, n->src(1 - i));
    const auto t = bias && e.used_once(y) ? transposed_of(e, y) : std::nullopt;
    if (t) return written(e, *t, bias);
  }
  return std::nullopt;
}

constexpr ExportRule kRules[] = {transposed_convolution};

}  // namespace

std::span<const ExportRule> export_transposed() { return kRules; }

}  // namespace weft::onnx
