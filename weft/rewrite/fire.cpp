#include "weft/rewrite/fire.h"

#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "weft/base/bits.h"
#include "weft/base/error.h"
#include "weft/graph/index_algebra.h"

namespace weft {
namespace {

/// An integer, or nothing: overflow, no bound, not an integer. Nothing spreads through arithmetic.
/// (Not std::optional: an array of these must cost nothing to make.)
class Known {
 public:
  Known() = default;                                     // {} is nothing
  Known(int64_t value) : value_(value), known_(true) {}  // NOLINT
  explicit operator bool() const { return known_; }
  int64_t operator*() const { return value_; }

 private:
  int64_t value_;
  bool known_;
};

Known constant_of(NodeRef n) {
  if (n->op != Op::Const) return {};
  if (n->dtype == DType::U64 && n->int_arg(0) < 0) return {};
  if (!is_float(n->dtype)) return n->vmin;
  const double v = const_value(n).as_double();
  if (!(std::fabs(v) <= 0x1p53) || v != std::trunc(v)) return {};
  return static_cast<int64_t>(v);
}

Known bound_of(NodeRef n, bool upper) {
  if (is_float(n->dtype)) return {};
  const int64_t v = upper ? n->vmax : n->vmin;
  // Saturated bounds of 64-bit values and of index prove nothing.
  if (v == INT64_MIN || v == INT64_MAX) return {};
  return v;
}

/// Every value of `from` is a value of `to`.
bool embeds(DType from, DType to) {
  if (from == to) return true;
  if (from == DType::Index || to == DType::Index || to == DType::Bool) return false;
  if (from == DType::Bool) return to != DType::Void;
  if (is_float(from)) {
    return is_float(to) && float_holds(to, from);
  }
  if (is_float(to)) {
    // Widest magnitude 2^(bits of value); signed minimum is a power of two, so it fits as well.
    const int value_bits = bits(from) - (is_signed_int(from) ? 1 : 0);
    return value_bits <= float_digits(to) && static_cast<double>(int_max(from)) <= float_max(to);
  }
  return int_min(to) <= int_min(from) && int_max(from) <= int_max(to);
}

struct Operand {
  NodeRef node;
  Known value;
};

Known arithmetic(Op op, Known a, Known b) {
  if (op == Op::And || op == Op::Or) {
    const bool conjunction = op == Op::And;
    if (a && b) return conjunction ? (*a & *b) : (*a | *b);
    const Known one = a ? a : b;
    if (one && *one == (conjunction ? 0 : 1)) return one;
    return {};
  }
  if (!a || !b) return {};
  int64_t r = 0;
  switch (op) {
    case Op::Add: return __builtin_add_overflow(*a, *b, &r) ? Known() : Known(r);
    case Op::Mul: return __builtin_mul_overflow(*a, *b, &r) ? Known() : Known(r);
    case Op::IDiv:
    case Op::Mod:
      if (*b == 0 || (*b == -1 && *a == INT64_MIN)) return {};
      return op == Op::IDiv ? floor_div(*a, *b) : floor_mod(*a, *b);
    case Op::Max: return std::max(*a, *b);
    case Op::Min: return std::min(*a, *b);
    case Op::Lt: return *a < *b;
    case Op::Le: return *a <= *b;
    case Op::Eq: return *a == *b;
    case Op::Ne: return *a != *b;
    case Op::Shl:
      if (*b < 0 || *b > 62 || __builtin_mul_overflow(*a, int64_t{1} << *b, &r)) return {};
      return r;
    case Op::Shr: return *b < 0 || *b > 63 ? Known() : Known(*a >> *b);
    default: return {};
  }
}

Known unary(Op op, Known a) {
  if (!a) return {};
  if (op == Op::Not) return *a == 0;
  if (op == Op::Neg && *a != INT64_MIN) return -*a;
  return {};
}

Known divides(const Operand& c, const Operand& a) {
  if (!c.value || *c.value == 0) return {};
  if (a.value) return floor_mod(*a.value, *c.value) == 0;
  if (!a.node || a.node->dtype != DType::Index) return {};
  return divisor_of(a.node) % *c.value == 0;
}

Known ask(const PatNode& f, std::span<const Operand> args, const ContextCalls& calls) {
  const Operand& a = args[0];
  const auto dtype = a.node ? a.node->dtype : DType::Index;
  switch (static_cast<PatFn>(f.op)) {
    case PatFn::VMin: return bound_of(a.node, false);
    case PatFn::VMax: return bound_of(a.node, true);
    case PatFn::Divides: return divides(a, args[1]);
    case PatFn::Gcd:
      if (!a.value || !args[1].value) return {};
      return std::gcd(*a.value, *args[1].value);
    case PatFn::Log2:
      if (!a.value || !is_power_of_two(*a.value)) return {};
      return floor_log2(static_cast<uint64_t>(*a.value));
    case PatFn::IsPow2: return a.value && is_power_of_two(*a.value);
    case PatFn::IsFloat: return is_float(dtype);
    case PatFn::IsInt: return is_int(dtype);
    case PatFn::IsSigned: return is_signed_int(dtype);
    case PatFn::IsBool: return is_bool(dtype);
    case PatFn::IsIndex: return is_index(dtype);
    case PatFn::Bits: return bits(dtype);
    case PatFn::Exact: return embeds(dtype, args[1].node->dtype);
    case PatFn::SameDType: return dtype == args[1].node->dtype;
    case PatFn::Native:
      return calls.native && calls.native(calls.context, static_cast<Op>(f.arg), dtype);
  }
  return {};
}

/// A value under construction: a node, or a literal that waits to learn its dtype.
struct Part {
  NodeRef node;
  Known value;
  double real;
  bool is_real;

  bool pending() const { return node == nullptr; }
};

class Builder {
 public:
  Builder(const Pat& rhs, const Match& m, const ContextCalls& calls)
      : rhs_(rhs), m_(m), calls_(calls) {}

  NodeRef build() {
    for (int i = 0; i < rhs_.size; ++i)
      if (!step(rhs_.node[i])) return nullptr;
    return settle(stack_[0], m_.root->dtype);
  }

 private:
  bool step(const PatNode& n) {
    switch (n.kind) {
      case PatKind::Any: return push({m_.slot[n.arg], {}, 0, false});
      case PatKind::Const: return push({m_.slot[n.arg], constant_of(m_.slot[n.arg]), 0, false});
      case PatKind::Int: return push(literal(rhs_.literal[n.arg]));
      case PatKind::Float:
        return push({nullptr, {}, std::bit_cast<double>(rhs_.literal[n.arg]), true});
      case PatKind::CastLike: {
        const NodeRef src[] = {pop().node};
        return push({built(Op::Cast, m_.slot[n.arg]->dtype, src), {}, 0, false});
      }
      case PatKind::Fn: return function(n);
      case PatKind::Op: return operation(n);
      default: return false;
    }
  }

  bool function(const PatNode& n) {
    std::array<Operand, 2> args{};
    for (int i = n.nsrc - 1; i >= 0; --i) {
      const Part p = pop();
      args[static_cast<size_t>(i)] = {p.node, p.value};
    }
    const Known v = ask(n, args, calls_);
    return v && push(literal(v));
  }

  bool operation(const PatNode& n) {
    const Op op = static_cast<Op>(n.op);
    std::array<Part, 3> parts;
    for (int i = n.nsrc - 1; i >= 0; --i) parts[static_cast<size_t>(i)] = pop();
    const std::span<const Part> used(parts.data(), n.nsrc);
    // Arithmetic of literals alone stays a literal.
    if (n.nsrc == 2 && used[0].pending() && used[1].pending() && used[0].value && used[1].value) {
      const Known v = arithmetic(op, used[0].value, used[1].value);
      return v && push(literal(v));
    }
    if (op == Op::Neg && used[0].pending() && used[0].value)
      return push(literal(unary(op, used[0].value)));
    return apply(op, n, used);
  }

  bool apply(Op op, const PatNode& n, std::span<const Part> parts) {
    const size_t first = op == Op::Where ? 1 : 0;
    DType dtype = m_.root->dtype;
    for (size_t i = parts.size(); i-- > first;)
      if (!parts[i].pending()) dtype = parts[i].node->dtype;
    std::array<NodeRef, 3> src{};
    for (size_t i = 0; i < parts.size(); ++i)
      src[i] = settle(parts[i], i < first ? DType::Bool : dtype);
    if (dtype == DType::Index && overflows(op, parts)) return false;
    return push({made(op, n, dtype, {src.data(), parts.size()}), {}, 0, false});
  }

  NodeRef built(Op op, DType dtype, std::span<const NodeRef> src) {
    if (calls_.make) return calls_.make(calls_.context, op, dtype, src);
    return m_.graph.make({op, dtype, src, {}, {}, src[0]->lanes});
  }

  NodeRef made(Op op, const PatNode& n, DType dtype, std::span<const NodeRef> src) {
    if (op == Op::Cast || op == Op::Bitcast) {
      const DType to = n.arg == Pat::kAnyArg ? m_.root->dtype : static_cast<DType>(n.arg - 1);
      return built(op, to, src);
    }
    if (calls_.make) return built(op, has_trait(op, kBoolResult) ? DType::Bool : dtype, src);
    if (src.size() == 1) return m_.graph.alu(op, {src[0]});
    if (src.size() == 2) return m_.graph.alu(op, {src[0], src[1]});
    return m_.graph.alu(op, {src[0], src[1], src[2]});
  }

  /// Index constants are mathematical integers: a wrapped one would be wrong.
  static bool overflows(Op op, std::span<const Part> parts) {
    for (const Part& p : parts)
      if (!p.value) return false;
    if (parts.size() == 1) return op == Op::Neg && *parts[0].value == INT64_MIN;
    const bool arithmetic_op = op == Op::Add || op == Op::Mul;
    return arithmetic_op && !arithmetic(op, parts[0].value, parts[1].value);
  }

  NodeRef settle(const Part& p, DType dtype) {
    if (!p.pending()) return p.node;
    const Value v = p.is_real ? Value::of(dtype, p.real) : Value::of(dtype, *p.value);
    NodeRef n = m_.graph.constant(v);
    if (m_.root->lanes == 1) return n;
    const NodeRef src[] = {n};
    return m_.graph.make({Op::Splat, dtype, src, {}, {}, m_.root->lanes});
  }

  static Part literal(Known v) { return {nullptr, v, 0, false}; }
  bool push(Part p) {
    if (p.node && !p.value) p.value = constant_of(p.node);
    stack_[depth_++] = p;
    return true;
  }
  Part pop() { return stack_[--depth_]; }

  const Pat& rhs_;
  const Match& m_;
  const ContextCalls& calls_;
  std::array<Part, Pat::kMaxNodes> stack_;
  size_t depth_ = 0;
};

}  // namespace

bool condition_holds(const Pat& cond, const Match& m, const ContextCalls& calls) {
  if (cond.empty()) return true;
  std::array<Operand, Pat::kMaxNodes> stack;
  size_t depth = 0;
  for (int i = 0; i < cond.size; ++i) {
    const PatNode n = cond.node[i];
    Operand out{};
    depth -= n.kind == PatKind::Op || n.kind == PatKind::Fn ? n.nsrc : 0;
    const Operand* args = stack.data() + depth;
    switch (n.kind) {
      case PatKind::Any: out = {m.slot[n.arg], {}}; break;
      case PatKind::Const: out = {m.slot[n.arg], constant_of(m.slot[n.arg])}; break;
      case PatKind::Int: out.value = cond.literal[n.arg]; break;
      case PatKind::Fn: out.value = ask(n, {args, n.nsrc}, calls); break;
      case PatKind::Op:
        out.value = n.nsrc == 1 ? unary(static_cast<Op>(n.op), args[0].value)
                                : arithmetic(static_cast<Op>(n.op), args[0].value, args[1].value);
        break;
      default: return false;
    }
    stack[depth++] = out;
  }
  return stack[0].value && *stack[0].value != 0;
}

NodeRef build_replacement(const Pat& rhs, const Match& m, const ContextCalls& calls) {
  return Builder(rhs, m, calls).build();
}

NodeRef with_shape_of(Graph& g, NodeRef n, NodeRef like) {
  if (n->shape == like->shape) return n;
  if (n->rank() != 0)
    internal_error("rewrite", "a replacement has another shape than what it replaces");
  std::vector<NodeRef> src(1 + like->rank(), g.index(1));
  src[0] = n;
  src[0] = g.make({Op::Reshape, n->dtype, src});
  std::copy(like->shape->span().begin(), like->shape->span().end(), src.begin() + 1);
  return g.make({Op::Expand, n->dtype, src});
}

}  // namespace weft
