#include "weft/simplify/inequality.h"

#include <algorithm>
#include <numeric>

#include "weft/base/format.h"
#include "weft/base/small_vector.h"
#include "weft/rewrite/driver.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace {

struct Term {
  NodeRef node;
  int64_t factor;
};

/// The summands of a sum in normal form that are not constants.
SmallVector<Term, 16> terms_of(NodeRef n) {
  SmallVector<Term, 16> terms;
  for (; n; n = n->op == Op::Add ? n->src(0) : nullptr) {
    NodeRef part = n->op == Op::Add ? n->src(1) : n;
    const bool scaled = part->op == Op::Mul && part->src(1)->op == Op::Const;
    if (part->op != Op::Const)
      terms.push_back({scaled ? part->src(0) : part, scaled ? part->src(1)->vmin : 1});
  }
  return terms;
}

/// The factor of `node` in a sum; 0 where it does not occur.
int64_t factor_of(NodeRef node, std::span<const Term> sum) {
  for (const Term& t : sum)
    if (t.node == node) return t.factor;
  return 0;
}

/// Bounds saturate: near their ends they prove nothing.
bool bounded(NodeRef n) {
  constexpr int64_t kFar = int64_t{1} << 62;
  return n->vmin > -kFar && n->vmax < kFar;
}

}  // namespace

Inequality::Inequality(Graph& g, NodeRef valid) : g_(g) { learn_mask(without_divisions(valid)); }

void Inequality::learn_mask(NodeRef valid) {
  for (NodeRef n : conjuncts(valid)) {
    if (n->nsrc != 2 || !is_index(n->src(0)->dtype)) continue;
    NodeRef difference = g_.sub(n->src(0), n->src(1));
    if (n->op == Op::Lt) learn(g_.add(difference, g_.index(1)));
    if (n->op != Op::Eq) continue;
    learn(difference);
    learn(g_.mul(difference, g_.index(-1)));
  }
}

void Inequality::learn(NodeRef never_positive) {
  // Intervals say so already, or cannot say anything.
  if (never_positive->vmax <= 0 || !bounded(never_positive)) return;
  facts_.push_back(never_positive);
  for (const Term& t : terms_of(never_positive)) learn_about(t.node);
}

/// What the op of a term says of it.
void Inequality::learn_about(NodeRef n) {
  if (terms_.contains(n)) return;
  terms_[n] = true;
  auto at_most = [&](NodeRef a, NodeRef b) { learn(g_.sub(a, b)); };
  auto last = [&](NodeRef range) { return g_.sub(range->src(0), g_.index(1)); };
  if (n->op == Op::Range) learn_about_size(n);
  if (n->op == Op::Range) at_most(n, last(n));
  if (n->op == Op::ToIndex) at_most(n, g_.sub(n->src(1), g_.index(1)));
  for (NodeRef s : n->src()) {
    if (n->op == Op::Min) at_most(n, s);
    if (n->op == Op::Max) at_most(s, n);
  }
  if (n->op != Op::Mul) return;
  for (size_t i : {0, 1})  // a range times what is not negative
    if (n->src(i)->op == Op::Range && n->src(1 - i)->vmin >= 0)
      at_most(n, g_.mul(last(n->src(i)), n->src(1 - i)));
}

/// A loop of where(condition, size, 0) iterations, or where(condition, 0, size), has as many as the
/// size where it runs. One of where(a < b, 0, size) runs only where max(a, b) is a; that b is at
/// most a would only lead proofs astray.
void Inequality::learn_about_size(NodeRef range) {
  NodeRef size = range->src(0);
  if (size->op != Op::Where) return;
  for (size_t i : {1, 2})
    if (is_int_const(size->src(3 - i), 0)) learn(g_.sub(g_.add(range, g_.index(1)), size->src(i)));
  NodeRef less = size->src(0);
  if (!is_int_const(size->src(1), 0) || less->op != Op::Lt || !is_index(less->src(0)->dtype))
    return;
  // Where that is a size or nothing, it is the size: more than nothing is wanted.
  NodeRef most = less->src(0);
  for (size_t i : {1, 2})
    if (less->src(1)->vmin > 0 && most->op == Op::Where && is_int_const(most->src(3 - i), 0))
      most = most->src(i);
  learn(g_.sub(g_.alu(Op::Max, {less->src(0), less->src(1)}), most));
}

/// The graph's normal form would join x // c * c + x % c to x, which hides what is known of the
/// parts: they become variables.
NodeRef Inequality::without_divisions(NodeRef root) {
  return rebuild(root, [this](NodeRef n, std::span<const NodeRef> src) {
    NodeRef now = g_.with_sources(n, src);
    const bool division = (now->op == Op::IDiv || now->op == Op::Mod) && is_index(now->dtype);
    return division && now->src(1)->vmin > 0 ? stand_in(now) : now;
  });
}

/// What x / c is at most where x numbers the iterations of two loops that are one, of which the
/// outer has a fixed number and the inner has c.
int64_t Inequality::most_times(NodeRef x, NodeRef c) {
  NodeRef size = x->op == Op::Range ? x->src(0) : nullptr;
  if (!size || c->vmax <= 0 || size->vmax % c->vmax != 0) return INT64_MAX;
  const int64_t times = size->vmax / c->vmax;
  return g_.mul(c, g_.index(times)) == size ? times - 1 : INT64_MAX;
}

NodeRef Inequality::stand_in(NodeRef division) {
  if (NodeRef* known = divisions_.find(division)) return *known;
  NodeRef x = division->src(0), c = division->src(1);
  auto variable = [&](NodeRef n) {
    const int64_t most = n->op == Op::IDiv ? most_times(x, c) : INT64_MAX;
    NodeRef v =
        g_.variable(strformat("part.{}", divisions_.size()), n->vmin, std::min(n->vmax, most));
    divisions_[n] = v;
    return v;
  };
  // Made again from its sources, a division may come out in another form.
  const bool is_quotient = division->op == Op::IDiv;
  NodeRef quotient = variable(is_quotient ? division : g_.idiv(x, c));
  NodeRef remainder = variable(is_quotient ? g_.mod(x, c) : division);
  NodeRef sum = g_.add(g_.mul(quotient, c), remainder);
  learn(g_.sub(sum, x));
  learn(g_.sub(x, sum));
  learn(g_.add(g_.sub(remainder, c), g_.index(1)));
  return divisions_.at(division);
}

/// The least of all steps that do not raise the bound; its node is null where there is none.
Inequality::Rest Inequality::lowered(const Rest& from, const std::vector<bool>& used) {
  const SmallVector<Term, 16> terms = terms_of(from.node);
  Rest best{nullptr};
  for (size_t i = 0; i < facts_.size(); ++i) {
    if (used[i]) continue;
    const SmallVector<Term, 16> fact = terms_of(facts_[i]);
    for (const Term& t : terms) {
      const int64_t f = factor_of(t.node, fact);
      if (f == 0 || (f < 0) != (t.factor < 0)) continue;
      // Of integers, m * x <= m - 1 says x <= 0.
      const int64_t common = std::gcd(f, t.factor), m = std::abs(f) / common;
      NodeRef scaled = g_.sub(g_.mul(from.node, g_.index(m)), g_.index(m - 1));
      NodeRef rest = g_.sub(scaled, g_.mul(facts_[i], g_.index(std::abs(t.factor) / common)));
      if (!bounded(scaled) || !bounded(rest)) continue;
      const Rest next{rest, from.scale * static_cast<double>(m), i};
      if (best.node ? next.bound() < best.bound() : next.bound() <= from.bound()) best = next;
    }
  }
  return best;
}

bool Inequality::never_positive(NodeRef expression) {
  std::vector<bool> used;
  Rest rest{without_divisions(expression)};
  while (rest.node && bounded(rest.node) && rest.node->vmax > 0) {
    for (const Term& t : terms_of(rest.node)) learn_about(t.node);
    used.resize(facts_.size());
    rest = lowered(rest, used);
    if (rest.node) used[rest.fact] = true;
  }
  return rest.node != nullptr && bounded(rest.node);
}

bool Inequality::inside(NodeRef index, NodeRef size) {
  return never_positive(g_.mul(index, g_.index(-1))) &&
         never_positive(g_.add(g_.sub(index, size), g_.index(1)));
}

}  // namespace weft
