// Sums of products as MatMul and Gemm.
#include <algorithm>

#include "weft/onnx/exporter.h"

namespace weft::onnx {

namespace {

constexpr int kNone = -1;

/// A factor of a sum of products: a tensor, and the axis of the product that each of its axes is;
/// kNone for those of size 1.
struct Factor {
  NodeRef x = nullptr;
  std::vector<int> labels;

  bool has(int label) const { return std::ranges::find(labels, label) != labels.end(); }
};

std::vector<int> axes_without_ones(NodeRef n) {
  std::vector<int> axes;
  for (uint32_t i = 0; i < n->rank(); ++i)
    if (!is_int_const(n->dim(i), 1)) axes.push_back(static_cast<int>(i));
  return axes;
}

/// Whether a Reshape only adds and drops axes of size 1.
bool keeps_sizes(NodeRef reshape) {
  NodeRef x = reshape->src(0);
  const std::vector<int> before = axes_without_ones(x), after = axes_without_ones(reshape);
  return std::ranges::equal(before, after, [&](int a, int b) {
    return x->dim(static_cast<size_t>(a)) == reshape->dim(static_cast<size_t>(b));
  });
}

/// Looks through Expand, Reshape and Permute to what is in memory as the user has it.
Factor factor_of(Exporter& e, NodeRef n) {
  Factor f{unexpanded(e.meaning(n)), {}};
  for (uint32_t i = 0; i < f.x->rank(); ++i)
    f.labels.push_back(is_int_const(f.x->dim(i), 1) ? kNone : static_cast<int>(i));
  while (true) {
    if (f.x->op == Op::Reshape && keeps_sizes(f.x)) {
      NodeRef x = f.x->src(0);
      std::vector<int> labels(x->rank(), kNone);
      size_t next = 0;
      std::erase(f.labels, kNone);
      for (const int axis : axes_without_ones(x))
        labels[static_cast<size_t>(axis)] = f.labels[next++];
      f = {x, std::move(labels)};
    } else if (f.x->op == Op::Permute) {
      std::vector<int> labels(f.labels.size());
      for (size_t i = 0; i < labels.size(); ++i)
        labels[static_cast<size_t>(f.x->int_arg(i))] = f.labels[i];
      f = {f.x->src(0), std::move(labels)};
    } else {
      return f;
    }
  }
}

/// The axes of a product, by what they are for a product of matrices.
struct Product {
  NodeRef product, reduce;
  Factor a, b;
  std::vector<int> lead, inner;     // of both or of one; summed
  int row = kNone, column = kNone;  // of a alone, of b alone
};

std::optional<Product> product_of(Exporter& e, NodeRef reduce) {
  if (reduce->op != Op::Reduce || fold_of(reduce) != Fold::Add) return std::nullopt;
  NodeRef mul = e.meaning(reduce->src(0));
  if (mul->op != Op::Mul || is_bool(mul->dtype)) return std::nullopt;
  Product p{mul, reduce, factor_of(e, mul->src(0)), factor_of(e, mul->src(1)), {}, {}};
  std::vector<int> rows, columns;
  for (const int axis : axes_without_ones(mul)) {
    const auto axes = reduce_axes(reduce);
    const bool summed = std::ranges::find(axes, axis) != axes.end();
    const bool in_a = p.a.has(axis), in_b = p.b.has(axis);
    if (summed && !(in_a && in_b)) return std::nullopt;
    (summed ? p.inner : p.lead).push_back(axis);
    if (!summed && in_a != in_b) (in_a ? rows : columns).push_back(axis);
  }
  if (p.inner.empty() || (rows.empty() && columns.empty())) return std::nullopt;
  if (!rows.empty()) p.row = rows.back();
  if (!columns.empty()) p.column = columns.back();
  if (p.row > p.column && p.column != kNone) std::swap(p.a, p.b), std::swap(p.row, p.column);
  if (p.column == kNone) std::swap(p.a, p.b), std::swap(p.row, p.column);
  std::erase(p.lead, p.row), std::erase(p.lead, p.column);
  return p;
}

/// Axes of a factor as MatMul has them: leading ones, then `last`; kNone where it lacks one that
/// others need.
std::vector<int> wanted_axes(const Product& p, const Factor& f, std::vector<int> last) {
  std::vector<int> all;
  for (const int axis : p.lead)
    if (f.has(axis) || !all.empty()) all.push_back(f.has(axis) ? axis : kNone);
  all.insert(all.end(), last.begin(), last.end());
  return all;
}

/// The factor with its axes in this order, the inner ones (`merged` of them at `at`) as one.
std::string arranged(Exporter& e, const Product& p, const Factor& f, std::string x,
                     const std::vector<int>& wanted, size_t inner_at) {
  std::vector<int> order;
  for (size_t i = 0; i < f.labels.size(); ++i)
    if (f.labels[i] == kNone) order.push_back(static_cast<int>(i));
  for (const int label : wanted) {
    const auto at = std::ranges::find(f.labels, label);
    if (label != kNone) order.push_back(static_cast<int>(at - f.labels.begin()));
  }
  std::vector<NodeRef> have, want;
  for (const int axis : order) have.push_back(f.x->dim(static_cast<size_t>(axis)));
  for (const int label : wanted)
    want.push_back(label == kNone ? e.g.index(1) : p.product->dim(static_cast<size_t>(label)));
  if (p.inner.size() > 1) {
    NodeRef size = e.g.index(1);
    for (size_t i = 0; i < p.inner.size(); ++i) size = e.g.mul(size, want[inner_at + i]);
    want.erase(want.begin() + static_cast<int64_t>(inner_at) + 1,
               want.begin() + static_cast<int64_t>(inner_at + p.inner.size()));
    want[inner_at] = size;
  }
  if (!std::ranges::is_sorted(order))
    x = e.out.node("Transpose", {x},
                   {attribute("perm", std::vector<int64_t>(order.begin(), order.end()))});
  return have == want ? x : e.reshaped(x, want);
}

/// MatMul's result as the sum has it.
std::string finished(Exporter& e, const Product& p, std::string y) {
  std::vector<int> have = p.lead, kept;
  if (p.row != kNone) have.push_back(p.row);
  if (p.column != kNone) have.push_back(p.column);
  kept = have;
  std::ranges::sort(kept);
  std::vector<NodeRef> shape;
  for (const int axis : p.lead) shape.push_back(p.product->dim(static_cast<size_t>(axis)));
  for (const int axis : {p.row, p.column})
    shape.push_back(axis == kNone ? e.g.index(1) : p.product->dim(static_cast<size_t>(axis)));
  if (have != kept) {
    std::vector<int64_t> order;
    std::vector<NodeRef> moved;
    std::vector<int> all = p.lead;
    all.insert(all.end(), {p.row, p.column});
    if (p.row == kNone) order.push_back(static_cast<int64_t>(p.lead.size()));
    for (const int axis : kept) order.push_back(std::ranges::find(all, axis) - all.begin());
    for (const int64_t axis : order) moved.push_back(shape[static_cast<size_t>(axis)]);
    y = e.out.node("Transpose", {y}, {attribute("perm", order)});
    shape = moved;
  }
  const auto wanted = p.reduce->shape->span();
  return std::ranges::equal(shape, wanted) ? y : e.reshaped(y, wanted);
}

MaybeEmission matmul(Exporter& e, NodeRef n) {
  const auto p = product_of(e, n);
  if (!p) return std::nullopt;
  return Emission{
      {p->a.x, p->b.x}, [&e, p = *p](const Names& in) {
        std::vector<int> left, right = p.inner;
        if (p.row != kNone) left.push_back(p.row);
        // The row's place is needed where axes stand before it.
        if (p.row == kNone && !wanted_axes(p, p.a, {}).empty()) left.push_back(kNone);
        if (p.row == kNone && left.empty()) left.push_back(kNone);
        left.insert(left.end(), p.inner.begin(), p.inner.end());
        right.push_back(p.column);
        left = wanted_axes(p, p.a, left), right = wanted_axes(p, p.b, right);
        const std::string a = arranged(e, p, p.a, in[0], left, left.size() - p.inner.size());
        const std::string b = arranged(e, p, p.b, in[1], right, right.size() - p.inner.size() - 1);
        return finished(e, p, e.out.node("MatMul", {a, b}));
      }};
}

/// Whether a factor of a plain product of matrices is stored transposed; nothing: it is no matrix.
std::optional<bool> is_transposed(const Factor& f, int row, int column) {
  if (f.labels == std::vector<int>{row, column}) return false;
  if (f.labels == std::vector<int>{column, row}) return true;
  return std::nullopt;
}

/// A product of two matrices and a row added to each of its rows.
MaybeEmission gemm(Exporter& e, NodeRef n) {
  if (n->op != Op::Add || n->rank() != 2 || !is_float(n->dtype)) return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    NodeRef reduce = e.meaning(n->src(i)), bias = unexpanded(n->src(1 - i));
    const auto p = product_of(e, reduce);
    if (!p || !e.used_once(reduce) || !p->lead.empty() || p->inner.size() != 1) continue;
    const auto left = is_transposed(p->a, p->row, p->inner[0]);
    const auto right = is_transposed(p->b, p->inner[0], p->column);
    const bool whole = std::ranges::equal(reduce->shape->span(), n->shape->span());
    if (p->row == kNone || p->row > p->column || !left || !right || !whole || n->src(1 - i) == bias)
      continue;
    if (bias->op == Op::Reshape && bias->src(0)->rank() == 1 && keeps_sizes(bias))
      bias = bias->src(0);
    return Emission{{p->a.x, p->b.x, bias}, [&e, a = *left, b = *right](const Names& in) {
                      std::vector<Attribute> attributes;
                      if (a) attributes.push_back(attribute("transA", int64_t{1}));
                      if (b) attributes.push_back(attribute("transB", int64_t{1}));
                      return e.out.node("Gemm", in, std::move(attributes));
                    }};
  }
  return std::nullopt;
}

constexpr ExportRule kRules[] = {gemm, matmul};

}  // namespace

std::span<const ExportRule> export_products() { return kRules; }

}  // namespace weft::onnx
