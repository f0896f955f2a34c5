// What must hold of every registered rule; nothing here is written per rule.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <stdexcept>

#include "tests/rules/instance_support.h"
#include "weft/base/hash.h"
#include "weft/graph/print.h"
#include "weft/lower/lower.h"
#include "weft/rewrite/driver.h"
#include "weft/rewrite/print.h"

namespace weft {
namespace {

constexpr int kBindings = 1000;  // per rule and dtype
constexpr int kInstances = 25;   // among which they are spread
/// Lowering knows scalars and vectors.
bool is_scalar(NodeRef term) {
  const Toposort nodes(term);
  return std::all_of(nodes.begin(), nodes.end(), [](NodeRef n) { return n->rank() == 0; });
}

bool is_lowering(const RuleEntry& e) {
  for (const RuleSetRow& row : lower_rule_sets())
    for (const RuleEntry& of : row.entries)
      if (of.rule == e.rule) return true;
  return false;
}

constexpr int kAttempts = 4000;  // to find terms that meet the condition

/// A rule alone, and random numbers that depend on nothing but its name.
struct Alone {
  explicit Alone(const RuleEntry& e)
      : entry(e),
        lowers(is_lowering(e)),
        matcher("alone", {&e, 1}, {.real = true}),
        random(hash_text(e.rule->name)) {}

  /// A term the rule fires on and what it becomes; null when none was found.
  NodeRef fire(Graph& g, DType d, NodeRef& after, int form = -1) {
    for (int i = 0; i < kAttempts; ++i) {
      // What lowering is asked for need not be in normal form.
      NodeRef n = instance_of(g, *entry.rule, d, random, lowers ? std::max(form, 0) : form);
      if (!n) continue;
      PoorMachine machine(g, i % 2 == 0);
      RuleMatcher::Call call = lowers ? machine.call() : RuleMatcher::Call{g};
      if (lowers && !is_scalar(n)) continue;
      if ((after = matcher.apply(n, call))) return n;
    }
    return nullptr;
  }

  RuleEntry entry;
  bool lowers;
  RuleMatcher matcher;
  Random random;
};

/// Every rule whose left side is made of elementwise ops: those can be built and evaluated.
std::vector<RuleEntry> evaluable_rules() {
  std::vector<RuleEntry> out;
  for (const RuleSetRow& set : all_rule_sets())
    for (const RuleEntry& e : set.entries)
      if (is_evaluable(e)) out.push_back(e);
  return out;
}

TEST(EveryRule, HasAUniqueName) {
  std::set<std::string> names;
  for (const RuleSetRow& set : all_rule_sets())
    for (const RuleEntry& e : set.entries)
      EXPECT_TRUE(names.insert(e.rule->name).second) << to_text(*e.rule);
  EXPECT_GT(names.size(), 100u);
}

TEST(EveryRule, FiresAlone) {
  for (const RuleEntry& e : evaluable_rules()) {
    Alone alone(e);
    int dtypes = 0;
    for (DType d : dtypes_of(e.rule->domain)) {
      Graph g;
      NodeRef after;
      dtypes += alone.fire(g, d, after) != nullptr;
    }
    EXPECT_GT(dtypes, 0) << "never fires: " << to_text(*e.rule) << "  " << source_of(*e.rule);
  }
}

[[noreturn]] void fail_unequal(const Alone& alone, NodeRef before, NodeRef after,
                               const NodeMap<Value>& leaves, Value was, Value is) {
  std::string text = to_text(*alone.entry.rule) + "\n" + expression(before) + " = " + was.text() +
                     "\n" + expression(after) + " = " + is.text() + "\nwhere ";
  const NodeRef both[] = {before, after};
  for (NodeRef n : Toposort(both))
    if (const Value* v = leaves.find(n)) text += expression(n) + " = " + v->text() + "; ";
  throw std::runtime_error(text);
}

/// How many random values both sides were compared on.
int compare_sides(Alone& alone, DType d) {
  Graph g;
  int compared = 0;
  for (int i = 0; i < kInstances; ++i) {
    NodeRef after, before = alone.fire(g, d, after);
    if (!before) break;
    const NodeRef both[] = {before, after};
    for (int k = 0; k < kBindings / kInstances; ++k) {
      const NodeMap<Value> leaves = random_binding(both, alone.random);
      Value was, is;
      if (!evaluate(before, leaves, was) || !evaluate(after, leaves, is)) continue;
      if (!same_value(before, was, is)) fail_unequal(alone, before, after, leaves, was, is);
      ++compared;
    }
  }
  return compared;
}

TEST(EveryRule, HasEqualSides) {
  for (const RuleEntry& e : evaluable_rules()) {
    // How far approximations are from what they stand in for, tests/lower/ulp_test.cpp measures.
    if (e.rule->domain == Domain::Real) continue;
    Alone alone(e);
    int compared = 0;
    try {
      for (DType d : dtypes_of(e.rule->domain)) compared += compare_sides(alone, d);
      EXPECT_GE(compared, kBindings) << to_text(*e.rule);
    } catch (const std::exception& failure) {
      ADD_FAILURE() << failure.what();
    }
  }
}

TEST(EveryRule, FiresInAllCommutedForms) {
  for (const RuleEntry& e : evaluable_rules()) {
    Alone alone(e);
    const int ops = swappable_ops(e.rule->lhs);
    if (ops == 0) continue;
    ASSERT_EQ(alone.matcher.capped_count(), 0u) << to_text(*e.rule);
    for (int form = 0; form < 1 << ops; ++form) {
      bool fired = false;
      for (DType d : dtypes_of(e.rule->domain)) {
        Graph g;
        NodeRef after;
        if (!fired) fired = alone.fire(g, d, after, form) != nullptr;
      }
      EXPECT_TRUE(fired) << "form " << form << " of " << to_text(*e.rule);
    }
  }
}

TEST(EveryRule, IsNotShadowed) {
  for (const Composition& all : all_compositions()) {
    const RuleMatcher together(all.name, all.entries, {.real = true});
    for (size_t i = 0; i < all.entries.size(); ++i) {
      const RuleEntry& e = all.entries[i];
      if (!is_evaluable(e)) continue;
      Alone alone(e);
      std::map<std::string, int> winners;
      for (DType d : dtypes_of(e.rule->domain)) {
        Graph g;
        for (int k = 0; k < 5 && !winners.count(e.rule->name); ++k) {
          NodeRef after, before = alone.fire(g, d, after);
          if (!before) break;
          PoorMachine machine(g, k % 2 == 0);
          RuleMatcher::Call call = all.to_the_end ? RuleMatcher::Call{g} : machine.call();
          if (!together.apply(before, call)) continue;
          ++winners[all.entries[static_cast<size_t>(call.fired)].rule->name];
        }
      }
      std::string by;
      for (const auto& [name, count] : winners) by += name + " ";
      EXPECT_TRUE(winners.count(e.rule->name)) << to_text(*e.rule) << "\n is shadowed by " << by;
    }
  }
}

/// The cost of a pattern's ops, and how often each variable stands in it.
struct Measure {
  int cost = 0;
  std::array<int, kPatSlots> uses{};
};

Measure measure(const Pat& p) {
  Measure m;
  std::vector<bool> constant;  // subterms without variables cost nothing: they are folded
  for (int i = 0; i < p.size; ++i) {
    const PatNode n = p.node[i];
    if (n.kind == PatKind::Any) ++m.uses[n.arg];
    if (n.kind == PatKind::Bind || n.kind == PatKind::Typed) continue;
    const bool op = n.kind == PatKind::Op || n.kind == PatKind::Fn || n.kind == PatKind::CastLike;
    const size_t count = op ? n.nsrc : 0;
    bool all = n.kind != PatKind::Any;
    for (size_t k = 0; k < count; ++k) {
      all = all && constant.back();
      constant.pop_back();
    }
    constant.push_back(all);
    if (!op || all) continue;
    const Op o = static_cast<Op>(n.op);
    const bool dear = n.kind == PatKind::Op && (o == Op::IDiv || o == Op::Mod || o == Op::Div);
    m.cost += dear ? 8 : o == Op::Mul ? 3 : o == Op::Where || o == Op::MulAcc ? 4 : 2;
  }
  return m;
}

/// Smaller under the term measure, whatever the variables stand for.
bool shrinks(const Rule& r) {
  const Measure from = measure(r.lhs), to = measure(r.rhs);
  for (size_t s = 0; s < kPatSlots; ++s)
    if (to.uses[s] > from.uses[s] && s < kFirstConstSlot) {
      // A bound subterm costs at least one op more than a plain variable.
      bool named = false;
      for (int i = 0; i < r.lhs.size; ++i)
        named |= r.lhs.node[i].kind == PatKind::Bind && r.lhs.node[i].arg == s;
      return named && to.cost == 0;
    }
  int fewer = 0;
  for (size_t s = 0; s < kPatSlots; ++s) fewer += from.uses[s] - to.uses[s];
  return to.cost < from.cost || (to.cost == from.cost && (fewer > 0 || r.rhs.size < r.lhs.size));
}

TEST(EveryRule, ShrinksItsTermOrIsAListedMove) {
  for (const RuleSetRow& set : all_rule_sets())
    for (const RuleEntry& e : set.entries)
      EXPECT_TRUE(e.is_native() || e.rule->move || shrinks(*e.rule))
          << to_text(*e.rule) << "  " << source_of(*e.rule);
}

TEST(EveryRule, MeansTheSameInAnyOrder) {
  for (const Composition& all : all_compositions()) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      Random random(seed);
      std::vector<RuleEntry> entries = all.entries;
      std::shuffle(entries.begin(), entries.end(), random);
      const RuleMatcher shuffled(all.name, entries, {});
      Graph g;
      for (const RuleEntry& e : all.entries) {
        if (!is_evaluable(e)) continue;
        for (DType d : dtypes_of(e.rule->domain)) {
          NodeRef n = instance_of(g, *e.rule, d, random, all.to_the_end ? -1 : 0);
          if (n && !all.to_the_end && !is_scalar(n)) continue;
          if (!n || has(e.rule->domain, Domain::Real)) continue;
          PoorMachine machine(g, true);
          RuleMatcher::Call call = all.to_the_end ? RuleMatcher::Call{g} : machine.call();
          NodeRef out =
              all.to_the_end ? detail::fixpoint(n, shuffled, call, {}) : shuffled.apply(n, call);
          if (!out) continue;
          const NodeRef both[] = {n, out};
          for (int k = 0; k < 4; ++k) {
            const NodeMap<Value> leaves = random_binding(both, random);
            Value was, is;
            if (!evaluate(n, leaves, was) || !evaluate(out, leaves, is)) continue;
            ASSERT_TRUE(same_value(n, was, is)) << expression(n) << " = " << was.text() << "\n"
                                                << expression(out) << " = " << is.text();
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace weft
