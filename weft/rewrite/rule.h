// Rule: a named rewrite as a constexpr value; rule() refuses at compile time what cannot work.
#pragma once
#include "weft/graph/graph.h"
#include "weft/rewrite/pat.h"

namespace weft {

/// Where a rule is true. Every x y z w and c of a match must have a dtype in the domain.
enum class Domain : uint8_t {
  Index = 1,  ///< mathematical integers
  Bits = 2,   ///< i8..u64: wrapping
  Bool = 4,
  Float = 8,  ///< IEEE, true bit for bit (any NaN equals any NaN)
  Real = 16,  ///< floats, true of real numbers only: changes rounding, off unless asked for
};
constexpr Domain operator|(Domain a, Domain b) {
  return static_cast<Domain>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b));
}
constexpr bool has(Domain set, Domain one) {
  return (static_cast<uint8_t>(set) & static_cast<uint8_t>(one)) != 0;
}
namespace pat {
inline constexpr Domain kIndex = Domain::Index, kBits = Domain::Bits, kBool = Domain::Bool,
                        kFloat = Domain::Float, kReal = Domain::Real,
                        kIntegers = Domain::Index | Domain::Bits,
                        kAny = Domain::Index | Domain::Bits | Domain::Bool | Domain::Float;
}
constexpr Domain domain_of(DType d) {
  switch (kind(d)) {
    case DTypeKind::Index: return Domain::Index;
    case DTypeKind::Bool: return Domain::Bool;
    case DTypeKind::Float: return Domain::Float | Domain::Real;
    case DTypeKind::Void: return pat::kAny;
    default: return Domain::Bits;
  }
}

struct Rule {
  const char* name;
  const char* file;
  int line;
  Domain domain;
  bool move =
      false;  ///< does not shrink its term: a change of form that something else undoes never
  Pat lhs, rhs, cond;

  /// Marks a rule that is not measured to shrink: the author says why it ends.
  constexpr Rule as_move() const {
    Rule r = *this;
    r.move = true;
    return r;
  }
};

/// What a pattern bound. `m[x]` is a node of `graph`.
struct Match {
  Graph& graph;
  NodeRef root;
  NodeRef slot[kPatSlots];

  NodeRef operator[](const Pat& variable) const { return slot[variable.node[0].arg]; }
};

struct NoContext {};

/// A rule whose right side is code. `fn` may return null: not this time.
template <class Ctx>
struct NativeRule {
  Rule rule;
  NodeRef (*fn)(const Match&, Ctx&);
};
template <>
struct NativeRule<NoContext> {
  Rule rule;
  NodeRef (*fn)(const Match&);
};

namespace detail {

constexpr bool is_rule_name(const char* name) {
  int dots = 0, length = 0;
  for (const char* c = name; *c; ++c, ++length) {
    if (*c == '.' && length > 0 && c[1])
      ++dots;
    else if (!((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_'))
      return false;
  }
  return dots == 1;
}
constexpr uint32_t bound_slots(const Pat& p) {
  uint32_t bound = 0;
  for (int i = 0; i < p.size; ++i) {
    const PatKind k = p.node[i].kind;
    if (k == PatKind::Any || k == PatKind::Const || k == PatKind::Bind)
      bound |= uint32_t{1} << p.node[i].arg;
  }
  return bound;
}
constexpr void check_lhs(const char* name, const Pat& lhs) {
  if (!is_rule_name(name)) throw "rewrite rule: a name is op.subject in lower case";
  if (lhs.empty()) throw "rewrite rule: the left side is empty";
  for (int i = 0; i < lhs.size; ++i)
    if (lhs.node[i].kind == PatKind::Fn || lhs.node[i].kind == PatKind::CastLike)
      throw "rewrite rule: the left side uses a function of conditions";
}
constexpr bool is_elementwise(Op op) { return is_alu(op) || op == Op::CDiv || op == Op::CMod; }
constexpr void check_rhs(const Pat& lhs, const Pat& rhs) {
  if (bound_slots(rhs) & ~bound_slots(lhs))
    throw "rewrite rule: the right side uses a variable the left side does not bind";
  for (int i = 0; i < rhs.size; ++i) {
    const PatNode n = rhs.node[i];
    if (n.kind == PatKind::Bind || n.kind == PatKind::Typed)
      throw "rewrite rule: the right side names or types a pattern";
    if (n.kind == PatKind::CastLike && !(bound_slots(lhs) >> n.arg & 1))
      throw "rewrite rule: cast_like uses a variable the left side does not bind";
    const Op op = static_cast<Op>(n.op);
    if (n.kind == PatKind::Op && (!is_elementwise(op) || n.nsrc != info(op).arity))
      throw "rewrite rule: the right side builds elementwise ops only; use native() for others";
  }
}
/// Only functions look at nodes: vmin(x) is a number, x is not.
constexpr void check_cond(const Pat& lhs, const Pat& cond) {
  if (bound_slots(cond) & ~bound_slots(lhs))
    throw "rewrite rule: the condition uses a variable the left side does not bind";
  bool is_node[Pat::kMaxNodes] = {};
  int depth = 0;
  for (int i = 0; i < cond.size; ++i) {
    const PatNode n = cond.node[i];
    const int count = n.kind == PatKind::Op || n.kind == PatKind::Fn ? n.nsrc : 0;
    for (int k = depth - count; k < depth; ++k)
      if (n.kind == PatKind::Op && is_node[k])
        throw "rewrite rule: conditions use vmin(x), vmax(x), divides(c, x), not x itself";
    depth -= count;
    is_node[depth++] = n.kind == PatKind::Any;
  }
}

}  // namespace detail

/// rule("div.of_mul", (x * c0) / c1, x * (c0 / c1), c1 > 0 && c0 % c1 == 0, kIndex). Without a
/// domain: every dtype, floats bit for bit.
consteval Rule rule(const char* name, const Pat& lhs, const Pat& rhs, const Pat& cond,
                    Domain domain = pat::kAny, const char* file = __builtin_FILE(),
                    int line = __builtin_LINE()) {
  detail::check_lhs(name, lhs);
  detail::check_rhs(lhs, rhs);
  detail::check_cond(lhs, cond);
  if (rhs.empty()) throw "rewrite rule: the right side is empty";
  return {name, file, line, domain, false, lhs, rhs, cond};
}
consteval Rule rule(const char* name, const Pat& lhs, const Pat& rhs, Domain domain = pat::kAny,
                    const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return rule(name, lhs, rhs, Pat(), domain, file, line);
}

/// native("reduce.collapse", op(Op::Reduce, x, y), collapse_reduce[[, condition], domain]).
template <class Ctx>
consteval NativeRule<Ctx> native(const char* name, const Pat& lhs,
                                 NodeRef (*fn)(const Match&, Ctx&), const Pat& cond,
                                 Domain domain = pat::kAny, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
  detail::check_lhs(name, lhs);
  detail::check_cond(lhs, cond);
  return {{name, file, line, domain, true, lhs, Pat(), cond}, fn};
}
template <class Ctx>
consteval NativeRule<Ctx> native(const char* name, const Pat& lhs,
                                 NodeRef (*fn)(const Match&, Ctx&), Domain domain = pat::kAny,
                                 const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return native(name, lhs, fn, Pat(), domain, file, line);
}
consteval NativeRule<NoContext> native(const char* name, const Pat& lhs,
                                       NodeRef (*fn)(const Match&), const Pat& cond,
                                       Domain domain = pat::kAny,
                                       const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) {
  detail::check_lhs(name, lhs);
  detail::check_cond(lhs, cond);
  return {{name, file, line, domain, true, lhs, Pat(), cond}, fn};
}
consteval NativeRule<NoContext> native(const char* name, const Pat& lhs,
                                       NodeRef (*fn)(const Match&), Domain domain = pat::kAny,
                                       const char* file = __builtin_FILE(),
                                       int line = __builtin_LINE()) {
  return native(name, lhs, fn, Pat(), domain, file, line);
}

}  // namespace weft
