#include "weft/run/passes.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/log.h"
#include "weft/base/names.h"
#include "weft/codegen/codegen.h"
#include "weft/lower/lower.h"
#include "weft/optimize/passes.h"
#include "weft/render/render.h"
#include "weft/rewrite/switches.h"
#include "weft/run/arenas.h"
#include "weft/run/bind.h"
#include "weft/run/compile_report.h"
#include "weft/run/load.h"
#include "weft/run/normalise.h"
#include "weft/run/run_state.h"
#include "weft/schedule/passes.h"
#include "weft/simplify/simplify.h"

namespace weft {

std::vector<PassRow> all_passes() {
  std::vector<PassRow> rows;
  const auto add = [&rows](const auto&... tables) {
    const auto add_table = [&rows](const auto& passes) {
      for (const auto& p : passes)
        rows.push_back({p.name, p.after, p.problem != nullptr, p.optional});
    };
    (add_table(tables), ...);
  };
  add(normalise_passes(), schedule_passes(), optimize_passes(), lower_passes(), codegen_passes(),
      render_passes(), load_passes(), plan_passes(), bind_passes());
  return rows;
}

std::vector<RuleSetRow> compiler_rule_sets() {
  std::vector<RuleSetRow> sets = simplify_rule_sets();
  for (RuleSetRow& set : lower_rule_sets()) sets.push_back(std::move(set));
  return sets;
}

void check_switched_passes(std::string_view list) {
  if (list.empty()) return;
  std::vector<std::string_view> known;
  for (const PassRow& p : all_passes())
    if (p.optional) known.push_back(p.name);
  if (const std::string_view entry = first_unknown(list, known); !entry.empty())
    fail("passes.unknown",
         "WEFT_PASSES names no optional pass: '{}'{}; `weft explain --passes` lists them", entry,
         did_you_mean(entry, known));
}

std::optional<PassTrace> trace_passes(Context& context, PassWatcher* watcher) {
  const CompileObserver& observer = context.get<RunState>().observer;
  const bool records = observer.passed || log_enabled(context, 8);
  return records || watcher
             ? std::optional<PassTrace>(std::in_place, records, observer.texts, watcher)
             : std::nullopt;
}

void tell_passes(Context& context, std::span<const PassRecord> passes) {
  const CompileObserver& observer = context.get<RunState>().observer;
  for (const PassRecord& p : passes) {
    log_at(context, 8, "{}", text(p));
    if (observer.passed) observer.passed(p);
  }
}

void tell_passes(Context& context) {
  if (PassTrace* trace = PassTrace::current()) tell_passes(context, trace->take());
}

}  // namespace weft
