#include "weft/rewrite/trace.h"

namespace weft {
namespace {
thread_local RewriteTrace* current_trace = nullptr;
}

RewriteTrace::RewriteTrace() : outer_(current_trace) { current_trace = this; }
RewriteTrace::~RewriteTrace() { current_trace = outer_; }
RewriteTrace* RewriteTrace::current() { return current_trace; }

void RewriteCounts::add(const RuleMatcher& set, std::span<const RuleCounts> counts) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < counts.size(); ++i) {
    RuleCounts& sum = by_rule_[set.entries()[i].rule->name];
    sum.tried += counts[i].tried;
    sum.fired += counts[i].fired;
    sum.ns += counts[i].ns;
  }
}

RuleCounts RewriteCounts::of(std::string_view rule) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_rule_.find(rule);
  return found == by_rule_.end() ? RuleCounts{} : found->second;
}

}  // namespace weft
