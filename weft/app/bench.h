// Benchmarks: rows of a measured value, its unit, and its ratio to a limit measured in the same
// run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/app/commands.h"
#include "weft/base/function_ref.h"
#include "weft/target/machine_limits.h"

namespace weft {

struct BenchRow {
  std::string name;
  double value;
  std::string unit;  // "ms", "GB/s", "GFLOP/s"
  double limit = 0;  // what the machine could do, in the same unit; 0: not known
  std::string note = {};
};

using BenchRows = std::vector<BenchRow>;
/// Takes each row as soon as it is measured.
using BenchReport = FunctionRef<void(const BenchRow&)>;

// Seconds of the median of `repeats` calls, after one that is not counted.
double median_seconds(int64_t repeats, FunctionRef<void()> run);
double median(std::vector<double> values);

// bench schedule, bench compile: a training step's graph from nothing (bench_graph.cpp).
void bench_schedule(const Session& session, const BenchOptions& options, BenchReport report);
void bench_compile(const Session& session, const BenchOptions& options, BenchReport report);
// Kernels that run (bench_kernels.cpp).
void bench_dispatch(const Session& session, const BenchOptions& options, BenchReport report);
void bench_elementwise(const Session& session, const BenchOptions& options, BenchReport report);
void bench_reduce(const Session& session, const BenchOptions& options, BenchReport report);
void bench_gemm(const Session& session, const BenchOptions& options, BenchReport report);
// Dynamic lengths (bench_lengths.cpp).
void bench_lengths(const Session& session, const BenchOptions& options, BenchReport report);

// Cases in turns with peers (bench_against.cpp), and what weft makes of one (bench_explain.cpp).
int run_bench_cases(const Session& session, const BenchOptions& options);
int run_bench_explain(const Session& session, const BenchOptions& options);
std::string time_text(double seconds);  // "12.3 us", "4.56 ms"

}  // namespace weft
