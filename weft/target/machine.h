// Machine: the caches and pipes of a processor, as data. Cost models and blocking ask it; nothing
// else has constants of a machine.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace weft {

class Context;
class CpuFeatures;

/// One level of cache, as one core sees it.
struct CacheLevel {
  int64_t bytes = 0;
  int ways = 1;
  double bytes_per_cycle = 0;  ///< that one core reads out of it, in long runs
  /// Addresses this far apart share a set.
  int64_t way_bytes() const { return bytes / ways; }
};

/// A core and its caches. The default is the core that the cost model's remaining constants were
/// measured on: Zen 5 with AVX-512 at full width. Code that has to be the same on every machine
/// (Target::canonical) is made for it.
struct Machine {
  static constexpr int kLine = 64;  ///< bytes that come with a miss, on every x86-64
  std::array<CacheLevel, 3> caches = {{{48 << 10, 12, 128}, {1 << 20, 16, 25}, {32 << 20, 16, 15}}};
  /// Vector operations, and loads, started in a cycle. A register wider than `native_bits` takes
  /// two turns: AVX-512 on Zen 4, which the processor runs in halves.
  double vector_ops = 2, loads = 2;
  int native_bits = 512;

  const CacheLevel& l1() const { return caches[0]; }
  const CacheLevel& l2() const { return caches[1]; }
  const CacheLevel& l3() const { return caches[2]; }
  /// Turns that an operation on a register of `bits` takes.
  double turns(int bits) const { return bits > native_bits ? 2 : 1; }
  /// Part of every key that code is kept under.
  uint64_t key() const;
  /// "L1 48 KiB 12 ways, L2 1 MiB 16 ways, L3 32 MiB 16 ways, 512-bit operations".
  std::string text() const;

  /// This CPU, for code that uses these features of it: caches by CPUID, the width of its pipes by
  /// timing some thousand operations. What CPUID does not tell (other vendors, other architectures)
  /// is the default's.
  static Machine detect(const CpuFeatures& cpu);
  /// The same, found out once per Context.
  static const Machine& of(Context& context);
};

}  // namespace weft
