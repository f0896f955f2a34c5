// Index expressions that matter only where a mask holds: narrow, simplify, widen back.
#include <algorithm>
#include <string>
#include <vector>

#include "weft/base/format.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/walks.h"
#include "weft/rewrite/driver.h"
#include "weft/simplify/rule_tables.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace {

constexpr int64_t kNoMin = INT64_MIN, kNoMax = INT64_MAX;

/// What a mask says of one index term.
struct Fact {
  NodeRef term;
  int64_t min, max;
};

/// -(a + b) as it stands in normal form: the leading coefficient is negative.
bool is_negated(NodeRef n) {
  while (n->op == Op::Add) n = n->src(0);
  return n->op == Op::Mul && n->src(1)->op == Op::Const && n->src(1)->vmin < 0;
}

void learn(std::vector<Fact>& facts, NodeRef term, int64_t min, int64_t max) {
  min = std::max(min, term->vmin);
  max = std::min(max, term->vmax);
  for (Fact& f : facts) {
    if (f.term != term) continue;
    f.min = std::max(f.min, min);
    f.max = std::min(f.max, max);
    return;
  }
  facts.push_back({term, min, max});
}

/// Comparisons of index terms with constants, which is how Graph::make writes them.
std::vector<Fact> facts_of(Graph& g, std::span<const NodeRef> parts) {
  std::vector<Fact> facts;
  for (NodeRef n : parts) {
    if (n->nsrc != 2 || n->src(0)->dtype != DType::Index || n->src(1)->op != Op::Const) continue;
    NodeRef term = n->src(0);
    const int64_t c = n->src(1)->vmin;
    if (n->op == Op::Eq) learn(facts, term, c, c);
    if (n->op != Op::Lt || c == kNoMin) continue;
    if (is_negated(term))
      learn(facts, g.mul(term, g.index(-1)), 1 - c, kNoMax);
    else
      learn(facts, term, kNoMin, c - 1);
  }
  std::erase_if(facts,
                [](const Fact& f) { return f.min == f.term->vmin && f.max == f.term->vmax; });
  return facts;
}

/// A stand-in for a term, with the narrower bounds; null where the facts contradict each other.
NodeRef stand_in(Graph& g, const Fact& f, size_t i) {
  if (f.min > f.max) return nullptr;
  if (f.min == f.max) return g.index(f.min);
  return g.variable(strformat("narrowed.{}", i), f.min, f.max);
}

/// How a sum's stand-in v enters expressions: one of its terms becomes v - (the other terms).
bool solve_sum(Graph& g, NodeRef sum, NodeRef v, NodeMap<NodeRef>& map) {
  for (NodeRef n = sum; n; n = n->op == Op::Add ? n->src(0) : nullptr) {
    NodeRef part = n->op == Op::Add ? n->src(1) : n;
    const bool negative = part->op == Op::Mul && is_int_const(part->src(1), -1);
    NodeRef term = negative ? part->src(0) : part;
    if (term->op == Op::Const || term->op == Op::Mul) continue;
    NodeRef rest = g.sub(sum, part), value = g.sub(v, rest);
    map[term] = negative ? g.mul(value, g.index(-1)) : value;
    return true;
  }
  return false;
}

/// `e` rebuilt with `narrow` (terms to stand-ins), simplified, and with the terms put back; only
/// where that is smaller, so that it comes to rest.
NodeRef through(Graph& g, NodeRef e, NodeMap<NodeRef> narrow, const NodeMap<NodeRef>& widen) {
  // A loop runs as often as it does, mask or no mask: with another size it would be another loop.
  for (NodeRef n : Toposort(e))
    if (n->op == Op::Range && n->src(0)->op != Op::Const && !narrow.contains(n)) narrow[n] = n;
  NodeRef narrowed = substitute(g, e, narrow);
  if (narrowed == e) return e;
  NodeRef out = substitute(g, simplify_ungated(g, narrowed), widen);
  return Toposort(out).size() < Toposort(e).size() ? out : e;
}

NodeRef given(Graph& g, NodeRef e, std::span<const NodeRef> parts) {
  const std::vector<Fact> facts = facts_of(g, parts);
  // Single terms all at once, so that their bounds work together.
  NodeMap<NodeRef> narrow, widen;
  for (size_t i = 0; i < facts.size(); ++i) {
    NodeRef v = stand_in(g, facts[i], i);
    if (!v) return e;  // nothing holds there; the caller drops the mask's false
    if (facts[i].term->op == Op::Add || facts[i].term->op == Op::Mul) continue;
    narrow[facts[i].term] = v;
    if (v->op == Op::Variable)
      widen[v] = facts[i].term;  // a constant stays: others are equal to it
  }
  if (narrow.size()) e = through(g, e, narrow, widen);
  for (size_t i = 0; i < facts.size(); ++i) {
    NodeMap<NodeRef> in, out;
    NodeRef v = stand_in(g, facts[i], i);
    if (facts[i].term->op == Op::Mul)
      in[facts[i].term] = v;
    else if (facts[i].term->op != Op::Add || !solve_sum(g, facts[i].term, v, in))
      continue;
    if (v->op == Op::Variable) out[v] = facts[i].term;
    e = through(g, e, in, out);
  }
  return e;
}

/// Drops what follows from the other members.
std::vector<NodeRef> irredundant(Graph& g, std::vector<NodeRef> parts) {
  for (size_t i = 0; i < parts.size();) {
    std::vector<NodeRef> others;
    for (size_t k = 0; k < parts.size(); ++k)
      if (k != i) others.push_back(parts[k]);
    NodeRef now = given(g, parts[i], others);
    if (is_int_const(now, 0)) return {now};
    if (is_int_const(now, 1))
      parts = others;
    else
      ++i;
  }
  return parts;
}

NodeRef gated_access(const Match& m) {
  NodeRef n = m.root;
  const size_t at = n->nsrc - 1;  // valid is last, the index second
  const GatedIndex was{n->src(1), n->src(at)};
  const GatedIndex now = simplify_with_valid(m.graph, was);
  if (n->op == Op::Load && is_int_const(now.valid, 0))
    return m.graph.constant(Value::of(n->dtype, 0));
  const bool always = is_int_const(now.valid, 1);
  if (!always && now.index == was.index && now.valid == was.valid) return nullptr;
  std::vector<NodeRef> src(n->src().begin(), n->src().end());
  src[1] = now.index;
  src[at] = now.valid;
  if (always) src.pop_back();
  return m.graph.with_sources(n, src);
}

using namespace weft::pat;
constexpr NativeRule<NoContext> kGatedRules[] = {
    native("load.gated", op(Op::Load, z, y, p), gated_access),
    native("store.gated", op(Op::Store, z, y, x, p), gated_access),
};

}  // namespace

namespace {
/// A load inside an index or a mask is executed wherever the kernel comes by, also where the outer
/// mask is false: what it is masked by must not be taken for granted.
bool loads_inside(std::initializer_list<NodeRef> roots) {
  const Toposort order(std::span<const NodeRef>(roots.begin(), roots.size()));
  return std::any_of(order.begin(), order.end(), [](NodeRef n) { return n->op == Op::Load; });
}
}  // namespace

std::vector<NodeRef> conjuncts(NodeRef valid) {
  std::vector<NodeRef> out;
  for (NodeRef n : operands_of(valid, Op::And))
    if (!contains(out, n)) out.push_back(n);
  return out;
}

NodeRef conjunction(Graph& g, std::span<const NodeRef> parts) {
  NodeRef all = g.boolean(true);
  for (NodeRef part : parts) all = g.logical_and(all, part);
  return all;
}

GatedIndex simplify_with_valid(Graph& g, GatedIndex gated) {
  if (loads_inside({gated.index, gated.valid})) return gated;
  const std::vector<NodeRef> parts = irredundant(g, conjuncts(simplify_ungated(g, gated.valid)));
  NodeRef valid = conjunction(g, parts);
  if (is_int_const(valid, 0)) return {g.index(0), valid};
  return {given(g, simplify_ungated(g, gated.index), parts), valid};
}

RuleList<> gated_rules() { return rules(kGatedRules); }

}  // namespace weft
