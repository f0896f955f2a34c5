// Graph::make and the builders: nodes in normal form.
#include <algorithm>
#include <array>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/graph/fold.h"
#include "weft/graph/graph.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/infer.h"

namespace weft {
namespace {

bool all_const(std::span<const NodeRef> src) {
  return std::all_of(src.begin(), src.end(), [](NodeRef n) { return n->op == Op::Const; });
}

/// Tensors of indices (iota) are not normalised: a constant would lose their shape.
bool all_scalar(std::span<const NodeRef> src) {
  return std::all_of(src.begin(), src.end(), [](NodeRef n) { return n->rank() == 0; });
}

/// Folds elementwise ops of constants; null where the op is not folded.
NodeRef folded(Graph& g, const NodeSpec& s) {
  std::array<Value, 3> values;
  for (size_t i = 0; i < s.src.size(); ++i) values[i] = const_value(s.src[i]);
  const auto v = fold_constants(s.op, s.dtype, {values.data(), s.src.size()});
  return v ? g.constant(*v) : nullptr;
}

NodeRef simplified_bool(const NodeSpec& s) {
  NodeRef a = s.src[0];
  if (s.op == Op::Not) return a->op == Op::Not ? a->src(0) : nullptr;
  if (s.src.size() != 2 || s.src[1]->dtype != DType::Bool) return nullptr;
  NodeRef b = s.src[1];
  const bool conjunction = s.op == Op::And || s.op == Op::Mul;
  if (!conjunction && s.op != Op::Or && s.op != Op::Add) return nullptr;
  if (a == b) return a;
  for (auto [x, other] : {std::pair{a, b}, std::pair{b, a}}) {
    if (is_int_const(x, conjunction ? 1 : 0)) return other->rank() >= x->rank() ? other : nullptr;
    if (is_int_const(x, conjunction ? 0 : 1) && other->rank() == 0) return x;
  }
  return nullptr;
}

/// A conjunction (or disjunction) of scalars is a left-deep chain of distinct terms in hash order,
/// so equal masks are equal nodes. Terms of one hash (buffers) stay as they were written.
NodeRef normal_chain(Graph& g, const NodeSpec& s) {
  constexpr size_t kMaxTerms = 32;
  if (s.lanes != 1 || (s.op != Op::And && s.op != Op::Or)) return nullptr;
  const auto by_hash = [](NodeRef a, NodeRef b) { return a->hash < b->hash; };
  std::vector<NodeRef> terms, stack{s.src[1], s.src[0]};
  while (!stack.empty()) {
    NodeRef n = stack.back();
    stack.pop_back();
    if (n->rank() != 0 || terms.size() > kMaxTerms) return nullptr;
    if (n->op == s.op) {
      stack.push_back(n->src(1));
      stack.push_back(n->src(0));
    } else if (std::find(terms.begin(), terms.end(), n) == terms.end()) {
      terms.insert(std::upper_bound(terms.begin(), terms.end(), n, by_hash), n);
    }
  }
  NodeRef chain = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    const NodeRef src[] = {chain, terms[i]};
    chain = g.intern({s.op, DType::Bool, src});
  }
  return chain;
}

NodeRef simplified_where(const NodeSpec& s) {
  NodeRef c = s.src[0], a = s.src[1], b = s.src[2];
  if (a == b && c->rank() <= a->rank()) return a;
  if (c->op == Op::Const) {
    NodeRef chosen = c->vmin ? a : b;
    if (chosen->rank() >= std::max(a->rank(), b->rank())) return chosen;
  }
  return nullptr;
}

/// Comparisons and integers whose bounds leave one value.
NodeRef decided(Graph& g, const NodeSpec& s) {
  if (is_float(s.dtype)) return nullptr;
  for (NodeRef x : s.src)
    if (x->rank() != 0 || is_float(x->dtype)) return nullptr;
  const Bounds b = alu_bounds(s);
  if (b.min != b.max || s.dtype == DType::U64) return nullptr;
  return g.constant(Value::of(s.dtype, b.min));
}

bool in_order(NodeRef a, NodeRef b) {
  // Constants go right; otherwise by structural hash, so that the order never depends on history.
  if (a->op == Op::Const || b->op == Op::Const) return b->op == Op::Const;
  return a->hash <= b->hash;
}

DType alu_dtype(Op op, std::span<const NodeRef> src) {
  if (has_trait(op, kBoolResult)) return DType::Bool;
  if (op == Op::Where) return src[1]->dtype;
  if (has_trait(op, kWords)) return src[2]->dtype;
  if (op == Op::ToIndex) return DType::Index;
  return src[0]->dtype;
}

void check_operands(const NodeSpec& s) {
  if (s.op == Op::Cast || s.op == Op::Bitcast || s.op == Op::ToIndex || has_trait(s.op, kWords))
    return;
  const size_t first = s.op == Op::Where ? 1 : 0;
  for (size_t i = first + 1; i < s.src.size(); ++i)
    if (s.src[i]->dtype != s.src[first]->dtype)
      internal_error("graph", "{}: operands are {} and {}", info(s.op).mnemonic,
                     name(s.src[first]->dtype), name(s.src[i]->dtype));
}

NodeRef make_alu(Graph& g, const NodeSpec& s) {
  check_operands(s);
  if (all_const(s.src))
    if (NodeRef n = folded(g, s)) return n;
  if (s.op == Op::Where)
    if (NodeRef n = simplified_where(s)) return n;
  if (s.op == Op::Cast && s.src[0]->dtype == s.dtype) return s.src[0];
  if (s.src[0]->dtype == DType::Index && s.lanes == 1 && all_scalar(s.src))
    if (NodeRef n = normalise_index(g, s))
      return n->vmin == n->vmax ? g.constant(Value::of(n->dtype, n->vmin)) : n;
  if (s.src[0]->dtype == DType::Bool)
    if (NodeRef n = simplified_bool(s)) return n;
  if (NodeRef n = decided(g, s)) return n;
  if (s.dtype == DType::Bool && s.src[0]->dtype == DType::Bool)
    if (NodeRef n = normal_chain(g, s)) return n;
  if (has_trait(s.op, kCommutative) && s.src[0]->dtype != DType::Index &&
      !in_order(s.src[0], s.src[1])) {
    const NodeRef swapped[] = {s.src[1], s.src[0]};
    return g.intern({s.op, s.dtype, swapped, s.ints, s.text, s.lanes});
  }
  return g.intern(s);
}

}  // namespace

NodeRef Graph::make(const NodeSpec& s) { return is_alu(s.op) ? make_alu(*this, s) : intern(s); }

NodeRef Graph::make(Op op, DType dtype, std::initializer_list<NodeRef> src,
                    std::initializer_list<int64_t> ints) {
  return make({op, dtype, {src.begin(), src.size()}, {ints.begin(), ints.size()}});
}

NodeRef Graph::with_sources(NodeRef n, std::span<const NodeRef> src) {
  if (std::equal(src.begin(), src.end(), n->src().begin(), n->src().end())) return n;
  return make({n->op, n->dtype, src, n->ints(), n->text(), n->lanes});
}

NodeRef Graph::alu(Op op, std::initializer_list<NodeRef> src) {
  const std::span<const NodeRef> s(src.begin(), src.size());
  uint16_t lanes = 1;
  for (NodeRef x : s) lanes = std::max(lanes, x->lanes);
  return make({op, alu_dtype(op, s), s, {}, {}, lanes});
}

NodeRef Graph::sub(NodeRef a, NodeRef b) { return add(a, alu(Op::Neg, {b})); }

NodeRef Graph::cast(NodeRef x, DType to) {
  const NodeRef src[] = {x};
  return make({Op::Cast, to, src, {}, {}, x->lanes});
}

NodeRef Graph::constant(Value v) {
  const int64_t bits_arg[] = {static_cast<int64_t>(v.raw_bits())};
  return intern({Op::Const, v.dtype(), {}, bits_arg});
}
NodeRef Graph::index(int64_t v) { return constant(Value::index(v)); }
NodeRef Graph::boolean(bool v) { return constant(Value::boolean(v)); }

NodeRef Graph::variable(std::string_view name, int64_t min, int64_t max, int64_t multiple) {
  const int64_t ints[] = {min, max, multiple};
  return intern({Op::Variable, DType::Index, {}, ints, name});
}

NodeRef Graph::range(NodeRef size, int64_t id, Binding binding, size_t axis) {
  const NodeRef src[] = {size};
  const int64_t ints[] = {id, static_cast<int64_t>(binding), static_cast<int64_t>(axis)};
  return intern({Op::Range, DType::Index, src, std::span(ints, axis ? 3 : 2)});
}
NodeRef Graph::range(int64_t size, int64_t id, Binding binding) {
  return range(index(size), id, binding);
}

NodeRef Graph::param(int64_t slot, DType dtype, std::span<const NodeRef> dims, DeviceId device) {
  const int64_t ints[] = {slot, device};
  return intern({Op::Param, dtype, dims, std::span(ints, device ? 2 : 1)});
}

NodeRef Graph::buffer(int64_t id, DType dtype, std::span<const NodeRef> dims, DeviceId device) {
  const int64_t ints[] = {id, device};
  return intern({Op::Buffer, dtype, dims, ints});
}

NodeRef rebase(Graph& g, NodeRef chain, NodeRef from, NodeRef to) {
  SmallVector<NodeRef, 16> moves, src;
  for (; chain != from; chain = chain->src(0)) moves.push_back(chain);
  for (size_t i = moves.size(); i-- > 0;) {
    src.assign(moves[i]->src());
    src[0] = to;
    to = g.with_sources(moves[i], src);
  }
  return to;
}

}  // namespace weft
