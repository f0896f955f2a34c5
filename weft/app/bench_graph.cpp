#include "weft/app/bench.h"
#include "weft/app/bench_models.h"
#include "weft/base/context.h"
#include "weft/base/spans.h"

namespace weft {

namespace {

// One cold step: its graph, then everything that realize() does.
struct ColdStep {
  double build_ms = 0, realize_ms = 0;
  int64_t kernels = 0, compiled = 0;
  std::vector<Tracer::Total> spans;
};

// Each measurement has a context of its own, so that no schedule and no kernel is known.
ColdStep cold_step(Options options, const std::string& model_name) {
  Context context(std::move(options));
  const ContextScope scope(context);
  const std::unique_ptr<BenchModel> model = make_bench_model(model_name);
  Tracer& tracer = context.tracer();
  const int64_t kernels = tracer.value(Counter::Kernels);
  const int64_t compiled = tracer.value(Counter::KernelsCompiled);
  tracer.start();

  ColdStep result;
  const uint64_t start = now_ns();
  const std::vector<Tensor> changed = model->step();
  const uint64_t built = now_ns();
  realize(changed);
  const uint64_t done = now_ns();
  result.build_ms = static_cast<double>(built - start) * 1e-6;
  result.realize_ms = static_cast<double>(done - built) * 1e-6;
  result.kernels = tracer.value(Counter::Kernels) - kernels;
  result.compiled = tracer.value(Counter::KernelsCompiled) - compiled;
  result.spans = tracer.totals();
  return result;
}

BenchRows rows_of(const std::vector<ColdStep>& steps, const std::string& model) {
  const auto median_of = [&](auto field) {
    std::vector<double> values;
    for (const ColdStep& step : steps) values.push_back(step.*field);
    return median(std::move(values));
  };
  const ColdStep& last = steps.back();
  BenchRows rows = {
      {model + " build graph", median_of(&ColdStep::build_ms), "ms"},
      {model + " realize, cold", median_of(&ColdStep::realize_ms), "ms"},
      {model + " kernels", static_cast<double>(last.kernels), "launched"},
      {model + " distinct kernels", static_cast<double>(last.compiled), "compiled"},
  };
  for (const Tracer::Total& span : last.spans) {
    rows.push_back({strformat("  {}", span.name), static_cast<double>(span.ns) * 1e-6, "ms", 0,
                    strformat("{} spans", span.count)});
  }
  return rows;
}

BenchRows cold_steps(const Session& session, const BenchOptions& options, const char* device) {
  Options cold = session.context.options();
  if (device != nullptr) cold.dev = device;
  cold.cache = false;
  std::vector<ColdStep> steps;
  for (int64_t i = 0; i < options.repeats; ++i) steps.push_back(cold_step(cold, options.model));
  return rows_of(steps, options.model);
}

}  // namespace

BenchRows bench_schedule(const Session& session, const BenchOptions& options) {
  return cold_steps(session, options, "NULL");
}

BenchRows bench_compile(const Session& session, const BenchOptions& options) {
  return cold_steps(session, options, nullptr);
}

}  // namespace weft
