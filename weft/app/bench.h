// Benchmarks: rows of a measured value, its unit, and its ratio to a limit measured in the same
// run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/app/commands.h"
#include "weft/base/function_ref.h"
#include "weft/dtype/dtype.h"

namespace weft {

struct BenchRow {
  std::string name;
  double value;
  std::string unit;  // "ms", "GB/s", "GFLOP/s"
  double limit = 0;  // what the machine could do, in the same unit; 0: not known
  std::string note = {};
};

using BenchRows = std::vector<BenchRow>;

// Seconds of the median of `repeats` calls, after one that is not counted.
double median_seconds(int64_t repeats, FunctionRef<void()> run);
double median(std::vector<double> values);

// bench schedule, bench compile: a training step's graph from nothing (bench_graph.cpp).
BenchRows bench_schedule(const Session& session, const BenchOptions& options);
BenchRows bench_compile(const Session& session, const BenchOptions& options);
// Kernels that run (bench_kernels.cpp).
BenchRows bench_dispatch(const Session& session, const BenchOptions& options);
BenchRows bench_elementwise(const Session& session, const BenchOptions& options);
BenchRows bench_reduce(const Session& session, const BenchOptions& options);
BenchRows bench_gemm(const Session& session, const BenchOptions& options);
// Dynamic lengths (bench_lengths.cpp).
BenchRows bench_lengths(const Session& session, const BenchOptions& options);

// Cases in turns with peers (bench_against.cpp), and what weft makes of one (bench_explain.cpp).
int run_bench_cases(const Session& session, const BenchOptions& options);
int run_bench_explain(const Session& session, const BenchOptions& options);
std::string time_text(double seconds);  // "12.3 us", "4.56 ms"

// What this machine can do with the context's threads, measured now (machine_limits.cpp).
double measured_read_bandwidth(Context& context);  // bytes per second from memory
double measured_copy_bandwidth(Context& context);  // bytes read and written per second
double measured_f32_flops(Context& context);       // fused multiply-adds count as two
/// Of products of bf16 or bytes: by tiles, or as many times that of f32 as fit in its place.
double measured_narrow_flops(Context& context, DType dtype);

// The same, each measured when it is asked for.
class MachineLimits {
 public:
  explicit MachineLimits(Context& context);
  // Of operations on `dtype` and of bytes that are copied in memory, or only read; of bytes that
  // fit the caches 0.
  double seconds(double operations, DType dtype, double bytes, bool reads = false);

 private:
  double peak(DType dtype);

  Context& context_;
  double f32_flops_, bandwidth_, cached_bytes_;
  double read_bandwidth_ = 0, byte_flops_ = 0, half_flops_ = 0;
};

}  // namespace weft
