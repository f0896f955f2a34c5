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

/// The passes that this thread runs while it lives, the inner ones of stages included.
class PassTrace {
 public:
  /// `with_texts`: records hold the states before and after, too.
  explicit PassTrace(bool with_texts) : texts(with_texts), outer_(current_) { current_ = this; }
  ~PassTrace() { current_ = outer_; }
  PassTrace(const PassTrace&) = delete;
  PassTrace& operator=(const PassTrace&) = delete;

  const bool texts;
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
/// Runs it between two looks at the state.
void record_pass(PassTrace& trace, const char* pass, std::string_view subject,
                 FunctionRef<void()> run, FunctionRef<PassView()> view,
                 FunctionRef<std::string()> text);
}  // namespace detail

template <class State>
void run_pass(const Pass<State>& pass, State& state) {
  if (pass.optional && detail::pass_is_switched_off(pass.name)) return;
  PassTrace* trace = PassTrace::current();
  {
    Span span(Context::current().tracer(), pass.name, state.name());
    if (trace)
      detail::record_pass(
          *trace, pass.name, state.name(), [&] { pass.run(state); }, [&] { return state.view(); },
          [&] { return state.text(); });
    else
      pass.run(state);
  }
#ifdef WEFT_DEV
  constexpr bool check = true;
#else
  const bool check = trace != nullptr;
#endif
  if (check && pass.problem) detail::check_pass(pass.name, state.name(), pass.problem(state));
}

template <class State>
void run_passes(std::span<const Pass<State>> passes, State& state) {
  for (const Pass<State>& pass : passes) run_pass(pass, state);
}

}  // namespace weft
