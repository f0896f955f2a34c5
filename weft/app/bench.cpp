#include "weft/app/bench.h"

#include <algorithm>

#include "weft/app/app.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/base/spans.h"

namespace weft {

namespace {

struct Benchmark {
  const char* name;
  void (*run)(const Session&, const BenchOptions&, BenchReport);
};
constexpr Benchmark kBenchmarks[] = {
    {"schedule", bench_schedule},       {"compile", bench_compile}, {"dispatch", bench_dispatch},
    {"elementwise", bench_elementwise}, {"reduce", bench_reduce},   {"gemm", bench_gemm},
    {"lengths", bench_lengths},
};

void print_json(const Session& session, const BenchRow& row) {
  JsonWriter json;
  json.begin_object().field("name", row.name).field("value", row.value).field("unit", row.unit);
  if (row.limit > 0) {
    json.field("limit", row.limit).field("share", row.value / row.limit);
  }
  if (!row.note.empty()) json.field("note", row.note);
  session.print("{}\n", json.end_object().text());
}

void print_text(const Session& session, const BenchRow& row) {
  session.print("{:<36} {:>12.4g} {:<8}", row.name, row.value, row.unit);
  if (row.limit > 0) {
    session.print(" {:>5.1f} % of the machine's {:.4g}", 100 * row.value / row.limit, row.limit);
  }
  session.print("{}{}\n", row.note.empty() ? "" : "  ", row.note);
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_seconds(int64_t repeats, FunctionRef<void()> run) {
  run();
  std::vector<double> seconds;
  for (int64_t i = 0; i < repeats; ++i) {
    const uint64_t start = now_ns();
    run();
    seconds.push_back(static_cast<double>(now_ns() - start) * 1e-9);
  }
  return median(std::move(seconds));
}

std::string time_text(double seconds) {
  return seconds < 1e-3 ? strformat("{:.1f} us", seconds * 1e6)
                        : strformat("{:.2f} ms", seconds * 1e3);
}

int run_bench(const Session& session, const BenchOptions& options) {
  const bool compares = options.what == "cases" || options.what == "sweep";
  const bool explains = options.what == "explain";
  if (!compares && !options.against.empty())
    fail("bench", "--against goes with cases and sweep, not with {}", options.what);
  if (!compares && options.busy >= 0)
    fail("bench", "--busy goes with cases and sweep, not with {}", options.what);
  if (!compares && !explains && options.what != "lengths" &&
      (!options.which.empty() || options.size > 0))
    fail("bench", "--case and --size go with cases, sweep, explain and lengths, not with {}",
         options.what);
  if (options.quick && options.what != "lengths")
    fail("bench", "--quick goes with lengths, not with {}", options.what);
  if (compares) return run_bench_cases(session, options);
  if (explains) return run_bench_explain(session, options);
  bool found = false;
  for (const Benchmark& benchmark : kBenchmarks) {
    if (options.what != benchmark.name && options.what != "all") continue;
    found = true;
    benchmark.run(session, options, [&](const BenchRow& row) {
      session.json ? print_json(session, row) : print_text(session, row);
      std::fflush(session.out);
    });
  }
  if (!found) {
    fail("bench", "there is no benchmark '{}'; `weft bench --help` lists them", options.what);
  }
  return kExitOk;
}

}  // namespace weft
