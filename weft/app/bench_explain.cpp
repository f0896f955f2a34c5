// What weft makes of a case: what is computed together and why, and each kernel's time beside what
// the machine would need for it.
#include <map>

#include "weft/app/app.h"
#include "weft/app/bench.h"
#include "weft/app/bench_cases.h"
#include "weft/base/context.h"
#include "weft/base/json_writer.h"
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

/// The case's kernels in the order in which they run, of a context that has compiled none of them.
std::vector<TimedKernel> kernels_of(const Session& session, const SizedCase& one, int64_t repeats) {
  constexpr int64_t kFirstRuns = 3;  // pages are new, functions are captured
  const BenchValues operands = one.operands();
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
  for (const SizedCase& one : chosen_cases(options.which, options.size)) {
    if (!session.json) session.print("{}\n", session.bold(one.name()));
    Context context(session.context.options());
    const ContextScope scope(context);
    const DType dtype = one.which.operands(one.size)[0].dtype;
    for (const TimedKernel& k : kernels_of(session, one, options.repeats))
      print(session, one.name(), k, limits.seconds(k.report.flops, dtype, k.report.bytes));
  }
  return kExitOk;
}

}  // namespace weft
