// Verifiers: what a graph may contain at some step, as rows that a node must match one of.
#pragma once
#include "weft/rewrite/rule_set.h"

namespace weft {

/// A row: nodes of this form are allowed where the condition holds and `check` (if any) agrees.
struct SpecRow {
  Rule rule;
  bool (*check)(const Match&);
};

consteval SpecRow spec(const char* name, const Pat& lhs, const Pat& cond, Domain domain = pat::kAny,
                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  detail::check_lhs(name, lhs);
  detail::check_cond(lhs, cond);
  return {{name, file, line, domain, true, lhs, Pat(), cond}, nullptr};
}
consteval SpecRow spec(const char* name, const Pat& lhs, bool (*check)(const Match&) = nullptr,
                       const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  detail::check_lhs(name, lhs);
  return {{name, file, line, pat::kAny, true, lhs, Pat(), Pat()}, check};
}

class SpecSet {
 public:
  SpecSet(std::string name, std::span<const SpecRow> rows);

  /// Throws an InternalError naming `step`, the node and the rows that fit its form but refused.
  void verify(Graph& g, NodeRef root, std::string_view step) const;
  bool allows(Graph& g, NodeRef n) const;
  const std::string& name() const { return matcher_.name(); }

 private:
  RuleMatcher matcher_;
};

}  // namespace weft
