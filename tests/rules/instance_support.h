// Terms made from a rule's left side, for tests that no one has to write.
#pragma once
#include <random>
#include <string>
#include <vector>

#include "weft/graph/node_map.h"
#include "weft/lower/legaliser.h"
#include "weft/rewrite/rule_set.h"

namespace weft {

using Random = std::mt19937_64;

/// The dtypes a rule's variables are tried with.
std::vector<DType> dtypes_of(Domain domain);

/// A term that has the form of `rule.lhs`, with variables of dtype `main`. Constants are biased to
/// what conditions like. Operands of the k-th commutative op stand in pattern order where bit k of
/// `form` is 0, swapped where it is 1; form < 0 leaves the order to Graph::make. Null where this
/// dtype cannot have the form.
NodeRef instance_of(Graph& g, const Rule& rule, DType main, Random& random, int form = -1);
/// How many commutative ops instance_of() can swap.
int swappable_ops(const Pat& lhs);

/// Random values for the leaves (params and variables) below the roots.
NodeMap<Value> random_binding(std::span<const NodeRef> roots, Random& random);
/// The value of a term of constants, params, variables and elementwise ops; false where an op has
/// none.
bool evaluate(NodeRef root, const NodeMap<Value>& leaves, Value& out);
/// Bit for bit, except that any NaN equals any NaN and that the sign of a zero is free where the
/// term holds a max or min (they do not distinguish the zeros).
bool same_value(NodeRef term, Value a, Value b);

/// True when every op of the rule's left side is one evaluate() knows.
bool is_evaluable(const RuleEntry& e);

/// The rule sets under test, by the engine they work in together.
struct Composition {
  std::string name;
  std::vector<RuleEntry> entries;
  bool to_the_end;  ///< until none fires; else once at what is asked for
};
/// What rules that ask for a machine get: one that has no op but those all machines have, and f64
/// or not.
class PoorMachine {
 public:
  PoorMachine(Graph& g, bool has_f64);
  RuleMatcher::Call call();

 private:
  Target target_;
  lower::Legaliser legaliser_;
};
std::vector<RuleSetRow> all_rule_sets();
std::vector<Composition> all_compositions();

}  // namespace weft
