// What weft makes of a case: what is computed together and why, and each kernel's time beside what
// the machine would need for it.
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "weft/app/app.h"
#include "weft/app/bench.h"
#include "weft/app/bench_cases.h"
#include "weft/app/progress.h"
#include "weft/base/context.h"
#include "weft/base/json_writer.h"
#include "weft/base/thread_pool.h"
#include "weft/run/run_state.h"

namespace weft {
namespace {

/// A kernel or copy of a case, and how it was made.
struct TimedKernel {
  CommandReport report;  // of its first run
  std::vector<double> seconds;
  std::vector<std::string> applied;
};

void print(const Session& session, const std::string& name, const TimedKernel& k, double limit) {
  const double seconds = median(k.seconds);
  if (session.json) {
    JsonWriter json;
    json.begin_object().field("case", name).field("kernel", k.report.name);
    json.field("seconds", seconds).field("flops", k.report.flops).field("bytes", k.report.bytes);
    if (limit > 0) json.field("limit", limit).field("share", limit / seconds);
    json.key("applied").begin_array();
    for (const std::string& line : k.applied) json.value(line);
    session.print("{}\n", json.end_array().end_object().text());
    return;
  }
  session.print("{:<40} {:>10} {:>8.1f} GFLOP/s {:>7.1f} GB/s {}\n", k.report.name,
                time_text(seconds), k.report.flops / seconds * 1e-9,
                k.report.bytes / seconds * 1e-9,
                limit > 0 ? strformat("{:>4.0f} % of the machine", 100 * limit / seconds) : "");
  for (const std::string& line : k.applied) session.print("    {}\n", line);
}

/// What searches found for the cases, with WEFT_BEAM: the cost model's choice beside the best.
class SearchTable {
 public:
  explicit SearchTable(const Session& session) : session_(session) {}

  void add(const SearchReport& report) {
    if (!report.over) return show(report);
    bar_.reset();
    reports_.push_back(report);
  }

  void print() const {
    if (reports_.empty()) return;
    double ratios = 0;
    for (const SearchReport& r : reports_) {
      print(r);
      ratios += std::log(r.result.analytic_seconds / r.result.best_seconds);
    }
    if (!session_.json)
      session_.print(
          "{} kernels: the cost model's choices take {:.3f} times as long as the best "
          "found, in geometric mean\n",
          reports_.size(), std::exp(ratios / static_cast<double>(reports_.size())));
  }

 private:
  void show(const SearchReport& report) {
    if (session_.json) return;
    const int64_t budget = session_.context.options().beam_seconds;
    if (!bar_)
      bar_ = std::make_unique<ProgressBar>(report.kernel, budget, "s of search",
                                           session_.context.options(), session_.err);
    bar_->update(static_cast<int64_t>(report.seconds),
                 strformat("{} plans", report.result.compiled));
  }

  /// The model knows one core's cycles; a kernel that is worth sharing has all of them.
  double predicted(const SearchReport& r, double cycles) const {
    if (r.cycles_per_second <= 0) return 0;
    const auto workers = static_cast<double>(
        cycles > kSharedCycles ? std::max(1, session_.context.thread_pool().size()) : 1);
    return cycles / r.cycles_per_second / workers;
  }

  void print(const SearchReport& s) const {
    const BeamResult& r = s.result;
    const double first = predicted(s, r.analytic_cycles), best = predicted(s, r.best_cycles);
    if (session_.json) {
      JsonWriter json;
      json.begin_object().field("search", s.kernel).field("predicted", first);
      json.field("measured", r.analytic_seconds).field("best_predicted", best);
      json.field("best", r.best_seconds).field("plan", text(r.best));
      json.field("analytic_plan", text(r.analytic)).field("compiled", r.compiled);
      session_.print("{}\n", json.end_object().text());
      return;
    }
    session_.print("{:<40} predicted {:>10} measured {:>10}, best {:>10} {:>10}: {:.3f}{}\n",
                   s.kernel, time_text(first), time_text(r.analytic_seconds), time_text(best),
                   time_text(r.best_seconds), r.analytic_seconds / r.best_seconds,
                   r.best == r.analytic ? "" : strformat("  {}", text(r.best)));
  }

  static constexpr double kSharedCycles = 5e4;
  const Session& session_;
  std::vector<SearchReport> reports_;
  std::unique_ptr<ProgressBar> bar_;
};

/// Made without a search: what makes them is no part of a case.
BenchValues operands_of(const SizedCase& one, Context& context) {
  Options& options = context.mutable_options();
  const int64_t width = std::exchange(options.beam, 0);
  const std::string file = std::exchange(options.beam_cache, "");
  BenchValues operands = one.operands();
  options.beam = width;
  options.beam_cache = file;
  return operands;
}

/// The case's kernels in the order in which they run, of a context that has compiled none of them.
std::vector<TimedKernel> kernels_of(const Session& session, const SizedCase& one, int64_t repeats,
                                    SearchTable& searches) {
  constexpr int64_t kFirstRuns = 3;  // pages are new, functions are captured
  const BenchValues operands = operands_of(one, Context::current());
  const auto compute = one.computation();
  std::map<std::string, std::vector<std::string>> applied;  // by kernel
  std::map<size_t, TimedKernel> by_step;
  CompileObserver& observer = Context::current().get<RunState>().observer;
  observer.compiled = [&](const CompileReport& report) {
    for (const KernelReport& k : report.kernels) applied[k.name] = k.applied;
    if (session.json) return;
    for (const DecisionReport& d : report.decisions)
      if (d.staged) session.print("{}\n", text(d));
  };
  observer.searched = [&](const SearchReport& report) { searches.add(report); };
  observer.ran = [&](const CommandReport& report) {
    TimedKernel& k = by_step.try_emplace(report.step, TimedKernel{report, {}, {}}).first->second;
    k.seconds.push_back(report.seconds);
  };
  for (int64_t i = 0; i < kFirstRuns + repeats; ++i) {
    if (i == kFirstRuns) by_step.clear();
    realize(compute(operands));
  }
  observer = {};
  std::vector<TimedKernel> kernels;
  for (auto& [step, kernel] : by_step) {
    kernel.applied = applied[kernel.report.name];
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

}  // namespace

int run_bench_explain(const Session& session, const BenchOptions& options) {
  MachineLimits limits(session.context);
  SearchTable searches(session);
  for (const SizedCase& one : chosen_cases(options.which, options.size)) {
    if (!session.json) session.print("{}\n", session.bold(one.name()));
    Context context(session.context.options());
    const ContextScope scope(context);
    const DType dtype = one.which.operands(one.size)[0].dtype;
    for (const TimedKernel& k : kernels_of(session, one, options.repeats, searches))
      print(session, one.name(), k, limits.seconds(k.report.flops, dtype, k.report.bytes));
  }
  searches.print();
  return kExitOk;
}

}  // namespace weft
