#include "tests/rules/proof_support.h"
#include "tests/support/generated_file.h"
#include "weft/base/format.h"
#include "weft/rewrite/print.h"

namespace weft {

std::string rules_markdown(std::span<const RuleSetRow> sets,
                           FunctionRef<std::string(const Rule&)> verdict) {
  std::string out =
      "# Rewrite rules\n\nMade by the test EveryProof.IsCurrent; do not edit. `/` is floor "
      "division, "
      "x y z w are any terms of the domain, p q bools, c0..c3 constants.\n";
  for (const RuleSetRow& set : sets) {
    append_format(out, "\n## {} ({} rules)\n\n{}\n\n", set.name, set.entries.size(), set.note);
    out += "| rule | from | to | if | domain | verdict | where |\n|---|---|---|---|---|---|---|\n";
    for (const RuleEntry& e : set.entries) {
      const Rule& r = *e.rule;
      auto code = [](const Pat& p, bool condition = false) {
        return p.empty() ? std::string() : "`" + to_text(p, condition) + "`";
      };
      const std::string source = source_of(r);
      const std::string cells[] = {"`" + std::string(r.name) + "`",
                                   code(r.lhs),
                                   r.rhs.empty() ? "code" : code(r.rhs),
                                   code(r.cond, true),
                                   domain_text(r.domain),
                                   verdict(r),
                                   source.substr(0, source.rfind(':'))};
      for (const std::string& text : cells) out += "| " + cell(text) + " ";
      out += "|\n";
    }
  }
  return out;
}

}  // namespace weft
