// What this machine can do at most with a context's threads, measured.
#pragma once

#include <cstdint>

#include "weft/dtype/dtype.h"

namespace weft {

class Context;

/// Each takes a tenth of a second or so, of all threads.
double measured_read_bandwidth(Context& context);  ///< bytes per second from memory
double measured_copy_bandwidth(Context& context);  ///< bytes read and written per second
/// Fused multiply-adds count as two. `steps` of 16 registers a core: 2^22 take 20 ms, six times.
double measured_f32_flops(Context& context, int64_t steps = int64_t{1} << 22);
/// Of products of bf16 or bytes: by tiles, or as many times that of f32 as fit in its place.
double measured_narrow_flops(Context& context, DType dtype);

/// The same, each measured when it is asked for.
class MachineLimits {
 public:
  explicit MachineLimits(Context& context);
  /// Of operations on `dtype` and of bytes that are copied in memory, or only read; of bytes that
  /// fit the caches 0.
  double seconds(double operations, DType dtype, double bytes, bool reads = false);

 private:
  double peak(DType dtype);

  Context& context_;
  double f32_flops_, bandwidth_, cached_bytes_;
  double read_bandwidth_ = 0, byte_flops_ = 0, half_flops_ = 0;
};

}  // namespace weft
