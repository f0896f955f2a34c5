// Passes: the steps of a stage as a table, and the driver that runs, checks and records them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/context.h"
#include "weft/base/function_ref.h"
#include "weft/rewrite/pass_record.h"
#include "weft/rewrite/trace.h"

namespace weft {

/// A step of a stage. `State` is what the stage works on; it has
///   std::string_view name() const;  // of the kernel, or of what else is compiled
///   PassView view() const;
///   std::string text() const;       // where it is a graph, what parse_graph() reads back
/// and, where a recording is to have it,
///   StateParts parts() const;
template <class State>
struct Pass {
  const char* name;   ///< "lower.unroll": stage and step; stable, its span has it too
  const char* after;  ///< what holds afterwards, in words
  void (*run)(State&);
  /// What does not hold afterwards, null where everything does. Asked in dev builds, and where a
  /// PassTrace is.
  const char* (*problem)(const State&) = nullptr;
  /// An optimisation: WEFT_PASSES may switch it off, and what is computed stays the same.
  bool optional = false;

  constexpr Pass as_optional() const {
    Pass p = *this;
    p.optional = true;
    return p;
  }
};

/// Who writes down what a thread's passes do, as they do it.
class PassWatcher {
 public:
  virtual ~PassWatcher() = default;
  /// A pass is about to run, within those that have begun and not ended. `before`: null where the
  /// state is as the last pass that has ended here left it. Returns what end() is to be told; a
  /// pass that throws never ends.
  virtual size_t begin(const char* pass, std::string_view subject, const StateParts* before) = 0;
  virtual void end(size_t pass, uint64_t ns, std::span<const RewriteStep> rules,
                   const StateParts& after) = 0;
};

/// The passes that this thread runs while it lives, the inner ones of stages included.
class PassTrace {
 public:
  /// `with_texts`: records hold the states before and after, too.
  explicit PassTrace(bool with_texts) : PassTrace(true, with_texts, nullptr) {}
  /// `with_records`: it keeps any.
  PassTrace(bool with_records, bool with_texts, PassWatcher* watched_by)
      : keeps_records(with_records), texts(with_texts), watcher(watched_by), outer_(current_) {
    current_ = this;
  }
  ~PassTrace() { current_ = outer_; }
  PassTrace(const PassTrace&) = delete;
  PassTrace& operator=(const PassTrace&) = delete;

  const bool keeps_records, texts;
  PassWatcher* const watcher;
  std::vector<PassRecord> records = {};
  std::vector<PassRecord> take() { return std::move(records); }

  /// This thread's innermost one, or null.
  static PassTrace* current() { return current_; }

 private:
  PassTrace* outer_;
  static thread_local PassTrace* current_;
};

namespace detail {
/// Whether this thread's context has it in WEFT_PASSES.
bool pass_is_switched_off(std::string_view pass);
/// Throws InternalError where `problem` is not null.
void check_pass(const char* pass, std::string_view subject, const char* problem);
/// A state to look at.
struct PassSubject {
  std::string_view name;
  FunctionRef<PassView()> view;
  FunctionRef<std::string()> text;
  FunctionRef<StateParts()> parts;
};
/// Runs it between two looks at the state. `follows`: that is as the pass before it left it.
void record_pass(PassTrace& trace, const char* pass, const PassSubject& subject, bool follows,
                 FunctionRef<void()> run);

template <class State>
StateParts parts_of(const State& state) {
  if constexpr (requires { state.parts(); })
    return state.parts();
  else
    return {};
}
}  // namespace detail

/// False where it is switched off. `follows`: nothing has changed the state since another pass did.
template <class State>
bool run_pass(const Pass<State>& pass, State& state, bool follows = false) {
  if (pass.optional && detail::pass_is_switched_off(pass.name)) return false;
  PassTrace* trace = PassTrace::current();
  {
    Span span(Context::current().tracer(), pass.name, state.name());
    if (trace)
      detail::record_pass(*trace, pass.name,
                          {state.name(), [&] { return state.view(); }, [&] { return state.text(); },
                           [&] { return detail::parts_of(state); }},
                          follows, [&] { pass.run(state); });
    else
      pass.run(state);
  }
#ifdef WEFT_DEV
  constexpr bool check = true;
#else
  const bool check = trace != nullptr && trace->keeps_records;
#endif
  if (check && pass.problem) detail::check_pass(pass.name, state.name(), pass.problem(state));
  return true;
}

template <class State>
void run_passes(std::span<const Pass<State>> passes, State& state) {
  bool follows = false;
  for (const Pass<State>& pass : passes) follows |= run_pass(pass, state, follows);
}

}  // namespace weft
