#include "weft/rewrite/pass.h"

#include "weft/base/error.h"
#include "weft/rewrite/switches.h"

namespace weft {

thread_local PassTrace* PassTrace::current_ = nullptr;

namespace detail {

bool pass_is_switched_off(std::string_view pass) {
  const std::string& list = Context::current().options().passes;
  return !list.empty() && is_switched_off(pass, list);
}

void check_pass(const char* pass, std::string_view subject, const char* problem) {
  if (problem) internal_error(pass, "after it {} has {}", subject, problem);
}

void record_pass(PassTrace& trace, const char* pass, const PassSubject& subject, bool follows,
                 FunctionRef<void()> run) {
  PassRecord record{pass};
  if (trace.keeps_records) record.before = subject.view();
  if (trace.texts) record.text_before = subject.text();
  PassWatcher* watcher = trace.watcher;
  const StateParts before = watcher && !follows ? subject.parts() : StateParts{};
  const size_t watched =
      watcher ? watcher->begin(pass, subject.name, follows ? nullptr : &before) : 0;
  const RewriteTrace rules;
  const uint64_t start = now_ns();
  run();
  record.ns = now_ns() - start;
  record.firings = static_cast<int64_t>(rules.steps.size());
  if (watcher) watcher->end(watched, record.ns, rules.steps, subject.parts());
  if (!trace.keeps_records) return;
  record.subject = subject.name;
  record.after = subject.view();
  if (trace.texts) record.text_after = subject.text();
  trace.records.push_back(std::move(record));
}

}  // namespace detail
}  // namespace weft
