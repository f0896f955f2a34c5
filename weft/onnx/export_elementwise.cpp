// Elementwise ops as ONNX operators.
#include <cmath>
#include <numbers>

#include "weft/onnx/exporter.h"
#include "weft/tensor/build.h"

namespace weft::onnx {

Emission unary(Exporter& e, const std::string& op, NodeRef x, std::vector<Attribute> attributes) {
  return {{x}, [&e, op, attributes](const Names& in) { return e.out.node(op, in, attributes); }};
}

std::optional<double> repeated_number(NodeRef n) {
  NodeRef bare = build::without_broadcast(n);
  if (bare->op != Op::Const) return std::nullopt;
  return const_value(bare).as_double();
}

namespace {

/// ONNX's operators broadcast by themselves: n without an Expand and leading sizes of 1.
NodeRef broadcast_source(NodeRef n) {
  NodeRef bare = build::without_broadcast(n);
  if (bare->rank() == 0) return bare;
  n = unexpanded(n);
  if (n->op != Op::Reshape) return n;
  NodeRef x = n->src(0);
  const uint32_t more = n->rank() - x->rank();
  if (n->rank() <= x->rank()) return n;
  for (uint32_t i = 0; i < n->rank(); ++i)
    if (i < more ? !is_int_const(n->dim(i), 1) : n->dim(i) != x->dim(i - more)) return n;
  return x;
}

/// Whether operands of these shapes give n's shape by broadcasting.
bool gives_shape(NodeRef n, std::span<const NodeRef> operands) {
  for (uint32_t axis = 0; axis < n->rank(); ++axis) {
    const uint32_t from_last = n->rank() - axis;
    bool found = is_int_const(n->dim(axis), 1);
    bool ranked = false;
    for (NodeRef x : operands) {
      if (x->rank() < from_last) continue;
      ranked = true;
      found |= x->dim(x->rank() - from_last) == n->dim(axis);
    }
    if (!found || !ranked) return false;
  }
  return true;
}

std::vector<NodeRef> broadcast_sources(NodeRef n, std::vector<NodeRef> operands) {
  std::vector<NodeRef> bare;
  for (NodeRef x : operands) bare.push_back(broadcast_source(x));
  if (!gives_shape(n, bare)) bare[0] = operands[0];
  return bare;
}

Emission binary(Exporter& e, const std::string& op, NodeRef n, NodeRef a, NodeRef b) {
  return {broadcast_sources(n, {a, b}), [&e, op](const Names& in) { return e.out.node(op, in); }};
}

struct Row {
  Op op;
  const char* name;     // where the first source is no bool
  const char* of_bool;  // where it is; null: none
};
constexpr Row kRows[] = {
    {Op::Neg, "Neg", nullptr},        {Op::Sqrt, "Sqrt", nullptr},
    {Op::Sin, "Sin", nullptr},        {Op::Cos, "Cos", nullptr},
    {Op::Tan, "Tan", nullptr},        {Op::Rint, "Round", nullptr},
    {Op::Add, "Add", "Or"},           {Op::Mul, "Mul", "And"},
    {Op::Div, "Div", nullptr},        {Op::Max, "Max", "Or"},
    {Op::Min, "Min", "And"},          {Op::Lt, "Less", nullptr},
    {Op::Le, "LessOrEqual", nullptr}, {Op::Eq, "Equal", "Equal"},
    {Op::And, "BitwiseAnd", "And"},   {Op::Or, "BitwiseOr", "Or"},
    {Op::Xor, "BitwiseXor", "Xor"},   {Op::Not, "BitwiseNot", "Not"},
    {Op::Where, "Where", "Where"},
};

MaybeEmission direct(Exporter& e, NodeRef n) {
  for (const Row& row : kRows) {
    if (row.op != n->op) continue;
    const char* name = is_bool(n->src(0)->dtype) ? row.of_bool : row.name;
    if (!name) return std::nullopt;
    std::vector<NodeRef> sources(n->src().begin(), n->src().end());
    if (sources.size() == 1) return unary(e, name, sources[0]);
    return Emission{broadcast_sources(n, sources),
                    [&e, name](const Names& in) { return e.out.node(name, in); }};
  }
  return std::nullopt;
}

/// A sum with -y is a difference.
MaybeEmission difference(Exporter& e, NodeRef n) {
  if (n->op == Op::Neg && is_unsigned(n->dtype))
    return Emission{{n->src(0)}, [&e, d = n->dtype](const Names& in) {
                      return e.out.node("Sub", {e.out.scalar(d, 0), in[0]});
                    }};
  if (n->op != Op::Add) return std::nullopt;
  for (size_t i = 2; i-- > 0;) {
    NodeRef y = n->src(i);
    if (y->op != Op::Neg) y = unexpanded(y);
    if (y->op == Op::Neg) return binary(e, "Sub", n, n->src(1 - i), y->src(0));
  }
  return std::nullopt;
}

/// Comparisons and choices that ONNX has no other form of for bools.
MaybeEmission comparison(Exporter& e, NodeRef n) {
  if (n->op == Op::Ne)
    return Emission{broadcast_sources(n, {n->src(0), n->src(1)}),
                    [&e](const Names& in) { return e.out.node("Not", {e.out.node("Equal", in)}); }};
  if ((n->op == Op::Lt || n->op == Op::Le) && is_bool(n->src(0)->dtype))
    return Emission{broadcast_sources(n, {n->src(0), n->src(1)}),
                    [&e, op = n->op](const Names& in) {
                      return e.out.node(op == Op::Lt ? "Less" : "LessOrEqual",
                                        {e.cast(in[0], DType::I32), e.cast(in[1], DType::I32)});
                    }};
  return std::nullopt;
}

/// Whether the bits of a float are those of a negative integer: its sign, of -0 too.
MaybeEmission sign_bit(Exporter& e, NodeRef n) {
  if (n->op != Op::Lt || repeated_number(n->src(1)) != 0.0) return std::nullopt;
  NodeRef word = n->src(0);
  if (word->op != Op::Bitcast || !is_signed_int(word->dtype) || !is_float(word->src(0)->dtype))
    return std::nullopt;
  return Emission{{word->src(0)}, [&e, d = word->src(0)->dtype](const Names& in) {
                    const std::string zero = e.out.scalar(d, 0);
                    const std::string inverse = e.out.node("Reciprocal", in);
                    return e.out.node("Or", {e.out.node("Less", {in[0], zero}),
                                             e.out.node("Less", {inverse, zero})});
                  }};
}

bool is_near(std::optional<double> x, double y) {
  return x && std::abs(*x - y) <= 1e-6 * std::abs(y);
}

/// 2^x and log2 x by e^x and ln x, which take the factor that they are used with.
MaybeEmission exponential(Exporter& e, NodeRef n) {
  using std::numbers::ln2, std::numbers::log2e;
  if (n->op == Op::Mul)
    for (size_t i = 0; i < 2; ++i)
      if (n->src(i)->op == Op::Log2 && is_near(repeated_number(n->src(1 - i)), ln2))
        return unary(e, "Log", n->src(i)->src(0));
  if (n->op == Op::Log2)
    return Emission{{n->src(0)}, [&e, d = n->dtype](const Names& in) {
                      return e.out.node("Mul", {e.out.node("Log", in), e.out.scalar(d, log2e)});
                    }};
  if (n->op != Op::Exp2) return std::nullopt;
  NodeRef x = n->src(0);
  if (x->op == Op::Mul)
    for (size_t i = 0; i < 2; ++i)
      if (is_near(repeated_number(x->src(1 - i)), log2e)) return unary(e, "Exp", x->src(i));
  return Emission{{x}, [&e, d = n->dtype](const Names& in) {
                    return e.out.node("Exp", {e.out.node("Mul", {in[0], e.out.scalar(d, ln2)})});
                  }};
}

MaybeEmission truncation(Exporter& e, NodeRef n) {
  if (n->op != Op::Trunc) return std::nullopt;
  return Emission{{n->src(0)}, [&e](const Names& in) {
                    const std::string whole = e.out.node("Floor", {e.out.node("Abs", in)});
                    return e.out.node("Mul", {e.out.node("Sign", in), whole});
                  }};
}

MaybeEmission conversion(Exporter& e, NodeRef n) {
  if (n->op != Op::Cast) return std::nullopt;
  if (n->src(0)->dtype == DType::Index) {
    const NodeRef size = n->src(0);
    if (size->rank() != 0) return std::nullopt;
    return Emission{{}, [&e, size, d = n->dtype](const Names&) {
                      const std::string one =
                          e.out.node("Squeeze", {e.sizes({&size, 1}), e.out.integers({0})});
                      return d == DType::I64 ? one : e.cast(one, d);
                    }};
  }
  if (element_type_of(n->dtype) == ElementType::Undefined) return std::nullopt;
  return Emission{{n->src(0)}, [&e, d = n->dtype](const Names& in) { return e.cast(in[0], d); }};
}

/// Whether no divisor is 0; then there is nothing to choose.
bool never_zero(NodeRef y) { return y->vmin > 0 || y->vmax < 0; }

/// f(x, y) with 1 for divisors of 0, where the result is 0.
template <class F>
Emission guarded(Exporter& e, NodeRef n, const F& f) {
  return {broadcast_sources(n, {n->src(0), n->src(1)}),
          [&e, f, d = n->dtype, safe = never_zero(n->src(1))](const Names& in) {
            if (safe) return f(in[0], in[1]);
            const std::string zero = e.out.scalar(d, 0);
            const std::string none = e.out.node("Equal", {in[1], zero});
            const std::string y = e.out.node("Where", {none, e.out.scalar(d, 1), in[1]});
            return e.out.node("Where", {none, zero, f(in[0], y)});
          }};
}

/// Floor division from one that rounds towards zero: less by 1 where there is a rest of the other
/// sign.
std::string floored(Exporter& e, DType d, const std::string& x, const std::string& y) {
  const std::string quotient = e.out.node("Div", {x, y}), zero = e.out.scalar(d, 0);
  const std::string rest = e.out.node("Sub", {x, e.out.node("Mul", {quotient, y})});
  const std::string signs =
      e.out.node("Xor", {e.out.node("Less", {rest, zero}), e.out.node("Less", {y, zero})});
  const std::string some = e.out.node("Not", {e.out.node("Equal", {rest, zero})});
  const std::string less = e.cast(e.out.node("And", {signs, some}), d);
  return e.out.node("Sub", {quotient, less});
}

MaybeEmission integer_division(Exporter& e, NodeRef n) {
  if (n->op == Op::Rem)
    return Emission{broadcast_sources(n, {n->src(0), n->src(1)}), [&e](const Names& in) {
                      return e.out.node("Mod", in, {attribute("fmod", int64_t{1})});
                    }};
  if (n->op == Op::Mod)
    return guarded(e, n, [&e](const std::string& x, const std::string& y) {
      return e.out.node("Mod", {x, y});
    });
  if (n->op != Op::IDiv) return std::nullopt;
  const bool plain = n->src(0)->vmin >= 0 && n->src(1)->vmin >= 0;
  return guarded(e, n, [&e, plain, d = n->dtype](const std::string& x, const std::string& y) {
    return plain ? e.out.node("Div", {x, y}) : floored(e, d, x, y);
  });
}

/// By a number: ONNX shifts unsigned integers only, so signed ones are multiplied and divided.
MaybeEmission shift(Exporter& e, NodeRef n) {
  if (n->op != Op::Shl && n->op != Op::Shr) return std::nullopt;
  const auto by = repeated_number(n->src(1));
  if (!by || *by < 0 || *by >= bits(n->dtype)) return std::nullopt;
  const bool left = n->op == Op::Shl;
  if (is_unsigned(n->dtype))
    return Emission{{n->src(0)}, [&e, left, by = *by, d = n->dtype](const Names& in) {
                      return e.out.node("BitShift", {in[0], e.out.scalar(d, by)},
                                        {attribute("direction", left ? "LEFT" : "RIGHT")});
                    }};
  if (*by > bits(n->dtype) - 2) return std::nullopt;
  return Emission{{n->src(0)}, [&e, left, by = *by, d = n->dtype](const Names& in) {
                    const std::string factor =
                        e.out.scalar(d, std::ldexp(1.0, static_cast<int>(by)));
                    return left ? e.out.node("Mul", {in[0], factor}) : floored(e, d, in[0], factor);
                  }};
}

MaybeEmission multiply_add(Exporter& e, NodeRef n) {
  if (n->op != Op::MulAcc && n->op != Op::MulAdd) return std::nullopt;
  return Emission{broadcast_sources(n, {n->src(0), n->src(1), n->src(2)}), [&e](const Names& in) {
                    return e.out.node("Add", {e.out.node("Mul", {in[0], in[1]}), in[2]});
                  }};
}

constexpr ExportRule kRules[] = {sign_bit,   exponential,      difference, comparison,   truncation,
                                 conversion, integer_division, shift,      multiply_add, direct};

}  // namespace

std::span<const ExportRule> export_elementwise() { return kRules; }

}  // namespace weft::onnx
