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

void record_pass(PassTrace& trace, const char* pass, std::string_view subject,
                 FunctionRef<void()> run, FunctionRef<PassView()> view,
                 FunctionRef<std::string()> text) {
  PassRecord record{pass, std::string(subject)};
  record.before = view();
  if (trace.texts) record.text_before = text();
  {
    const RewriteTrace rules;
    const uint64_t start = now_ns();
    run();
    record.ns = now_ns() - start;
    record.firings = static_cast<int64_t>(rules.steps.size());
  }
  record.after = view();
  if (trace.texts) record.text_after = text();
  trace.records.push_back(std::move(record));
}

}  // namespace detail
}  // namespace weft
