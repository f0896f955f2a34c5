// Rules and patterns as text; docs/rules.md is made here.
#pragma once
#include <span>
#include <string>

#include "weft/base/function_ref.h"
#include "weft/rewrite/rule_set.h"

namespace weft {

std::string to_text(const Pat& p, bool condition = false);  ///< "x * c0 / c1"
std::string domain_text(Domain d);                          ///< "index|bits"
std::string to_text(const Rule& r);    ///< "div.of_mul: (x * c0) / c1 -> x * (c0 / c1) if ..."
std::string source_of(const Rule& r);  ///< "weft/simplify/index_rules.cpp:12"
/// Changes whenever the meaning of the rule's text does: what proofs are keyed by.
uint64_t text_hash(const Rule& r);

/// docs/rules.md. `verdict` says what is known of a rule ("proved (int)", "native", ...).
std::string rules_markdown(std::span<const RuleSetRow> sets,
                           FunctionRef<std::string(const Rule&)> verdict);

}  // namespace weft
