#include "weft/rewrite/verify.h"

#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/rewrite/print.h"

namespace weft {
namespace {

std::vector<RuleEntry> entries_of(std::span<const SpecRow> rows) {
  // A row that agrees answers with the node itself.
  const auto call = [](void (*check)(), const Match& m, void*) -> NodeRef {
    return !check || reinterpret_cast<bool (*)(const Match&)>(check)(m) ? m.root : nullptr;
  };
  std::vector<RuleEntry> out;
  for (const SpecRow& r : rows)
    out.push_back({&r.rule, reinterpret_cast<void (*)()>(r.check), call});
  return out;
}

}  // namespace

SpecSet::SpecSet(std::string name, std::span<const SpecRow> rows)
    : matcher_(std::move(name), entries_of(rows), {}) {}

bool SpecSet::allows(Graph& g, NodeRef n) const {
  RuleMatcher::Call call{g};
  call.accept_same = true;
  return matcher_.apply(n, call) != nullptr;
}

void SpecSet::verify(Graph& g, NodeRef root, std::string_view step) const {
  for (NodeRef n : Toposort(root)) {
    if (allows(g, n)) continue;
    std::vector<RuleCounts> counts(matcher_.entries().size());
    RuleMatcher::Call call{g};
    call.accept_same = true;
    call.counts = counts.data();
    matcher_.apply(n, call);
    std::string refused;
    for (size_t i = 0; i < counts.size(); ++i)
      if (counts[i].tried)
        refused += (refused.empty() ? "" : ", ") + std::string(matcher_.entries()[i].rule->name);
    internal_error("verify", "after {}: not a node of {}: {} (rows that refused it: {})", step,
                   name(), expression(n),
                   refused.empty() ? "none, its op is not allowed" : refused);
  }
}

}  // namespace weft
