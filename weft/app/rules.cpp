#include <vector>

#include "weft/app/app.h"
#include "weft/app/commands.h"
#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/rewrite/print.h"
#include "weft/run/passes.h"

namespace weft {

namespace {

bool contains(std::string_view text, const std::string& part) {
  return text.find(part) != std::string_view::npos;
}

void print_rule(const Session& session, const RuleSetRow& set, const RuleEntry& entry) {
  const Rule& rule = *entry.rule;
  if (!session.json) {
    session.print("  {}\n", to_text(rule));
    return;
  }
  JsonWriter json;
  json.begin_object().field("set", set.name).field("rule", rule.name);
  json.field("domain", domain_text(rule.domain)).field("text", to_text(rule));
  json.field("native", entry.is_native()).field("source", source_of(rule)).end_object();
  session.print("{}\n", json.text());
}

}  // namespace

int run_rules(const Session& session, const std::string& name) {
  size_t shown = 0;
  for (const RuleSetRow& set : compiler_rule_sets()) {
    const bool whole = contains(set.name, name);
    bool titled = false;
    for (const RuleEntry& entry : set.entries) {
      if (!whole && !contains(entry.rule->name, name)) continue;
      if (!titled && !session.json) {
        session.print("{}  {}\n", session.bold(set.name), set.note);
      }
      titled = true;
      print_rule(session, set, entry);
      ++shown;
    }
  }
  if (shown == 0) {
    fail("rules", "no rule or set has '{}' in its name; `weft rules` lists them all", name);
  }
  if (!session.json) session.print("\n{} rules\n", shown);
  return kExitOk;
}

}  // namespace weft
