#include "weft/app/bench.h"
#include "weft/app/bench_models.h"
#include "weft/app/commands.h"
#include "weft/base/context.h"
#include "weft/base/spans.h"

namespace weft {

namespace {

double milliseconds(uint64_t ns) { return static_cast<double>(ns) * 1e-6; }

// One cold step: its graph, then everything that realize() does; and the next one, which finds its
// schedule and kernels in the caches.
struct ColdStep {
  double build_ms = 0, realize_ms = 0;  // realizing includes scheduling and kernels
  double again_ms = 0;                  // graph and realize of the next step
  int64_t kernels = 0;
  int64_t spilled = 0, repeated = 0, stack_bytes = 0;  // of machine code
  std::vector<Tracer::Total> spans;

  Tracer::Total of(std::string_view name) const {
    for (const Tracer::Total& span : spans)
      if (span.name == name) return span;
    return {};
  }
  // Of the median kernel, from schedule to callable: loading is one call for all of them.
  double kernel_us() const {
    const Tracer::Total each = of("translate"), load = of("load");
    if (each.count == 0) return 0;
    return (static_cast<double>(each.median_ns) +
            static_cast<double>(load.ns) / static_cast<double>(each.count)) *
           1e-3;
  }
};

// Each measurement has a context of its own, so that no schedule and no kernel is known.
ColdStep cold_step(Options options, const std::string& model_name) {
  Context context(std::move(options));
  const ContextScope scope(context);
  const std::unique_ptr<BenchModel> model = make_bench_model(model_name);
  Tracer& tracer = context.tracer();
  ColdStep result;
  const auto count = [&](int sign) {
    result.kernels += sign * tracer.value(Counter::Kernels);
    result.spilled += sign * tracer.value(Counter::SpilledRegisters);
    result.repeated += sign * tracer.value(Counter::RepeatedValues);
    result.stack_bytes += sign * tracer.value(Counter::StackBytes);
  };
  count(-1);
  tracer.start();

  const uint64_t start = now_ns();
  const std::vector<Tensor> changed = model->step();
  const uint64_t built = now_ns();
  realize(changed);
  const uint64_t done = now_ns();
  result.build_ms = milliseconds(built - start);
  result.realize_ms = milliseconds(done - built);
  count(1);
  result.spans = tracer.totals();
  tracer.stop();
  const uint64_t again = now_ns();
  realize(model->step());
  result.again_ms = milliseconds(now_ns() - again);
  return result;
}

double median_of(const std::vector<ColdStep>& steps, FunctionRef<double(const ColdStep&)> value) {
  std::vector<double> values;
  for (const ColdStep& step : steps) values.push_back(value(step));
  return median(std::move(values));
}

// Sums over all threads; a stage's span holds those of its parts ("translate" most of the others).
BenchRows stage_rows(const std::vector<ColdStep>& steps, const std::string& model) {
  BenchRows rows;
  for (const Tracer::Total& span : steps.back().spans) {
    const double ms =
        median_of(steps, [&](const ColdStep& s) { return milliseconds(s.of(span.name).ns); });
    const double one = median_of(
        steps, [&](const ColdStep& s) { return milliseconds(s.of(span.name).median_ns); });
    rows.push_back({strformat("{} span {}", model, span.name), ms, "ms", 0,
                    strformat("{} of them, median {:.1f} us", span.count, one * 1e3)});
  }
  return rows;
}

BenchRows rows_of(const std::vector<ColdStep>& steps, const std::string& model) {
  const ColdStep& last = steps.back();
  BenchRows rows = {
      {model + " build graph", median_of(steps, [](auto& s) { return s.build_ms; }), "ms"},
      {model + " schedule, cold",
       median_of(steps, [](auto& s) { return milliseconds(s.of("schedule").ns); }), "ms"},
      {model + " realize, cold", median_of(steps, [](auto& s) { return s.realize_ms; }), "ms"},
      {model + " second step", median_of(steps, [](auto& s) { return s.again_ms; }), "ms", 0,
       "its graph and realize, schedule and kernels from the caches"},
      {model + " kernels", static_cast<double>(last.kernels), "launched"},
      {model + " distinct kernels", static_cast<double>(last.of("lower").count), "lowered"},
      {model + " median kernel", median_of(steps, [](auto& s) { return s.kernel_us(); }), "us", 0,
       "from schedule to callable"},
      {model + " spilled registers", static_cast<double>(last.spilled), "values", 0,
       strformat("{} more are loaded again, {} bytes of stack", last.repeated, last.stack_bytes)},
      {model + " stack", static_cast<double>(last.stack_bytes), "bytes"},
  };
  for (BenchRow& row : stage_rows(steps, model)) rows.push_back(std::move(row));
  return rows;
}

void cold_steps(const Session& session, const BenchOptions& options, std::string device,
                BenchReport report) {
  Options cold = session.context.options();
  cold.dev = std::move(device);
  cold.cache = false;
  std::vector<ColdStep> steps;
  for (int64_t i = 0; i < options.repeats; ++i) steps.push_back(cold_step(cold, options.model));
  for (const BenchRow& row : rows_of(steps, options.model)) report(row);
}

}  // namespace

void bench_schedule(const Session& session, const BenchOptions& options, BenchReport report) {
  cold_steps(session, options, null_device(session.context, session.context.options().dev), report);
}

void bench_compile(const Session& session, const BenchOptions& options, BenchReport report) {
  cold_steps(session, options, session.context.options().dev, report);
}

}  // namespace weft
