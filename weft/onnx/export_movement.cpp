// Movement ops as ONNX operators.
#include <algorithm>
#include <numeric>

#include "weft/onnx/exporter.h"

namespace weft::onnx {

namespace {

std::vector<int64_t> counted(size_t n) {
  std::vector<int64_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}
std::vector<int64_t> ints_of(NodeRef n) { return {n->ints().begin(), n->ints().end()}; }

MaybeEmission shape(Exporter& e, NodeRef n) {
  if (n->op == Op::Reshape)
    return Emission{{n->src(0)},
                    [&e, n](const Names& in) { return e.reshaped(in[0], n->shape->span()); }};
  if (n->op == Op::Expand)
    return Emission{{n->src(0)}, [&e, n](const Names& in) {
                      return e.out.node("Expand", {in[0], e.sizes(n->shape->span())});
                    }};
  if (n->op == Op::Permute)
    return unary(e, "Transpose", n->src(0), {attribute("perm", ints_of(n))});
  return std::nullopt;
}

MaybeEmission padding(Exporter& e, NodeRef n) {
  if (n->op != Op::Pad) return std::nullopt;
  if (std::ranges::any_of(n->ints(), [](int64_t i) { return i != 0; })) return std::nullopt;
  return Emission{{n->src(0)}, [&e, n](const Names& in) {
                    return e.out.node("Pad", {in[0], e.sizes(n->src().subspan(1))});
                  }};
}

/// where(pad(true), pad(x), c): a border of c.
MaybeEmission border(Exporter& e, NodeRef n) {
  if (n->op != Op::Where) return std::nullopt;
  NodeRef inside = n->src(0), padded = n->src(1);
  const auto value = repeated_number(n->src(2));
  if (!value || inside->op != Op::Pad || padded->op != Op::Pad) return std::nullopt;
  if (repeated_number(inside->src(0)) != 1.0 || inside->nints != padded->nints) return std::nullopt;
  if (!std::ranges::equal(inside->src().subspan(1), padded->src().subspan(1)) ||
      !std::ranges::equal(inside->ints(), padded->ints()))
    return std::nullopt;
  const MaybeEmission plain = padding(e, padded);
  if (!plain) return std::nullopt;
  return Emission{{padded->src(0)}, [&e, padded, d = n->dtype, v = *value](const Names& in) {
                    return e.out.node(
                        "Pad", {in[0], e.sizes(padded->src().subspan(1)), e.out.scalar(d, v)});
                  }};
}

/// Zeros between elements: each becomes the first of a row, of which the last one is cut off.
MaybeEmission interior(Exporter& e, NodeRef n) {
  if (n->op != Op::Pad || !is_static(n->src(0))) return std::nullopt;
  return Emission{{n->src(0)}, [&e, n](const Names& in) {
                    std::string x = in[0];
                    std::vector<int64_t> dims, begin, pads(2 * n->rank());
                    for (NodeRef d : n->src(0)->shape->span()) dims.push_back(d->vmin);
                    for (size_t a = 0; a < n->rank(); ++a) {
                      const int64_t between = n->int_arg(a);
                      if (between == 0) continue;
                      std::vector<int64_t> rows = dims;
                      rows.insert(rows.begin() + static_cast<int64_t>(a) + 1, 1);
                      std::vector<int64_t> more(2 * rows.size());
                      more[rows.size() + a + 1] = between;
                      x = e.out.node("Reshape", {x, e.out.integers(rows)});
                      x = e.out.node("Pad", {x, e.out.integers(more)});
                      dims[a] *= between + 1;
                      x = e.out.node("Reshape", {x, e.out.integers(dims)});
                      pads[n->rank() + a] = -between;  // behind the last element, in the end
                    }
                    x = e.out.node("Pad", {x, e.out.integers(pads)});
                    return e.out.node("Pad", {x, e.sizes(n->src().subspan(1))});
                  }};
}

/// Only the axes that are cut.
MaybeEmission cut(Exporter& e, NodeRef n) {
  if (n->op != Op::Shrink) return std::nullopt;
  return Emission{{n->src(0)}, [&e, n](const Names& in) {
                    const size_t rank = n->rank();
                    std::vector<NodeRef> begins, ends;
                    std::vector<int64_t> axes, steps;
                    for (size_t a = 0; a < rank; ++a) {
                      NodeRef begin = n->src(1 + a), size = n->src(1 + rank + a);
                      const int64_t step = n->int_arg(a);
                      if (is_int_const(begin, 0) && size == n->src(0)->dim(a)) continue;
                      begins.push_back(begin);
                      // The last one that is taken, and one more.
                      ends.push_back(e.g.add(
                          begin, e.g.add(e.g.mul(e.g.add(size, e.g.index(-1)), e.g.index(step)),
                                         e.g.index(1))));
                      if (is_int_const(size, 0)) ends.back() = begin;
                      axes.push_back(static_cast<int64_t>(a));
                      steps.push_back(step);
                    }
                    return e.out.node("Slice", {in[0], e.sizes(begins), e.sizes(ends),
                                                e.out.integers(axes), e.out.integers(steps)});
                  }};
}

MaybeEmission reversal(Exporter& e, NodeRef n) {
  if (n->op != Op::Flip) return std::nullopt;
  return Emission{{n->src(0)}, [&e, axes = ints_of(n)](const Names& in) {
                    const std::vector<int64_t> last(axes.size(), -1), end(axes.size(), INT64_MIN);
                    return e.out.node("Slice", {in[0], e.out.integers(last), e.out.integers(end),
                                                e.out.integers(axes), e.out.integers(last)});
                  }};
}

MaybeEmission concatenation(Exporter& e, NodeRef n) {
  if (n->op != Op::Cat) return std::nullopt;
  return Emission{{n->src().begin(), n->src().end()}, [&e, axis = n->int_arg(0)](const Names& in) {
                    return e.out.node("Concat", in, {attribute("axis", axis)});
                  }};
}

/// Positions of all windows' elements, of which the inner axis goes last.
MaybeEmission windows(Exporter& e, NodeRef n) {
  if (n->op != Op::Window) return std::nullopt;
  const int64_t axis = n->int_arg(0), size = n->int_arg(1), stride = n->int_arg(2),
                dilation = n->int_arg(3);
  NodeRef count = n->dim(static_cast<size_t>(axis));
  if (!is_const(count) || count->vmin * size > int64_t{1} << 24) return std::nullopt;
  return Emission{{n->src(0)}, [&e, n, axis, size, stride, dilation, count](const Names& in) {
                    std::vector<int64_t> places;
                    for (int64_t o = 0; o < count->vmin; ++o)
                      for (int64_t k = 0; k < size; ++k)
                        places.push_back(o * stride + k * dilation);
                    const std::string flat = e.out.integers(places);
                    const std::string shaped =
                        e.out.node("Reshape", {flat, e.out.integers({count->vmin, size})});
                    const std::string taken =
                        e.out.node("Gather", {in[0], shaped}, {attribute("axis", axis)});
                    std::vector<int64_t> order = counted(n->rank());
                    order.erase(order.begin() + axis + 1);
                    order.push_back(axis + 1);
                    return e.out.node("Transpose", {taken}, {attribute("perm", order)});
                  }};
}

MaybeEmission positions(Exporter& e, NodeRef n) {
  if (n->op != Op::Iota) return std::nullopt;
  return Emission{{}, [&e, n](const Names&) {
                    const auto axis = static_cast<size_t>(n->int_arg(0));
                    NodeRef size = n->dim(axis);
                    const std::string many =
                        e.out.node("Squeeze", {e.sizes({&size, 1}), e.out.integers({0})});
                    std::string x = e.out.node(
                        "Range", {e.out.scalar(DType::I64, 0), many, e.out.scalar(DType::I64, 1)});
                    if (n->dtype != DType::I64) x = e.cast(x, n->dtype);
                    if (n->rank() == 1) return x;
                    std::vector<int64_t> behind(n->rank() - axis, 1);
                    behind[0] = -1;
                    x = e.out.node("Reshape", {x, e.out.integers(behind)});
                    return e.out.node("Expand", {x, e.sizes(n->shape->span())});
                  }};
}

constexpr ExportRule kRules[] = {border,   shape,         padding, interior, cut,
                                 reversal, concatenation, windows, positions};

}  // namespace

std::span<const ExportRule> export_movements() { return kRules; }

}  // namespace weft::onnx
