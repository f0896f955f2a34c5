// Convolutions and pools: folds over sliding windows.
#include <algorithm>

#include "weft/onnx/exporter.h"

namespace weft::onnx {

NodeRef vector_of_channels(NodeRef whole, NodeRef repeated) {
  repeated = unexpanded(repeated);
  if (repeated->op != Op::Reshape || repeated->src(0)->rank() != 1) return nullptr;
  if (repeated->rank() != whole->rank()) return nullptr;
  for (uint32_t a = 0; a < whole->rank(); ++a)
    if (a == 1 ? repeated->dim(a) != whole->dim(a) : !is_int_const(repeated->dim(a), 1))
      return nullptr;
  return repeated->src(0);
}

namespace {

/// Sliding windows of the last axes of (n, c, ...), whose elements are as many axes behind them.
struct Windows {
  NodeRef x = nullptr;  // with a border of `pads`
  std::vector<int64_t> kernel, strides, dilations, pads;
};

/// A border of the axes from 2 on becomes the windows' own.
void take_border(Windows& w) {
  const auto spatial = static_cast<uint32_t>(w.kernel.size());
  w.pads.assign(2 * spatial, 0);
  NodeRef n = w.x;
  if (n->op != Op::Pad || n->rank() != spatial + 2) return;
  for (uint32_t a = 0; a < n->rank(); ++a) {
    NodeRef before = n->src(1 + a), after = n->src(1 + n->rank() + a);
    if (n->int_arg(a) != 0 || !is_const(before) || !is_const(after)) return;
    if (a < 2 && (before->vmin != 0 || after->vmin != 0)) return;
  }
  for (uint32_t i = 0; i < spatial; ++i) {
    w.pads[i] = n->src(3 + i)->vmin;
    w.pads[spatial + i] = n->src(3 + n->rank() + i)->vmin;
  }
  w.x = n->src(0);
}

std::optional<Windows> sliding(NodeRef n) {
  Windows w;
  for (; n->op == Op::Window; n = n->src(0)) {
    w.kernel.insert(w.kernel.begin(), n->int_arg(1));
    w.strides.insert(w.strides.begin(), n->int_arg(2));
    w.dilations.insert(w.dilations.begin(), n->int_arg(3));
  }
  if (w.kernel.empty() || n->rank() != w.kernel.size() + 2) return std::nullopt;
  w.x = n;
  return w;
}

/// The axes of nested windows are 2, 3, ... from the inside out.
bool in_order(NodeRef n, size_t spatial) {
  for (size_t i = spatial; i-- > 0; n = n->src(0))
    if (n->int_arg(0) != static_cast<int64_t>(2 + i)) return false;
  return true;
}

/// Tiles without gaps: every pooled axis split in two, of which the inner ones go last.
std::optional<Windows> tiles(NodeRef n) {
  if (n->op != Op::Permute || n->src(0)->op != Op::Reshape) return std::nullopt;
  NodeRef split = n->src(0), x = split->src(0);
  if (x->rank() < 3 || split->rank() != 2 * x->rank() - 2) return std::nullopt;
  const size_t spatial = x->rank() - 2;
  Windows w;
  std::vector<int64_t> order{0, 1};
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(2 + 2 * i));
  for (size_t i = 0; i < spatial; ++i) order.push_back(static_cast<int64_t>(3 + 2 * i));
  if (!std::ranges::equal(n->ints(), order)) return std::nullopt;
  for (size_t a = 0; a < 2; ++a)
    if (split->dim(a) != x->dim(a)) return std::nullopt;
  for (size_t i = 0; i < spatial; ++i) {
    NodeRef k = split->dim(3 + 2 * i), tiled = split->dim(2 + 2 * i), size = x->dim(2 + i);
    if (!is_const(k) || !is_const(tiled) || !is_const(size) || tiled->vmin * k->vmin != size->vmin)
      return std::nullopt;
    w.kernel.push_back(k->vmin);
  }
  w.strides = w.kernel;
  w.dilations.assign(spatial, 1);
  w.x = x;
  return w;
}

std::optional<Windows> windows_of(NodeRef n) {
  if (auto w = sliding(n)) return in_order(n, w->kernel.size()) ? w : std::nullopt;
  return tiles(n);
}

std::vector<Attribute> attributes_of(const Windows& w) {
  return {attribute("kernel_shape", w.kernel), attribute("strides", w.strides),
          attribute("dilations", w.dilations), attribute("pads", w.pads)};
}

// ---- convolutions

struct Convolution {
  Windows windows;
  NodeRef weight;
  std::vector<NodeRef> weight_shape;  // (out, in / groups, kernel...)
  int64_t groups;
};

bool has_shape(NodeRef n, std::span<const NodeRef> dims) {
  return std::ranges::equal(n->shape->span(), dims);
}

/// (n, g, 1, in, outputs..., kernel...) times (1, g, out / g, in, 1..., kernel...): the order of
/// Tensor::conv2d.
std::optional<Convolution> convolution_of(Exporter& e, NodeRef product, NodeRef input,
                                          NodeRef filter) {
  input = unexpanded(e.meaning(input)), filter = unexpanded(e.meaning(filter));
  NodeRef inner = input->op == Op::Reshape ? e.meaning(input->src(0)) : input;
  const auto w = windows_of(inner);
  if (!w || inner->op != Op::Window || product->rank() != 4 + 2 * w->kernel.size())
    return std::nullopt;
  const auto spatial = static_cast<uint32_t>(w->kernel.size());
  NodeRef one = e.g.index(1), groups = product->dim(1), out = product->dim(2), in = product->dim(3);
  std::vector<NodeRef> of_input{product->dim(0), groups, one, in}, of_filter{one, groups, out, in};
  Convolution c{*w, filter, {}, 0};
  if (!is_const(groups) || !is_const(out) || !is_const(in)) return std::nullopt;
  c.groups = groups->vmin;
  c.weight_shape = {e.g.index(c.groups * out->vmin), in};
  for (uint32_t i = 0; i < 2 * spatial; ++i) {
    NodeRef d = product->dim(4 + i);
    of_input.push_back(d);
    of_filter.push_back(i < spatial ? one : d);
    if (i >= spatial) c.weight_shape.push_back(d);
  }
  if (!has_shape(input, of_input) || !has_shape(filter, of_filter)) return std::nullopt;
  const std::vector<NodeRef> before{product->dim(0), e.g.index(c.groups * in->vmin)};
  if (!std::ranges::equal(inner->shape->span().first(2), before)) return std::nullopt;
  if (filter->op == Op::Reshape && has_shape(filter->src(0), c.weight_shape))
    c.weight = filter->src(0);
  take_border(c.windows);
  return c;
}

std::optional<Convolution> convolution_of(Exporter& e, NodeRef n) {
  if (n->op != Op::Reshape || n->src(0)->op != Op::Reduce) return std::nullopt;
  NodeRef reduce = n->src(0), product = e.meaning(reduce->src(0));
  if (fold_of(reduce) != Fold::Add || product->op != Op::Mul || product->rank() < 6)
    return std::nullopt;
  const int64_t spatial = (product->rank() - 4) / 2;
  std::vector<int64_t> axes{3};
  for (int64_t i = 0; i < spatial; ++i) axes.push_back(4 + spatial + i);
  if (!std::ranges::equal(reduce_axes(reduce), axes) || n->rank() != 2 + spatial)
    return std::nullopt;
  for (size_t i = 0; i < 2; ++i)
    if (auto c = convolution_of(e, product, product->src(i), product->src(1 - i))) return c;
  return std::nullopt;
}

Emission written(Exporter& e, const Convolution& c, NodeRef bias) {
  Emission made{{c.windows.x, c.weight}, {}};
  if (bias) made.needs.push_back(bias);
  made.write = [&e, c](const Names& in) {
    Names inputs = in;
    if (!has_shape(c.weight, c.weight_shape)) inputs[1] = e.reshaped(in[1], c.weight_shape);
    std::vector<Attribute> attributes = attributes_of(c.windows);
    attributes.push_back(attribute("group", c.groups));
    return e.out.node("Conv", std::move(inputs), std::move(attributes));
  };
  return made;
}

MaybeEmission convolution(Exporter& e, NodeRef n) {
  if (const auto c = convolution_of(e, n)) return written(e, *c, nullptr);
  if (n->op != Op::Add) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    NodeRef y = e.meaning(n->src(i)), bias = vector_of_channels(n, n->src(1 - i));
    const auto c = bias && e.used_once(y) ? convolution_of(e, y) : std::nullopt;
    if (c) return written(e, *c, bias);
  }
  return std::nullopt;
}

// ---- pools

std::optional<Windows> pooled(Exporter& e, NodeRef reduce, Fold fold) {
  if (reduce->op != Op::Reduce || fold_of(reduce) != fold) return std::nullopt;
  auto w = windows_of(e.meaning(reduce->src(0)));
  if (!w) return std::nullopt;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < w->kernel.size(); ++i)
    axes.push_back(static_cast<int64_t>(2 + w->kernel.size() + i));
  if (!std::ranges::equal(reduce_axes(reduce), axes)) return std::nullopt;
  return w;
}

/// The border must be lower than everything, and ONNX allows less of it than a window is wide.
MaybeEmission max_pool(Exporter& e, NodeRef n) {
  auto w = is_float(n->dtype) ? pooled(e, n, Fold::Max) : std::nullopt;
  if (!w) return std::nullopt;
  NodeRef x = w->x;
  w->pads.assign(2 * w->kernel.size(), 0);
  if (x->op == Op::Where && x->src(1)->op == Op::Pad && x->src(0)->op == Op::Pad) {
    const auto outside = repeated_number(x->src(2));
    Windows inner = *w, mask = *w;
    inner.x = x->src(1), mask.x = x->src(0);
    take_border(inner), take_border(mask);
    bool fits = outside && *outside < 0 && *outside - *outside != 0;  // -inf
    fits &= inner.pads == mask.pads && inner.x != x->src(1) && repeated_number(mask.x) == 1.0;
    for (size_t i = 0; i < inner.pads.size(); ++i)
      fits &= inner.pads[i] < w->kernel[i % w->kernel.size()];
    if (fits) w = inner;
  }
  return unary(e, "MaxPool", w->x, attributes_of(*w));
}

MaybeEmission average_pool(Exporter& e, NodeRef n) {
  if (n->op != Op::Div) return std::nullopt;
  auto w = is_float(n->dtype) ? pooled(e, n->src(0), Fold::Add) : std::nullopt;
  const auto divisor = repeated_number(n->src(1));
  if (!w || !divisor) return std::nullopt;
  double count = 1;
  for (const int64_t k : w->kernel) count *= static_cast<double>(k);
  if (count != *divisor) return std::nullopt;
  const Windows bare = *w;
  take_border(*w);
  for (size_t i = 0; i < w->pads.size(); ++i)
    if (w->pads[i] >= w->kernel[i % w->kernel.size()]) w = bare;
  w->pads.resize(2 * w->kernel.size());
  std::vector<Attribute> attributes = attributes_of(*w);
  attributes.push_back(attribute("count_include_pad", int64_t{1}));
  return unary(e, "AveragePool", w->x, std::move(attributes));
}

constexpr ExportRule kRules[] = {convolution, max_pool, average_pool};

}  // namespace

std::span<const ExportRule> export_networks() { return kRules; }

}  // namespace weft::onnx
