// Ops and dtypes the target lacks, made of those it has.
#include <algorithm>
#include <array>

#include "weft/base/context.h"
#include "weft/base/small_vector.h"
#include "weft/lower/legaliser.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/rewrite/trace.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace lower {
namespace {

/// A constant, or a vector of one.
bool is_constant(NodeRef n) {
  return n->op == Op::Const || (n->op == Op::Splat && n->src(0)->op == Op::Const);
}

/// Instructions have tables of constants alone.
bool is_native_table(const Legaliser& l, Op op, std::span<const NodeRef> src) {
  return l.native(op, src[0]->dtype) && std::ranges::all_of(src.subspan(1), is_constant);
}

/// The rules of one Context. WEFT_RULES cannot switch them off: a target lacks what it lacks.
struct LowerSets {
  Decompositions decompositions;

  explicit LowerSets(const Context&)
      : decompositions("lower.decompose",
                       RuleList<Legaliser>(bool_arithmetic_rules()) + half_decompositions() +
                           int_decompositions() + float_decompositions(),
                       {.real = true}) {}
};

}  // namespace

Legaliser::Legaliser(Graph& g, const Target& target, int64_t next_range, int64_t next_loop)
    : graph_(g),
      target_(target),
      rules_(Context::current().get<LowerSets>().decompositions),
      next_range_(next_range),
      next_loop_(next_loop) {}

NodeRef Legaliser::make(Op op, DType dtype, std::span<const NodeRef> src) {
  if (std::all_of(src.begin(), src.end(), is_constant)) {
    // Approximate ops stay what they are: their expansions are folded.
    NodeRef folded = elementwise(graph_, op, dtype, src);
    if (is_constant(folded)) return folded;
  }
  if (has_trait(op, kWords) && !native(op, dtype)) return by_products(*this, op, src);
  if (has_trait(op, kTable) && !is_native_table(*this, op, src)) return by_choices(*this, src);
  if (NodeRef made = decomposed(op, dtype, src)) return made;
  return elementwise(graph_, op, dtype, src);
}

NodeRef Legaliser::legal(NodeRef n) {
  const auto constants = std::ranges::count_if(n->src(), is_constant);
  const bool words = has_trait(n->op, kWords) || has_trait(n->op, kTable);
  if (constants == n->nsrc || words) return make(n->op, n->dtype, n->src());
  NodeRef made = constants == 0 ? by_rule(n) : decomposed(n->op, n->dtype, n->src());
  return made ? made : n;
}

/// Null where no rule fires. They match a node that is what was asked for to the letter, operands
/// in their order; constants are scalars in it, so that patterns find them in vectors, too.
NodeRef Legaliser::decomposed(Op op, DType dtype, std::span<const NodeRef> src) {
  const RuleMatcher& rules = rules_.matcher();
  if (!rules.concerns(op)) return nullptr;
  uint16_t lanes = 1;
  SmallVector<NodeRef, 4> operands;
  for (NodeRef s : src) {
    lanes = std::max(lanes, s->lanes);
    operands.push_back(is_constant(s) ? lane(graph_, s, 0) : s);
  }
  return by_rule(graph_.intern({op, dtype, operands, {}, {}, lanes}));
}

NodeRef Legaliser::by_rule(NodeRef asked) {
  const RuleMatcher& rules = rules_.matcher();
  RuleMatcher::Call call{graph_, this, Decompositions::calls_of(*this)};
  const NodeRef made = rules.apply(asked, call);
  RewriteTrace* trace = RewriteTrace::current();
  if (made && trace)
    trace->steps.push_back({rules.entries()[static_cast<size_t>(call.fired)].rule, asked, made});
  return made;
}

NodeRef Legaliser::raw(Op op, DType dtype, std::initializer_list<NodeRef> src) {
  return elementwise(graph_, op, dtype, {src.begin(), src.size()});
}

Legaliser::Values Legaliser::repeat_if_any(NodeRef asked, int64_t times, const Values& values,
                                           FunctionRef<Values(const Values& values)> next) {
  NodeRef any = asked->lanes > 1 ? fold_lanes(graph_, Fold::Max, asked) : asked;
  if (any->op == Op::Const && const_value(any).as_int() == 0) return values;
  const int64_t loop = next_loop_++, range = next_range_++;
  const auto count = static_cast<int64_t>(values.size());
  const auto number = [](int64_t k, int64_t of) { return SmallVector<int64_t, 2>{k, of}; };
  Values carried, results;
  for (int64_t k = 0; k < count; ++k) {
    NodeRef v = values[static_cast<size_t>(k)];
    carried.push_back(graph_.intern({Op::Carry, v->dtype, {}, number(k, loop), {}, v->lanes}));
  }
  SmallVector<NodeRef, 8> src{std::span<const NodeRef>(values)};
  src.append(next(carried));
  const NodeRef none = constant(Value::of(DType::I32, 0));
  const NodeRef size[] = {times == 1 ? cast(any, DType::I32)
                                     : make(Op::Where, DType::I32,
                                            {{any, constant(Value::of(DType::I32, times)), none}})};
  src.push_back(graph_.intern(
      {Op::Range, DType::I32, size, number(range, static_cast<int64_t>(Binding::Loop))}));
  const int64_t ints[] = {loop, 0, count, 0};
  const NodeRef loops[] = {
      graph_.intern({Op::Loop, values[0]->dtype, src, ints, {}, values[0]->lanes})};
  for (int64_t k = 0; k < count; ++k) {
    NodeRef v = values[static_cast<size_t>(k)];
    results.push_back(graph_.intern({Op::Get, v->dtype, loops, {&k, 1}, {}, v->lanes}));
  }
  return results;
}

Expr Expr::op1(Op op) const {
  const NodeRef src[] = {n_};
  return {*l_, l_->make(op, n_->dtype, src)};
}

Expr Expr::op3(Op op, NodeRef b, NodeRef c) const {
  const NodeRef src[] = {n_, b, c};
  const DType result = has_trait(op, kBoolResult) ? DType::Bool : n_->dtype;
  return {*l_, l_->make(op, result, {src, c ? size_t{3} : size_t{2}})};
}

Expr Expr::mul_add(const Expr& b, const Expr& c) const {
  if (l_->target().native(Op::MulAcc, dtype())) return op3(Op::MulAcc, b, c);
  return *this * b + c;
}

Expr where(Expr condition, Expr a, Expr b) {
  const NodeRef src[] = {condition, a, b};
  return {a.legaliser(), a.legaliser().make(Op::Where, a.dtype(), src)};
}

NodeRef decompose(Graph& g, Analysis& of, const Target& target) {
  const NumberedOrder& order = of.order();
  int64_t next_range = 0, next_loop = 0;
  for (NodeRef n : order.nodes()) {
    if (n->op == Op::Range) next_range = std::max(next_range, range_id(n) + 1);
    if (n->op == Op::Loop) next_loop = std::max(next_loop, n->int_arg(0) + 1);
  }
  Legaliser legal(g, target, next_range, next_loop);
  std::vector<NodeRef> done;
  done.reserve(order.size());
  SmallVector<NodeRef, 16> src;
  for (NodeRef n : order.nodes()) {
    src.clear();
    for (NodeRef s : n->src()) src.push_back(done[order.index(s)]);
    // A fold that is not an op of the target is taken apart where the loop is written out.
    if (!is_alu(n->op))
      done.push_back(g.with_sources(n, src));
    else if (std::ranges::equal(src, n->src()))
      done.push_back(splat(g, legal.legal(n), n->lanes));
    else
      done.push_back(splat(g, legal.make(n->op, n->dtype, src), n->lanes));
  }
  return done.back();
}

}  // namespace lower

std::vector<RuleSetRow> lower_rule_sets() {
  return {
      catalogue_row(
          "decompose halves", lower::half_decompositions(),
          "Lowering: 16-bit floats are cast with one rounding, and computed with in f32."),
      catalogue_row("decompose integers", lower::int_decompositions(),
                    "Lowering: integers on machines that lack an op. Bools go by `bool`."),
      catalogue_row("decompose floats", lower::float_decompositions(), "The same of floats."),
      lower::group_rules(),
      lower::float8_rules(),
      lower::guard_rules(),
      lower::skip_rules(),
      lower::unroll_rules(),
      lower::vector_rules(),
      lower::tile_rules(),
      lower::continue_rules(),
      lower::width_rules(),
      lower::place_rules(),
  };
}

}  // namespace weft
