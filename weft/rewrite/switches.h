// WEFT_RULES and WEFT_PASSES: which rules and passes are switched off, by name.
#pragma once
#include <string_view>

#include "weft/rewrite/rule_set.h"

namespace weft {

/// True when `list` ("div.of_mul, -max.*") names the rule or pass; a leading '-' may be given or
/// not.
bool is_switched_off(std::string_view rule, std::string_view list);

/// The first entry of `list` that names none of `known`; empty where there is none.
std::string_view first_unknown(std::string_view list, std::span<const std::string_view> known);

/// Throws an Error when an entry of `list` names no rule of `sets`: of code rules.fixed where it
/// names some of `fixed`, which nothing goes without, else rules.unknown.
void check_switches(std::string_view list, std::span<const RuleSetRow> sets,
                    std::span<const RuleSetRow> fixed = {});

}  // namespace weft
