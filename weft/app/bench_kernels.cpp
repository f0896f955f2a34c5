#include "weft/app/bench.h"
#include "weft/base/context.h"
#include "weft/tensor/tensor.h"

namespace weft {

namespace {

constexpr int64_t kElements = int64_t{64} << 20;
constexpr int64_t kRows = 4096;
constexpr int64_t kChain = 200;

double gbytes(double bytes) { return bytes * 1e-9; }

Tensor filled(const Dims& shape) { return Tensor::rand(shape).realize(); }

// Into memory that is there already: the pages of a new output would dominate.
double seconds_into(int64_t repeats, Tensor& out, FunctionRef<Tensor()> compute) {
  return median_seconds(repeats, [&] { out.assign(compute()).realize(); });
}

}  // namespace

void bench_dispatch(const Session& session, const BenchOptions& options, BenchReport report) {
  Tensor x = filled({4});
  const auto chain = [&] {
    Tensor y = x;
    for (int64_t i = 0; i < kChain; ++i) y = (y + 1).contiguous();
    y.realize();
  };
  const Tracer& tracer = session.context.tracer();
  const int64_t before = tracer.value(Counter::Kernels);
  chain();
  const int64_t launched = tracer.value(Counter::Kernels) - before;
  const double all = median_seconds(options.repeats, chain);
  const double one = median_seconds(options.repeats * 100, [&] { (x + 1).realize(); });
  report({strformat("chain of {} kernels of 4 floats", launched),
          all / static_cast<double>(launched) * 1e6, "us", 0, "per kernel"});
  report({"one kernel of 4 floats", one * 1e6, "us", 0, "build, schedule from cache, run"});
}

void bench_elementwise(const Session& session, const BenchOptions& options, BenchReport report) {
  const double copy = gbytes(measured_copy_bandwidth(session.context));
  Tensor x = filled({kElements}), y = filled({kElements}), out = filled({kElements});
  const double n = static_cast<double>(kElements);
  const double add = seconds_into(options.repeats, out, [&] { return x + y; });
  report({"x + y, 64M f32", gbytes(12 * n) / add, "GB/s", copy});
  const double gelu = seconds_into(options.repeats, out, [&] { return x.gelu(); });
  report({"gelu(x), 64M f32", gbytes(8 * n) / gelu, "GB/s", copy});
}

void bench_reduce(const Session& session, const BenchOptions& options, BenchReport report) {
  const double read = gbytes(measured_read_bandwidth(session.context));
  const double copy = gbytes(measured_copy_bandwidth(session.context));
  Tensor x = filled({kElements}), square = filled({kRows, kRows}), out = filled({kRows, kRows});
  const double n = static_cast<double>(kElements), area = static_cast<double>(kRows * kRows);
  const double sum = median_seconds(options.repeats, [&] { x.sum().realize(); });
  report({"sum, 64M f32", gbytes(4 * n) / sum, "GB/s", read});
  const double softmax = seconds_into(options.repeats, out, [&] { return square.softmax(); });
  report({"softmax, 4096 x 4096 f32", gbytes(8 * area) / softmax, "GB/s", copy});
  const double norm = seconds_into(options.repeats, out, [&] { return square.layernorm(); });
  report({"layernorm, 4096 x 4096 f32", gbytes(8 * area) / norm, "GB/s", copy});
}

namespace {

/// Of [n, n] by [n, n], summed as machines do: bf16 in f32 and rounded once, bytes in i32.
BenchRow product_row(const BenchOptions& options, DType dtype, int64_t n, double peak) {
  const bool bytes = dtype == DType::I8;
  const auto operand = [&] {
    Tensor x = Tensor::rand({n, n});
    return (bytes ? x * 255 - 128 : x).cast(dtype).realize();
  };
  Tensor a = operand(), b = operand();
  const auto product = [&] {
    return bytes ? a.cast(DType::I32).matmul(b.cast(DType::I32)) : a.matmul(b);
  };
  Tensor out = product().realize();
  const double seconds = seconds_into(options.repeats, out, product);
  const double flops =
      2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  return {strformat("matmul {0} x {0} x {0} {1}", n, name(dtype)), flops / seconds * 1e-9,
          "GFLOP/s", peak};
}

}  // namespace

void bench_gemm(const Session& session, const BenchOptions& options, BenchReport report) {
  for (const DType dtype : {DType::F32, DType::BF16, DType::I8}) {
    const double peak = dtype == DType::F32 ? measured_f32_flops(session.context)
                                            : measured_narrow_flops(session.context, dtype);
    for (const int64_t n : {512, 1024, 2048, 4096})
      report(product_row(options, dtype, n, peak * 1e-9));
  }
}

}  // namespace weft
