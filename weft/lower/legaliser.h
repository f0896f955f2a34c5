// Legaliser: builds elementwise ops out of what the target has; Expr: arithmetic on nodes that
// reads like arithmetic.
#pragma once
#include "weft/base/function_ref.h"
#include "weft/base/small_vector.h"
#include "weft/rewrite/rule_set.h"
#include "weft/target/target.h"

namespace weft::lower {

class Legaliser;
using Decompositions = RuleSet<Legaliser>;

/// The context of decompositions: rules from an op, on operands that are legal, to ops that are
/// simpler.
class Legaliser {
 public:
  /// Loops of its own get these numbers and those above them.
  Legaliser(Graph& g, const Target& target, int64_t next_range = 0, int64_t next_loop = 0);

  /// The value of `op` on these operands, legal on the target: the first rule that fires makes it,
  /// of ops that are made in the same way. They are simpler, so this nests a few calls deep
  /// whatever the graph.
  NodeRef make(Op op, DType dtype, std::span<const NodeRef> src);
  /// The legal value of a node whose operands stay: itself where no rule fires.
  NodeRef legal(NodeRef n);
  bool native(Op op, DType dtype) const { return target_.native(op, dtype); }
  /// Exactly this op.
  NodeRef raw(Op op, DType dtype, std::initializer_list<NodeRef> src);
  NodeRef cast(NodeRef x, DType to) { return make(Op::Cast, to, {&x, 1}); }
  /// What `next` makes of some values, in all lanes, where any lane asks for it; else the values as
  /// they are. A loop of one iteration or none: what is rarely asked for costs a test.
  using Values = SmallVector<NodeRef, 2>;
  Values next_if_any(NodeRef asked, const Values& values,
                     FunctionRef<Values(const Values& values)> next) {
    return repeat_if_any(asked, 1, values, next);
  }
  /// The same so many times.
  Values repeat_if_any(NodeRef asked, int64_t times, const Values& values,
                       FunctionRef<Values(const Values& values)> next);
  NodeRef constant(Value v) { return graph_.constant(v); }
  Graph& graph() { return graph_; }
  const Target& target() const { return target_; }
  bool has_f64() const { return (target_.dtypes & dtype_bit(DType::F64)) != 0; }

 private:
  NodeRef decomposed(Op op, DType dtype, std::span<const NodeRef> src);
  NodeRef by_rule(NodeRef asked);  ///< null where none fires

  Graph& graph_;
  const Target& target_;
  const Decompositions& rules_;
  int64_t next_range_, next_loop_;
};

/// By what they treat.
RuleList<Legaliser> half_decompositions();
RuleList<Legaliser> int_decompositions();
RuleList<Legaliser> float_decompositions();
/// A dot product of words, element by element.
NodeRef by_products(Legaliser& l, Op op, std::span<const NodeRef> src);
/// The bytes of a table that those of a word count, one by one.
NodeRef by_choices(Legaliser& l, std::span<const NodeRef> src);

// Right sides that are files of their own.
NodeRef mulacc_by_int(const Match& m, Legaliser& l);
NodeRef exp2_expansion(const Match& m, Legaliser& l);
NodeRef log2_expansion(const Match& m, Legaliser& l);
NodeRef rem_expansion(const Match& m, Legaliser& l);
NodeRef sin_expansion(const Match& m, Legaliser& l);
NodeRef cos_expansion(const Match& m, Legaliser& l);
NodeRef tan_expansion(const Match& m, Legaliser& l);

/// A node with arithmetic operators; constants take the other operand's dtype.
class Expr {
 public:
  Expr(Legaliser& l, NodeRef n) : l_(&l), n_(n) {}
  operator NodeRef() const { return n_; }  // NOLINT: it is one
  NodeRef node() const { return n_; }
  DType dtype() const { return n_->dtype; }
  Legaliser& legaliser() const { return *l_; }

  Expr op(Op op, NodeRef b) const { return op3(op, b, nullptr); }
  Expr op3(Op op, NodeRef b, NodeRef c) const;
  Expr op1(Op op) const;
  Expr number(double v) const { return {*l_, l_->constant(Value::of(dtype(), v))}; }
  Expr integer(int64_t v) const { return {*l_, l_->constant(Value::of(dtype(), v))}; }
  Expr to(DType dtype) const { return {*l_, l_->cast(n_, dtype)}; }
  /// A conversion whose operand is known to fit: no saturation.
  Expr converted(DType dtype) const { return {*l_, l_->raw(Op::Cast, dtype, {n_})}; }
  Expr bits_as(DType dtype) const { return {*l_, l_->raw(Op::Bitcast, dtype, {n_})}; }
  /// *this * b + c, in one rounding where the target has that.
  Expr mul_add(const Expr& b, const Expr& c) const;

  friend Expr operator+(Expr a, Expr b) { return a.op(Op::Add, b); }
  friend Expr operator-(Expr a, Expr b) { return a.op(Op::Add, -b); }
  friend Expr operator*(Expr a, Expr b) { return a.op(Op::Mul, b); }
  friend Expr operator/(Expr a, Expr b) { return a.op(Op::Div, b); }
  friend Expr operator&(Expr a, Expr b) { return a.op(Op::And, b); }
  friend Expr operator|(Expr a, Expr b) { return a.op(Op::Or, b); }
  friend Expr operator^(Expr a, Expr b) { return a.op(Op::Xor, b); }
  friend Expr operator<(Expr a, Expr b) { return a.op(Op::Lt, b); }
  friend Expr operator<=(Expr a, Expr b) { return a.op(Op::Le, b); }
  friend Expr operator>(Expr a, Expr b) { return b.op(Op::Lt, a); }
  friend Expr operator>=(Expr a, Expr b) { return b.op(Op::Le, a); }
  friend Expr operator-(Expr a) { return a.op1(Op::Neg); }
  friend Expr operator!(Expr a) { return a.op1(Op::Not); }
  friend Expr operator+(Expr a, double b) { return a + a.number(b); }
  friend Expr operator-(Expr a, double b) { return a + a.number(-b); }
  friend Expr operator*(Expr a, double b) { return a * a.number(b); }
  friend Expr operator+(Expr a, int64_t b) { return a + a.integer(b); }
  friend Expr operator-(Expr a, int64_t b) { return a + a.integer(-b); }
  friend Expr operator*(Expr a, int64_t b) { return a * a.integer(b); }
  friend Expr operator&(Expr a, int64_t b) { return a & a.integer(b); }
  friend Expr operator|(Expr a, int64_t b) { return a | a.integer(b); }
  friend Expr operator<<(Expr a, int64_t b) { return a.op(Op::Shl, a.integer(b)); }
  friend Expr operator>>(Expr a, int64_t b) { return a.op(Op::Shr, a.integer(b)); }

 private:
  Legaliser* l_;
  NodeRef n_;
};

inline Expr eq(Expr a, Expr b) { return a.op(Op::Eq, b); }
inline Expr ne(Expr a, Expr b) { return a.op(Op::Ne, b); }
inline Expr is_nan(Expr a) { return ne(a, a); }
Expr where(Expr condition, Expr a, Expr b);

}  // namespace weft::lower
