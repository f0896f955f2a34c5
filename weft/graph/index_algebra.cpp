#include "weft/graph/index_algebra.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "weft/graph/affine_sum.h"
#include "weft/graph/node_map.h"

namespace weft {
namespace {

using namespace affine;

// Shared factors could make a product of exponentially many.
constexpr size_t kMaxFactors = 64;

NodeRef raw(Graph& g, Op op, DType dtype, NodeRef a, NodeRef b) {
  const NodeRef src[] = {a, b};
  return g.intern({op, dtype, src});
}

NodeRef scaled(Graph& g, const AffineTerm& t) {
  if (t.coefficient == 1) return t.node;
  if (t.product && t.product->src(1)->vmin == t.coefficient) return t.product;
  return raw(g, Op::Mul, DType::Index, t.node, g.index(t.coefficient));
}

NodeRef build(Graph& g, const Sum& s) {
  NodeRef total = nullptr;
  for (const AffineTerm& t : s.terms) {
    NodeRef n = scaled(g, t);
    total = total ? raw(g, Op::Add, DType::Index, total, n) : n;
  }
  if (!total) return g.index(s.constant);
  return s.constant == 0 ? total : raw(g, Op::Add, DType::Index, total, g.index(s.constant));
}

/// n as y // divisor, where y is no quotient itself (only by constants are nested ones joined).
struct Quotient {
  NodeRef of;
  Int128 divisor;
};
Quotient quotient(NodeRef n, int64_t divisor) {
  const bool nested = n->op == Op::IDiv && n->src(1)->op == Op::Const && n->src(1)->vmin > 0;
  if (nested) return {n->src(0), static_cast<Int128>(n->src(1)->vmin) * divisor};
  return {n, divisor};
}

/// True where n is (x // c) for a constant c > 0: as it stands in normal form.
bool is_quotient(NodeRef n, NodeRef x, int64_t c) {
  if (n->op != Op::IDiv || n->src(1)->op != Op::Const) return false;
  const Quotient q = quotient(x, c);
  return n->src(0) == q.of && n->src(1)->vmin == q.divisor;
}

/// The term of `s` that is coefficient * n for an n that `matches`; the number of terms without.
template <class F>
size_t find_term(const Sum& s, Int128 coefficient, F&& matches) {
  size_t i = 0;
  while (i < s.terms.size() && !(s.terms[i].coefficient == coefficient && matches(s.terms[i].node)))
    ++i;
  return i;
}

/// (x // c)*(k*c) + (x % c)*k  ->  x*k, where terms[i] is the second of them.
bool join_quotient(Sum& s, size_t i) {
  NodeRef x = s.terms[i].node->src(0);
  const int64_t c = s.terms[i].node->src(1)->vmin, k = s.terms[i].coefficient;
  const size_t j =
      find_term(s, static_cast<Int128>(k) * c, [&](NodeRef n) { return is_quotient(n, x, c); });
  if (j == s.terms.size()) return false;
  s.terms.erase(std::max(i, j));
  s.terms.erase(std::min(i, j));
  s.add(x, k);
  return true;
}

/// ((x // c + y) % d)*(k*c) + (x % c)*k  ->  ((x + y*c) % (c*d))*k, where terms[i] is the second.
bool join_digits(Graph& g, Sum& s, size_t i) {
  NodeRef x = s.terms[i].node->src(0);
  const int64_t c = s.terms[i].node->src(1)->vmin, k = s.terms[i].coefficient;
  Sum higher;
  const size_t j = find_term(s, static_cast<Int128>(k) * c, [&](NodeRef n) {
    if (n->op != Op::Mod || n->src(1)->op != Op::Const) return false;
    higher = Sum{};
    higher.add(n->src(0), 1);
    const size_t at = find_term(higher, 1, [&](NodeRef q) { return is_quotient(q, x, c); });
    if (!higher.ok || at == higher.terms.size()) return false;
    higher.terms.erase(at);
    return fits(static_cast<Int128>(n->src(1)->vmin) * c);
  });
  if (j == s.terms.size()) return false;
  const int64_t d = s.terms[j].node->src(1)->vmin;
  s.terms.erase(std::max(i, j));
  s.terms.erase(std::min(i, j));
  NodeRef whole = g.add(x, g.mul(build(g, higher), g.index(c)));
  s.add(g.mod(whole, g.index(c * d)), k);
  return true;
}

/// (x // n)*n*k + (x % n)*k  ->  x*k for a symbolic n, where terms[i] is the second.
bool join_symbolic(Graph& g, Sum& s, size_t i) {
  NodeRef x = s.terms[i].node->src(0), n = s.terms[i].node->src(1);
  const int64_t k = s.terms[i].coefficient;
  Sum lower;  // x - x % n
  lower.add(g.mul(g.idiv(x, n), n), k);
  if (!lower.ok) return false;
  Sum rest = s;
  for (const AffineTerm& t : lower.terms) {
    if (find_term(s, t.coefficient, [&](NodeRef q) { return q == t.node; }) == s.terms.size())
      return false;
    rest.add_term(t.node, -static_cast<Int128>(t.coefficient));
  }
  rest.add_constant(-static_cast<Int128>(lower.constant));
  rest.add_term(s.terms[i].node, -static_cast<Int128>(k));
  rest.add(x, k);
  s = rest;
  return true;
}

/// Puts digits together again: the quotient and the remainder of one value, whatever stands between
/// them. Each step leaves fewer divisions.
void join_div_mod(Graph& g, Sum& s) {
  for (size_t i = 0; i < s.terms.size() && s.ok;) {
    NodeRef m = s.terms[i].node;
    const bool remainder = m->op == Op::Mod;
    const bool constant = remainder && m->src(1)->op == Op::Const && m->src(1)->vmin > 0;
    const bool joined = constant ? join_quotient(s, i) || join_digits(g, s, i)
                                 : remainder && join_symbolic(g, s, i);
    i = joined ? 0 : i + 1;
  }
}

NodeRef normal_sum(Graph& g, NodeRef a, NodeRef b, int64_t scale_b) {
  Sum s;
  s.add(a, 1);
  s.add(b, scale_b);
  if (!s.ok) return nullptr;
  join_div_mod(g, s);
  return s.ok ? build(g, s) : nullptr;
}

NodeRef normal_product(Graph& g, NodeRef a, NodeRef b) {
  if (a->op == Op::Const) std::swap(a, b);
  if (b->op == Op::Const) {
    Sum s;
    s.add(a, b->vmin);
    return s.ok ? build(g, s) : nullptr;
  }
  // A sum times a symbol distributes, so that sums of products have one form.
  if (a->op == Op::Add || b->op == Op::Add) {
    NodeRef sum = a->op == Op::Add ? a : b, factor = a->op == Op::Add ? b : a;
    Sum parts;
    parts.add(sum, 1);
    if (parts.ok && parts.terms.size() <= 8) {
      NodeRef total = g.mul(factor, g.index(parts.constant));
      for (const AffineTerm& t : parts.terms)
        total = g.add(total, g.mul(g.mul(t.node, factor), g.index(t.coefficient)));
      return total;
    }
  }
  if (a->op == Op::Mul && a->src(1)->op == Op::Const) return g.mul(g.mul(a->src(0), b), a->src(1));
  if (b->op == Op::Mul && b->src(1)->op == Op::Const) return g.mul(g.mul(a, b->src(0)), b->src(1));
  if (comes_later(a, b)) return raw(g, Op::Mul, DType::Index, b, a);
  return nullptr;
}

/// Splits s = c*quotient + remainder exactly, taking whole multiples of c out of every coefficient
/// (truncated, so small negative coefficients stay small).
void split_multiples(const Sum& s, int64_t c, Sum& quotient, Sum& remainder) {
  for (const AffineTerm& t : s.terms) {
    quotient.add_term(t.node, t.coefficient / c);
    remainder.add_term(t.node, t.coefficient % c);
  }
  quotient.add_constant(floor_div(s.constant, c));
  remainder.add_constant(floor_mod(s.constant, c));
}

/// Finds g > 1 dividing c such that remainder = g*big + small with 0 <= small < g. Then
/// floor(remainder/c) = floor(big/(c/g)).
int64_t split_small(const Sum& remainder, int64_t c, Sum& big, Sum& small) {
  for (const AffineTerm& candidate : remainder.terms) {
    const int64_t g = std::gcd(candidate.coefficient, c);
    if (g <= 1) continue;
    big = Sum{};
    small = Sum{};
    for (const AffineTerm& t : remainder.terms) {
      if (t.coefficient % g == 0)
        big.add_term(t.node, t.coefficient / g);
      else
        small.add_term(t.node, t.coefficient);
    }
    big.add_constant(floor_div(remainder.constant, g));
    small.add_constant(floor_mod(remainder.constant, g));
    const Bounds b = small.bounds();
    if (b.min >= 0 && b.max < g) return g;
  }
  return 0;
}

NodeRef normal_div(Graph& g, NodeRef x, int64_t c) {
  Sum s;
  s.add(x, 1);
  if (!s.ok) return nullptr;
  const Bounds whole = s.bounds();
  if (floor_div(whole.min, c) == floor_div(whole.max, c)) return g.index(floor_div(whole.min, c));
  if (c == 1) return x;
  Sum quotient, remainder;
  split_multiples(s, c, quotient, remainder);
  if (!s.ok || !quotient.ok || !remainder.ok) return nullptr;
  NodeRef out = build(g, quotient);
  const Bounds b = remainder.bounds();
  if (floor_div(b.min, c) == floor_div(b.max, c)) return g.add(out, g.index(floor_div(b.min, c)));
  Sum big, small;
  if (const int64_t factor = split_small(remainder, c, big, small))
    return g.add(out, g.idiv(build(g, big), g.index(c / factor)));
  if (remainder.terms.size() == 1 && remainder.constant == 0 &&
      remainder.terms[0].coefficient == 1) {
    NodeRef inner = remainder.terms[0].node;
    const bool by_constant = inner->nsrc == 2 && inner->src(1)->op == Op::Const;
    const int64_t d = by_constant ? inner->src(1)->vmin : 0;
    if (inner->op == Op::IDiv && d > 0 && fits(static_cast<Int128>(d) * c))
      return g.add(out, g.idiv(inner->src(0), g.index(d * c)));
    if (inner->op == Op::Mod && d > 0 && d % c == 0)
      return g.add(out, g.mod(g.idiv(inner->src(0), g.index(c)), g.index(d / c)));
  }
  NodeRef remainder_node = build(g, remainder);
  if (remainder_node == x) return nullptr;  // nothing came out
  return g.add(out, raw(g, Op::IDiv, DType::Index, remainder_node, g.index(c)));
}

NodeRef normal_mod(Graph& g, NodeRef x, int64_t c) {
  Sum s;
  s.add(x, 1);
  if (c == 1) return g.index(0);
  Sum quotient, remainder;
  split_multiples(s, c, quotient, remainder);
  if (!s.ok || !quotient.ok || !remainder.ok) return nullptr;
  const Bounds b = remainder.bounds();
  if (floor_div(b.min, c) == floor_div(b.max, c)) {
    remainder.add_constant(-static_cast<Int128>(c) * floor_div(b.min, c));
    return build(g, remainder);
  }
  Sum big, small;
  if (const int64_t factor = split_small(remainder, c, big, small)) {
    NodeRef high = g.mul(g.mod(build(g, big), g.index(c / factor)), g.index(factor));
    return g.add(high, build(g, small));
  }
  if (remainder.terms.size() == 1 && remainder.constant == 0 &&
      remainder.terms[0].coefficient == 1) {
    NodeRef inner = remainder.terms[0].node;
    if (inner->op == Op::Mod && inner->src(1)->op == Op::Const && inner->src(1)->vmin > 0 &&
        inner->src(1)->vmin % c == 0)
      return g.mod(inner->src(0), g.index(c));
  }
  NodeRef remainder_node = build(g, remainder);
  return remainder_node == x ? nullptr : raw(g, Op::Mod, DType::Index, remainder_node, g.index(c));
}

// ---- symbolic divisors

/// Adds the factors of a product node to `out`; false when there are too many.
bool factors_of(NodeRef n, std::vector<NodeRef>& out) {
  std::vector<NodeRef> stack{n};
  while (!stack.empty()) {
    if (out.size() + stack.size() > kMaxFactors) return false;
    NodeRef x = stack.back();
    stack.pop_back();
    if (x->op != Op::Mul) {
      out.push_back(x);
      continue;
    }
    stack.push_back(x->src(0));
    stack.push_back(x->src(1));
  }
  return true;
}

/// coefficient * node / divisor where that is exact by its factors; null otherwise.
NodeRef exact_quotient(Graph& g, const AffineTerm& t, NodeRef divisor) {
  std::vector<NodeRef> have, need;
  if (!factors_of(t.node, have) || !factors_of(divisor, need)) return nullptr;
  int64_t coefficient = t.coefficient;
  for (NodeRef f : need) {
    auto at = std::find(have.begin(), have.end(), f);
    if (at != have.end()) {
      have.erase(at);
    } else if (f->op == Op::Const && f->vmin != 0 && coefficient % f->vmin == 0) {
      coefficient /= f->vmin;
    } else {
      return nullptr;
    }
  }
  NodeRef out = g.index(coefficient);
  for (NodeRef f : have) out = g.mul(out, f);
  return out;
}

/// x / b and x % b for a symbolic b > 0: whole multiples of b come out; the remainder is dropped or
/// kept where 0 <= remainder < b is proved.
NodeRef symbolic_div_mod(Graph& g, Op op, NodeRef x, NodeRef b) {
  if (b->vmin <= 0) return nullptr;
  Sum s, remainder;
  s.add(x, 1);
  NodeRef quotient = g.index(0);
  for (const AffineTerm& t : s.terms) {
    if (NodeRef q = exact_quotient(g, t, b))
      quotient = g.add(quotient, q);
    else
      remainder.add_term(t.node, t.coefficient);
  }
  remainder.add_constant(s.constant);
  if (!s.ok || !remainder.ok) return nullptr;
  NodeRef r = build(g, remainder);
  const bool small = r->vmin >= 0 && is_int_const(g.lt(r, b), 1);
  if (small) return op == Op::IDiv ? quotient : r;
  if (r == x) return nullptr;
  if (op == Op::IDiv) return g.add(quotient, raw(g, Op::IDiv, DType::Index, r, b));
  return raw(g, Op::Mod, DType::Index, r, b);
}

/// An upper bound of the sum in which every range gives way to its last value, so that r < n is
/// proved for symbolic n.
int64_t upper_bound(const Sum& s) {
  Sum top;
  for (const AffineTerm& t : s.terms) {
    if (t.node->op == Op::Range && t.coefficient > 0) {
      top.add(t.node->src(0), t.coefficient);
      top.add_constant(-static_cast<Int128>(t.coefficient));
    } else {
      top.add_term(t.node, t.coefficient);
    }
  }
  top.add_constant(s.constant);
  const int64_t plain = s.bounds().max;
  return top.ok ? std::min(plain, top.bounds().max) : plain;
}

/// x % n == 0 as an equation without a division, where the multiples of n that x may be come to one
/// at most once each coefficient is the nearest to 0 (places on a diagonal of n - 1 columns:
/// (i * (n - 1) + j) % n == 0 is i == j); null where they may be more.
NodeRef divisible(Graph& g, NodeRef remainder) {
  const int64_t n = remainder->src(1)->vmin;
  Sum whole, x;
  whole.add(remainder->src(0), 1);
  for (const AffineTerm& t : whole.terms) {
    const int64_t c = floor_mod(t.coefficient, n);
    x.add_term(t.node, c > n / 2 ? c - n : c);
  }
  x.add_constant(floor_mod(whole.constant, n));
  if (!whole.ok || !x.ok) return nullptr;
  const Bounds b = x.bounds();
  if (!fits(b.min) || !fits(b.max)) return nullptr;
  const int64_t last = floor_div(b.max, n);
  if (last != floor_div(b.min - 1, n) + 1)
    return last == floor_div(b.min - 1, n) ? g.boolean(false) : nullptr;
  return g.eq(build(g, x), g.index(last * n));
}

bool is_only_remainder(const Sum& s) {
  if (s.terms.size() != 1 || s.terms[0].coefficient != 1) return false;
  NodeRef n = s.terms[0].node;
  return n->op == Op::Mod && n->src(1)->op == Op::Const && n->src(1)->vmin > 0;
}

/// sum < 0 as terms < constant, divided by the common factor of the coefficients.
NodeRef normal_less(Graph& g, NodeRef a, NodeRef b, int64_t slack) {
  Sum s;  // a - b - slack < 0, i.e. a < b + slack
  s.add(a, 1);
  s.add(b, -1);
  s.add_constant(-static_cast<Int128>(slack));
  if (!s.ok) return nullptr;
  const Bounds bounds = s.bounds();
  if (bounds.max < 0 || upper_bound(s) < 0) return g.boolean(true);
  if (bounds.min >= 0) return g.boolean(false);
  int64_t limit = -s.constant, factor = 0;
  for (const AffineTerm& t : s.terms) factor = std::gcd(factor, t.coefficient);
  s.constant = 0;
  if (factor > 1) {
    for (AffineTerm& t : s.terms) t.coefficient /= factor;
    limit = -floor_div(-limit, factor);  // g*S < c  <=>  S < ceil(c/g)
  }
  if (limit == 1 && is_only_remainder(s))
    if (NodeRef equation = divisible(g, s.terms[0].node)) return equation;
  // g*big + small < limit with 0 <= small < g and g | limit  <=>  big < limit/g
  Sum big, small;
  if (limit != 0)
    if (const int64_t split = split_small(s, limit < 0 ? -limit : limit, big, small))
      return g.lt(build(g, big), g.index(limit / split));
  // The same of c <= g*big + small, written as -(g*big + small) < 1 - c.
  const int64_t least = 1 - limit;
  Sum negated;
  for (const AffineTerm& t : s.terms) negated.add_term(t.node, -t.coefficient);
  if (least != 0 && negated.ok)
    if (const int64_t split = split_small(negated, least < 0 ? -least : least, big, small))
      return g.lt(g.mul(build(g, big), g.index(-1)), g.index(1 - least / split));
  return raw(g, Op::Lt, DType::Bool, build(g, s), g.index(limit));
}

NodeRef normal_equal(Graph& g, Op op, NodeRef a, NodeRef b) {
  Sum s;
  s.add(a, 1);
  s.add(b, -1);
  if (!s.ok) return nullptr;
  const Bounds bounds = s.bounds();
  if (bounds.min > 0 || bounds.max < 0) return g.boolean(op == Op::Ne);
  if (bounds.min == 0 && bounds.max == 0) return g.boolean(op == Op::Eq);
  int64_t factor = 0;
  for (const AffineTerm& t : s.terms) factor = std::gcd(factor, t.coefficient);
  if (factor && s.constant % factor != 0) return g.boolean(op == Op::Ne);
  // The first term gets a positive coefficient, so x == y and y == x are one node.
  int64_t scale = factor == 0 ? 1 : factor;
  if (!s.terms.empty() && s.terms[0].coefficient < 0) scale = -scale;
  for (AffineTerm& t : s.terms) t.coefficient /= scale;
  const int64_t limit = -(s.constant / scale);
  s.constant = 0;
  if (limit == 0 && is_only_remainder(s))
    if (NodeRef equation = divisible(g, s.terms[0].node))
      return op == Op::Eq ? equation : g.alu(Op::Not, {equation});
  return raw(g, op, DType::Bool, build(g, s), g.index(limit));
}

NodeRef normal_extreme(Graph& g, Op op, NodeRef a, NodeRef b) {
  if (a == b) return a;
  Sum d;
  d.add(a, 1);
  d.add(b, -1);
  if (d.ok) {
    const Bounds bounds = d.bounds();
    if (bounds.min >= 0) return op == Op::Max ? a : b;
    if (bounds.max <= 0) return op == Op::Max ? b : a;
  }
  if (a->op == Op::Const || (b->op != Op::Const && comes_later(a, b)))
    return raw(g, op, DType::Index, b, a);
  return nullptr;
}

NodeRef dispatch(Graph& g, const NodeSpec& spec) {
  NodeRef a = spec.src[0], b = spec.src.size() > 1 ? spec.src[1] : nullptr;
  switch (spec.op) {
    case Op::Add: return normal_sum(g, a, b, 1);
    case Op::Neg: return g.mul(a, g.index(-1));
    case Op::Mul: return normal_product(g, a, b);
    case Op::IDiv:
      if (is_int_const(b, 0)) return g.index(0);
      return b->op == Op::Const && b->vmin > 0 ? normal_div(g, a, b->vmin)
                                               : symbolic_div_mod(g, spec.op, a, b);
    case Op::Mod:
      if (is_int_const(b, 0)) return g.index(0);
      return b->op == Op::Const && b->vmin > 0 ? normal_mod(g, a, b->vmin)
                                               : symbolic_div_mod(g, spec.op, a, b);
    case Op::Lt: return normal_less(g, a, b, 0);
    case Op::Le: return normal_less(g, a, b, 1);
    case Op::Eq:
    case Op::Ne: return normal_equal(g, spec.op, a, b);
    case Op::Max:
    case Op::Min: return normal_extreme(g, spec.op, a, b);
    default: return nullptr;
  }
}

bool depends_on(NodeRef n, NodeRef range) {
  if (n->nsrc == 0 || n->op == Op::Range) return n == range;
  for (NodeRef x : Toposort(n))
    if (x == range) return true;
  return false;
}

}  // namespace

NodeRef normalise_index(Graph& g, const NodeSpec& spec) { return dispatch(g, spec); }

bool is_inside_anyway(NodeRef load) {
  NodeRef memory = load->src(0), index = load->src(1);
  const int64_t last = bits(load->dtype) / bits(memory->dtype) - 1;
  return memory->op == Op::Param && index->vmin >= 0 && index->vmax + last < memory->src(0)->vmin;
}

bool split_stride(Graph& g, NodeRef index, NodeRef range, Stride& out) {
  Sum s;
  s.add(index, 1);
  if (!s.ok) return false;
  int64_t coefficient = 0;
  SmallVector<AffineTerm, 8> rest;
  for (const AffineTerm& t : s.terms) {
    if (t.node == range)
      coefficient = t.coefficient;
    else if (depends_on(t.node, range))
      return false;
    else
      rest.push_back(t);
  }
  s.terms = rest;
  out = {build(g, s), coefficient};
  return true;
}

namespace {
int64_t product_divisor(NodeRef n) {
  std::vector<NodeRef> factors;
  if (!factors_of(n, factors)) return 1;
  Int128 product = 1;
  for (NodeRef f : factors) {
    const int64_t d = f->op == Op::Const      ? std::abs(f->vmin)
                      : f->op == Op::Variable ? f->int_arg(2)
                                              : 1;
    if (fits(product * d)) product *= d;
  }
  return static_cast<int64_t>(product);
}
}  // namespace

int64_t divisor_of(NodeRef n) {
  int64_t divisor = 0;
  for (; n->op == Op::Add; n = n->src(0)) divisor = std::gcd(divisor, product_divisor(n->src(1)));
  return std::gcd(divisor, product_divisor(n));
}

Offset split_offset(Graph& g, NodeRef index) {
  NodeRef last = index->op == Op::Add ? index->src(1) : index;
  if (last->op != Op::Const) return {index, 0};
  return {index->op == Op::Add ? index->src(0) : g.index(0), last->vmin};
}

bool at_least_unless(NodeRef less, NodeRef sum, int64_t least) {
  if (less->op != Op::Lt || !is_index(less->src(0)->dtype)) return false;
  // Where a < b does not hold, a - b is not negative, and neither are its multiples.
  for (const int64_t times : {int64_t{1}, divisor_of(sum)}) {
    if (times <= 0 || times > INT32_MAX) continue;
    Sum left;
    left.add(sum, 1);
    left.add(less->src(0), -times);
    left.add(less->src(1), times);
    if (left.ok && left.bounds().min >= least) return true;
  }
  return false;
}

}  // namespace weft
