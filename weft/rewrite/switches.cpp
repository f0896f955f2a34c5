#include "weft/rewrite/switches.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/function_ref.h"
#include "weft/base/names.h"

namespace weft {
namespace {

/// Calls `f` with each entry until it returns true.
bool any_entry(std::string_view list, FunctionRef<bool(std::string_view)> f) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (!entry.empty() && (entry.front() == ' ' || entry.front() == '-')) entry.remove_prefix(1);
    while (!entry.empty() && entry.back() == ' ') entry.remove_suffix(1);
    if (!entry.empty() && f(entry)) return true;
  }
  return false;
}

bool names(std::string_view entry, std::string_view rule) {
  if (entry.back() != '*') return entry == rule;
  return rule.starts_with(entry.substr(0, entry.size() - 1));
}

std::vector<std::string_view> names_of(std::span<const RuleSetRow> sets) {
  std::vector<std::string_view> out;
  for (const RuleSetRow& set : sets)
    for (const RuleEntry& e : set.entries) out.push_back(e.rule->name);
  return out;
}

}  // namespace

bool is_switched_off(std::string_view rule, std::string_view list) {
  return any_entry(list, [rule](std::string_view entry) { return names(entry, rule); });
}

std::string_view first_unknown(std::string_view list, std::span<const std::string_view> known) {
  std::string_view unknown;
  any_entry(list, [&](std::string_view entry) {
    if (std::ranges::any_of(known, [&](std::string_view name) { return names(entry, name); }))
      return false;
    unknown = entry;
    return true;
  });
  return unknown;
}

void check_switches(std::string_view list, std::span<const RuleSetRow> sets,
                    std::span<const RuleSetRow> fixed) {
  const std::vector<std::string_view> known = names_of(sets);
  const std::string_view entry = first_unknown(list, known);
  if (entry.empty()) return;
  if (first_unknown(entry, names_of(fixed)).empty())
    fail("rules.fixed",
         "WEFT_RULES cannot switch off '{}': that is how kernels are lowered, which nothing goes "
         "without; WEFT_PASSES switches off what is optional, and `weft explain --passes` lists it",
         entry);
  fail("rules.unknown", "WEFT_RULES names no rule: '{}'{}; `weft rules` lists all {}", entry,
       did_you_mean(entry, known), known.size());
}

}  // namespace weft
