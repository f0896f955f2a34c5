// The rule tables of this room, by subject; simplify.cpp composes them.
#pragma once
#include "weft/rewrite/rule_set.h"

namespace weft {

RuleList<> arithmetic_rules();  ///< data numbers: + * / % min max shifts mulacc
RuleList<> bool_rules();        ///< and or xor not, comparisons
RuleList<> select_rules();      ///< where
RuleList<> cast_rules();        ///< conversions
RuleList<> index_rules();       ///< index arithmetic that Graph::make does not normalise by itself
RuleList<> gated_rules();       ///< masked loads and stores

/// simplify() without gated_rules: what those use themselves. An index may hold loads whose masks
/// say the same things; narrowing inside of narrowing would not end.
NodeRef simplify_ungated(Graph& g, NodeRef root);

}  // namespace weft
