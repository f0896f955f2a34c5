// Sizes, axes and broadcasting: arithmetic on shapes, and the errors about them.
#include <algorithm>

#include "weft/base/checked.h"
#include "weft/base/context.h"
#include "weft/run/active_capture.h"
#include "weft/tensor/access.h"

namespace weft {

// ---- Dim

Dim::Dim(NodeRef n) {
  if (n->op == Op::Const)
    value_ = n->vmin;
  else
    node_ = RootedNode(n);
}

int64_t Dim::value() const {
  if (node_)
    fail("shape.symbolic",
         "the size {} is symbolic: its number is not part of the graph; use dims(), or bind and "
         "shrink to a number first",
         text());
  return value_;
}

NodeRef Dim::node() const {
  return node_ ? node_.get() : tensor_graph(Context::current()).index(value_);
}

namespace {

using IndexBuilder = NodeRef (*)(Graph&, NodeRef, NodeRef);

Dim combine(const Dim& a, const Dim& b, IndexBuilder op) {
  Graph& g = tensor_graph(Context::current());
  const Graph::Building building(g);
  return Dim(op(g, a.node(), b.node()));
}

/// `n` as text: names and numbers with + - * // %, innermost in brackets.
std::string index_text(NodeRef n) {
  switch (n->op) {
    case Op::Const: return std::to_string(n->vmin);
    case Op::Variable: return std::string(n->text());
    case Op::Bind: return fmt::format("{}={}", n->src(0)->text(), n->src(1)->vmin);
    default: break;
  }
  // Index expressions of shapes are shallow; past this depth nobody would read on.
  std::string text = std::string(info(n->op).mnemonic) + "(";
  for (size_t i = 0; i < n->nsrc; ++i) {
    NodeRef s = n->src(i);
    const bool leaf = s->nsrc == 0 || s->op == Op::Bind;
    text += i ? ", " : "";
    text += leaf ? index_text(s) : std::string(info(s->op).mnemonic) + "(...)";
  }
  return text + ")";
}

}  // namespace

std::string Dim::text() const { return node_ ? index_text(node_.get()) : std::to_string(value_); }

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return add_or_fail("shape", a.value(), b.value());
  return combine(a, b, [](Graph& g, NodeRef x, NodeRef y) { return g.add(x, y); });
}
Dim operator-(const Dim& a, const Dim& b) {
  return combine(a, b, [](Graph& g, NodeRef x, NodeRef y) { return g.sub(x, y); });
}
Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_static() && b.is_static()) return mul_or_fail("shape", a.value(), b.value());
  return combine(a, b, [](Graph& g, NodeRef x, NodeRef y) { return g.mul(x, y); });
}
Dim operator/(const Dim& a, const Dim& b) {
  return combine(a, b, [](Graph& g, NodeRef x, NodeRef y) { return g.idiv(x, y); });
}
Dim operator%(const Dim& a, const Dim& b) {
  return combine(a, b, [](Graph& g, NodeRef x, NodeRef y) { return g.mod(x, y); });
}
Dim max(const Dim& a, const Dim& b) {
  return combine(a, b, [](Graph& g, NodeRef x, NodeRef y) { return g.alu(Op::Max, {x, y}); });
}
Dim min(const Dim& a, const Dim& b) {
  return combine(a, b, [](Graph& g, NodeRef x, NodeRef y) { return g.alu(Op::Min, {x, y}); });
}

// ---- Variable

Variable::Variable(std::string_view name, int64_t min, int64_t max, int64_t multiple, CallSite at) {
  const CallSiteScope site(at);
  if (name.empty()) fail("variable.name", "a Variable needs a name");
  if (max < min)
    fail("variable.range", "the range of {} is [{}, {}]: it must not be empty", name, min, max);
  if (multiple < 1)
    fail("variable.multiple", "{} cannot be a multiple of {}: give at least 1", name, multiple);
  Graph& g = tensor_graph(Context::current());
  const Graph::Building building(g);
  node_ = RootedNode(g.variable(name, min, max, multiple));
}

Dim Variable::bind(int64_t value, CallSite at) const {
  const CallSiteScope site(at);
  NodeRef n = node_.get();
  if (value < n->int_arg(0) || value > n->int_arg(1) || value % n->int_arg(2) != 0)
    fail("variable.bind", "{} cannot be {}: it was made for multiples of {} in [{}, {}]", n->text(),
         value, n->int_arg(2), n->int_arg(0), n->int_arg(1));
  Graph& g = tensor_graph(Context::current());
  const Graph::Building building(g);
  if (CaptureListener* capture = active_capture(Context::current())) capture->bound(n, value);
  return Dim(g.make(Op::Bind, DType::Index, {n, g.index(value)}));
}

// ---- Dims

Dim Dims::product() const {
  Dim total = 1;
  for (const Dim& d : dims_) total = total * d;
  return total;
}

bool Dims::is_static() const {
  return std::all_of(dims_.begin(), dims_.end(), [](const Dim& d) { return d.is_static(); });
}

std::string Dims::text() const {
  std::string text = "(";
  for (size_t i = 0; i < dims_.size(); ++i) text += (i ? ", " : "") + dims_[i].text();
  return text + (dims_.size() == 1 ? ",)" : ")");
}

// ---- helpers of the room

void require_sizes(const char* tag, const Dims& shape) {
  for (const Dim& d : shape)
    if (d.min() < 0)
      fail(tag, "size {} in shape {} is negative: sizes are at least 0", d.text(), shape.text());
}

Dims dims_of(NodeRef n) {
  Dims dims;
  for (NodeRef d : n->shape->span()) dims.push_back(Dim(d));
  return dims;
}

build::Extents nodes_of(const Dims& dims) {
  build::Extents nodes;
  for (const Dim& d : dims) nodes.push_back(d.node());
  return nodes;
}

std::string shape_text(NodeRef n) { return dims_of(n).text(); }

int64_t checked_axis(const char* tag, int64_t axis, size_t rank, const std::string& shape) {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n) {
    if (n == 0) fail_index(tag, "axis {} is out of range: a tensor of shape () has no axes", axis);
    fail_index(tag, "axis {} is out of range for shape {}: it must be from {} to {}", axis, shape,
               -n, n - 1);
  }
  return axis < 0 ? axis + n : axis;
}

int64_t checked_axis(const char* tag, int64_t axis, const Tensor& x) {
  const size_t rank = x.ndim();
  const auto n = static_cast<int64_t>(rank);
  if (axis >= -n && axis < n) return axis < 0 ? axis + n : axis;
  return checked_axis(tag, axis, rank, x.dims().text());
}

int64_t sized_axis(const char* tag, int64_t axis, const Tensor& x) {
  const int64_t a = checked_axis(tag, axis, x);
  if (const Dim& n = x.dim(a); !n.is_static())
    fail(tag,
         "the size of axis {} of shape {} may change, and this needs a number: shrink_to() one, or "
         "pad_to() the largest, {}, with a value that you can tell",
         a, x.dims().text(), n.max());
  return a;
}

build::AxisList checked_axes(const char* tag, const Axes& axes, const Tensor& x) {
  build::AxisList list;
  if (axes.empty())
    for (size_t i = 0; i < x.ndim(); ++i) list.push_back(static_cast<int64_t>(i));
  for (const int64_t a : axes) list.push_back(checked_axis(tag, a, x));
  std::sort(list.begin(), list.end());
  const auto twice = std::adjacent_find(list.begin(), list.end());
  if (twice != list.end())
    fail(tag, "axis {} is listed twice for shape {}: list each axis once", *twice, x.dims().text());
  return list;
}

build::Extents broadcast(const char* tag, std::span<const NodeRef> operands) {
  NodeRef widest = operands[0];
  for (NodeRef n : operands) widest = n->rank() > widest->rank() ? n : widest;
  build::Extents out = build::extents(widest);
  for (NodeRef n : operands) {
    if (n->shape == widest->shape) continue;
    for (size_t i = 0; i < n->rank(); ++i) {
      NodeRef& d = out[out.size() - 1 - i];
      NodeRef other = n->dim(n->rank() - 1 - i);
      if (d == other || is_int_const(other, 1)) continue;
      if (!is_int_const(d, 1))
        fail(
            tag,
            "shapes {} and {} do not broadcast: axis {} is {} and {}; sizes must be equal or 1, so "
            "reshape or expand one of them",
            shape_text(n == operands[0] ? n : operands[0]),
            shape_text(n == operands[0] ? widest : n), -static_cast<int64_t>(i) - 1,
            Dim(n == operands[0] ? other : d).text(), Dim(n == operands[0] ? d : other).text());
      d = other;
    }
  }
  return out;
}

Ints per_axis(const char* tag, const char* what, const Ints& given, size_t count) {
  if (given.size() == count) return given;
  if (given.size() != 1)
    fail(tag, "{} has {} numbers for {} spatial axes: give one, or one per axis", what,
         given.size(), count);
  Ints all;
  for (size_t i = 0; i < count; ++i) all.push_back(given[0]);
  return all;
}

void require_float(const char* tag, const Tensor& x) {
  if (!is_float(x.dtype()))
    fail_type(tag, "needs floating-point numbers: got {} of shape {}; cast it first",
              name(x.dtype()), x.dims().text());
}

DType sum_dtype(DType d) {
  if (is_narrow_float(d)) return DType::F32;
  if (is_bool(d) || (is_signed_int(d) && bits(d) < 32)) return DType::I32;
  if (is_unsigned(d) && bits(d) < 32) return DType::U32;
  return d;
}

}  // namespace weft
