#include "weft/graph/expression.h"

#include <vector>

#include "weft/base/format.h"
#include "weft/graph/print.h"
#include "weft/graph/schema.h"

namespace weft {
namespace {

// C's precedences; a higher number binds tighter.
enum Precedence { kNone, kOr, kXor, kAnd, kEqual, kCompare, kShift, kSum, kProduct, kUnary };

struct Infix {
  Op op;
  const char* symbol;
  int precedence;
};
constexpr Infix kInfix[] = {
    {Op::Add, " + ", kSum},     {Op::Mul, "*", kProduct},  {Op::Div, "/", kProduct},
    {Op::IDiv, "//", kProduct}, {Op::Mod, "%", kProduct},  {Op::Lt, " < ", kCompare},
    {Op::Le, " <= ", kCompare}, {Op::Eq, " == ", kEqual},  {Op::Ne, " != ", kEqual},
    {Op::And, " & ", kAnd},     {Op::Or, " | ", kOr},      {Op::Xor, " ^ ", kXor},
    {Op::Shl, " << ", kShift},  {Op::Shr, " >> ", kShift}, {Op::CDiv, "/", kProduct},
    {Op::CMod, "%", kProduct},
};

const Infix* infix_of(Op op) {
  for (const Infix& i : kInfix)
    if (i.op == op) return &i;
  return nullptr;
}

/// What is still to print: a node that an operator of `precedence` surrounds, or (null) a literal.
struct Item {
  NodeRef node;
  int precedence;
  std::string literal;
};

class Printer {
 public:
  std::string print(NodeRef n, int budget) {
    later(n, kNone);
    while (!todo_.empty()) {
      const Item item = std::move(todo_.back());
      todo_.pop_back();
      if (!item.node)
        out_ += item.literal;
      else if (--budget < 0)
        return out_ + "...";
      else
        expand(item.node, item.precedence);
    }
    return std::move(out_);
  }

 private:
  void later(NodeRef n, int precedence) { todo_.push_back({n, precedence, {}}); }
  void later(std::string text) { todo_.push_back({nullptr, kNone, std::move(text)}); }

  /// Things are pushed last first.
  void expand(NodeRef n, int outer) {
    if (const Infix* i = n->nsrc == 2 ? infix_of(n->op) : nullptr)
      return expand_infix(n, *i, outer);
    switch (n->op) {
      case Op::Const: return append_constant(out_, n);
      case Op::Variable: out_ += n->text(); return;
      case Op::Range: return numbered("r", n);
      case Op::Param: return numbered("p", n);
      case Op::Buffer: return numbered("b", n);
      case Op::Acc: return numbered("acc", n);
      case Op::Carry: return append_format(out_, "carry{}", n->int_arg(0));
      case Op::Elem: return append_format(out_, "elem{}", n->int_arg(0));
      case Op::Bind: return later(n->src(0), outer);
      case Op::Neg: later(n->src(0), kUnary); return later("-");
      case Op::Load: return expand_load(n);
      default: return expand_call(n);
    }
  }
  void numbered(const char* prefix, NodeRef n) {
    append_format(out_, "{}{}", prefix, n->nints ? n->int_arg(0) : -1);
  }

  void expand_infix(NodeRef n, const Infix& i, int outer) {
    const bool brackets = i.precedence <= outer;
    if (brackets) later(")");
    if (!expand_minus(n, i)) {
      later(n->src(1), i.precedence);
      later(i.symbol);
    }
    // Left-associative: the left operand needs no brackets at equal precedence.
    later(n->src(0), i.precedence - 1);
    if (brackets) later("(");
  }
  /// `a - b` for a + b*-1, `a - 3` for a + -3.
  bool expand_minus(NodeRef n, const Infix& i) {
    if (n->op != Op::Add || n->dtype != DType::Index) return false;
    NodeRef b = n->src(1);
    if (b->op == Op::Mul && is_int_const(b->src(1), -1))
      later(b->src(0), i.precedence);
    else if (b->op == Op::Const && b->vmin < 0 && b->vmin != INT64_MIN)
      later(strformat("{}", -b->vmin));
    else
      return false;
    later(" - ");
    return true;
  }

  void expand_load(NodeRef n) {
    later("]");
    if (n->nsrc > 2) {
      later(n->src(2), kNone);
      later(" if ");
    }
    if (n->nsrc > 1) later(n->src(1), kNone);
    later("[");
    if (n->nsrc > 0) later(n->src(0), kUnary);
  }

  void expand_call(NodeRef n) {
    out_ += n->op == Op::Cast ? std::string(name(n->dtype)) : std::string(info(n->op).mnemonic);
    later(")");
    for (size_t i = n->nsrc; i-- > 0;) {
      later(n->src(i), kNone);
      if (i > 0) later(", ");
    }
    later("(");
  }

  std::string out_;
  std::vector<Item> todo_;
};

}  // namespace

void append_constant(std::string& out, NodeRef n) {
  out += const_value(n).text();
  if (n->dtype != DType::Index) append_format(out, ":{}", name(n->dtype));
}

std::string short_expression(NodeRef n, int budget) { return Printer().print(n, budget); }
std::string expression(NodeRef n) { return Printer().print(n, 400); }

std::string shape_text(const Shape* shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape->rank; ++i) {
    if (i) out += ", ";
    NodeRef extent = shape->span()[i];  // nearly all are numbers
    out += is_const(extent) ? std::to_string(extent->vmin) : short_expression(extent, 24);
  }
  return out + ")";
}

}  // namespace weft
