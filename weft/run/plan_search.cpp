#include "weft/run/plan_search.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/base/log.h"
#include "weft/run/run_state.h"

namespace weft {
namespace {

bool is_symbolic(NodeRef sink) {
  for (NodeRef n : Toposort(sink))
    if (n->op == Op::Variable) return true;
  return false;
}

/// What is found out about a machine by timing may differ the next time: a plan is kept for what
/// the processor says of itself.
PlanKey key_of(const TrialSubject& subject, NodeRef structure) {
  Target target = subject.device->target();
  target.machine.native_bits = Machine().native_bits;
  return {hash_combine(structure->hash, subject.distinct ? 1 : 0), target.name, target.key(),
          target.threads};
}

FoundPlan found(const SearchReport& report) {
  const auto ns = [](double seconds) { return static_cast<int64_t>(seconds * 1e9 + 0.5); };
  const BeamResult& r = report.result;
  // What was ended early is searched again, from there.
  return {r.best, r.finished ? report.width : 0, ns(r.analytic_seconds), ns(r.best_seconds),
          report.kernel};
}

/// Trials that keep what a search has come to after every round: whatever ends it, even the
/// process, that is not lost.
class KeptTrials final : public BeamTrials {
 public:
  KeptTrials(KernelTrials& trials, FunctionRef<void(const BeamResult&)> keep)
      : trials_(trials), keep_(keep) {}
  std::vector<Made> compile(std::span<const LoopPlan> plans) override {
    return trials_.compile(plans);
  }
  double sample(size_t plan, double enough) override { return trials_.sample(plan, enough); }
  bool verify(size_t plan) override { return trials_.verify(plan); }
  double elapsed() override { return trials_.elapsed(); }
  void tell(const BeamResult& result) override { keep_(result); }

 private:
  KernelTrials& trials_;
  FunctionRef<void(const BeamResult&)> keep_;
};

}  // namespace

PlanSearch::PlanSearch(Context& context)
    : context_(context),
      run_(context.get<RunState>()),
      wanted_(context.options().beam > 0 || !context.options().beam_cache.empty()) {}

std::shared_ptr<const LoopPlan> PlanSearch::plan_of(const TrialSubject& subject, NodeRef structure,
                                                    const std::string& lines) {
  if (!wanted_ || is_symbolic(structure)) return nullptr;
  const PlanKey key = key_of(subject, structure);
  const FoundPlan* known = run_.plans.find(key);
  const int64_t width = context_.options().beam;
  if (width > (known ? known->width : 0) && subject.device->computes()) {
    search(subject, key, lines);
    known = run_.plans.find(key);
  }
  return known ? std::make_shared<const LoopPlan>(known->plan) : nullptr;
}

void PlanSearch::search(const TrialSubject& subject, const PlanKey& key, const std::string& lines) {
  Span span(context_.tracer(), "beam", subject.kernel->name);
  // A search writes to memory of its own alone.
  if (auto* interrupt = context_.get_if<InterruptCheck>()) interrupt->harmless = true;
  SearchReport report;
  report.kernel = subject.kernel->name;
  report.device = subject.device->name();
  report.lines = lines;
  report.width = context_.options().beam;
  BeamOptions options;
  options.width = report.width;
  options.seconds = static_cast<double>(context_.options().beam_seconds);
  if (const FoundPlan* known = run_.plans.find(key)) options.known.push_back(known->plan);
  try {
    KernelTrials kernels(subject);
    const auto keep = [&](const BeamResult& result) {
      report.result = result;
      report.seconds = kernels.elapsed();
      report.cycles_per_second = kernels.clock().cycles_per_second();
      report.over = result.finished;
      if (result.searched) run_.plans.store(key, found(report));
      if (run_.observer.searched) run_.observer.searched(report);
      if (run_.recorder) run_.recorder->searched(report);
      log_at(context_, result.finished ? 1 : 2, "{}", text(report));
    };
    KeptTrials trials(kernels, keep);
    BeamResult result;
    beam_search(*subject.kernel, subject.device->target(), options, trials, result);
    if (result.searched) keep(result);
    if (result.refused > 0)
      log_at(context_, 1,
             "{}: {} schedules computed something else and were refused; this is an error of "
             "weft's: please report it with the lines of WEFT_DEBUG=3",
             subject.kernel->name, result.refused);
  } catch (const Error& error) {
    log_at(context_, 1, "no search for {}: {}", subject.kernel->name, error.what());
  }
}

}  // namespace weft
