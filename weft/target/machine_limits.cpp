#include "weft/target/machine_limits.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "weft/base/context.h"
#include "weft/base/function_ref.h"
#include "weft/base/spans.h"
#include "weft/base/thread_pool.h"
#include "weft/target/target.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace weft {

namespace {

constexpr int64_t kBytes = int64_t{256} << 20;  // far beyond any cache
constexpr int64_t kBlock = int64_t{1} << 20;
constexpr size_t kRepeats = 5;
constexpr int64_t kTileSteps = 1 << 18;

// GCC's vector extension: one register where the machine has such, several where not.
typedef float Float16 __attribute__((vector_size(64)));
typedef float Float8 __attribute__((vector_size(32)));
typedef uint64_t Word8 __attribute__((vector_size(64)));

/// Of the median of a few calls, after one that is not counted.
double median_seconds(FunctionRef<void()> run) {
  run();
  std::array<uint64_t, kRepeats> ns;
  for (uint64_t& one : ns) {
    const uint64_t start = now_ns();
    run();
    one = now_ns() - start;
  }
  std::ranges::sort(ns);
  return static_cast<double>(ns[kRepeats / 2]) * 1e-9;
}

std::unique_ptr<std::byte[]> touched_memory(Context& context) {
  auto memory = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(kBytes));
  context.thread_pool().parallel_for(kBytes / kBlock, [&](int64_t begin, int64_t end, int) {
    std::memset(memory.get() + begin * kBlock, 1, static_cast<size_t>((end - begin) * kBlock));
  });
  return memory;
}

[[gnu::always_inline]] inline uint64_t sum_words_body(const std::byte* from, int64_t bytes) {
  Word8 sums[4] = {};
  for (int64_t at = 0; at < bytes; at += static_cast<int64_t>(sizeof(sums))) {
    for (int i = 0; i < 4; ++i) {
      Word8 word;
      std::memcpy(&word, from + at + i * static_cast<int64_t>(sizeof(Word8)), sizeof(word));
      sums[i] += word;
    }
  }
  const Word8 all = sums[0] + sums[1] + sums[2] + sums[3];
  uint64_t total = 0;
  for (int i = 0; i < 8; ++i) total += all[i];
  return total;
}

// The build allows contraction to FMA in this file (cmake/rooms.cmake).
template <class Vector, int kChains>
[[gnu::always_inline]] inline float fma_chains_body(int64_t steps, float seed) {
  Vector sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = Vector{} + seed + static_cast<float>(i);
  const Vector factor = Vector{} + 0.999f, term = Vector{} + seed;
  for (int64_t step = 0; step < steps; ++step) {
#pragma GCC unroll 16  // else the sums live in memory
    for (int i = 0; i < kChains; ++i) sums[i] = sums[i] * factor + term;
  }
  float total = 0;
  for (int i = 0; i < kChains; ++i) total += sums[i][0];
  return total;
}

/// Independent sums, as many numbers a step: latency times two units, with room, in the registers
/// there are.
struct FmaLoop {
  float (*run)(int64_t steps, float seed);
  int numbers;
};

float fma_chains_plain(int64_t n, float x) { return fma_chains_body<Float16, 16>(n, x); }

#ifdef __x86_64__
#define WEFT_ON_AVX512 __attribute__((target("avx512f,fma")))
#define WEFT_ON_AVX2 __attribute__((target("avx2,fma")))
WEFT_ON_AVX512 uint64_t sum_words_512(const std::byte* p, int64_t n) {
  return sum_words_body(p, n);
}
WEFT_ON_AVX2 uint64_t sum_words_256(const std::byte* p, int64_t n) { return sum_words_body(p, n); }
WEFT_ON_AVX512 float fma_chains_512(int64_t n, float x) {
  return fma_chains_body<Float16, 16>(n, x);
}
WEFT_ON_AVX2 float fma_chains_256(int64_t n, float x) { return fma_chains_body<Float8, 12>(n, x); }
// Of tiles of zeros, on four sums side by side.
#define WEFT_ON_AMX __attribute__((target("amx-tile,amx-bf16,amx-int8")))
WEFT_ON_AMX void tile_products(int64_t steps, bool bytes) {
  alignas(64) uint8_t whole[64] = {1};  // Intel's manual, volume 2, LDTILECFG
  for (size_t t = 0; t < 8; ++t) whole[16 + 2 * t] = 64, whole[48 + t] = 16;
  asm volatile("" : : "r"(whole) : "memory");  // GCC 12 thinks that it reads eight bytes
  _tile_loadconfig(whole);
  for (int64_t step = 0; step < steps; ++step) {
    if (bytes) {
      _tile_dpbssd(0, 4, 6);
      _tile_dpbssd(1, 4, 7);
      _tile_dpbssd(2, 5, 6);
      _tile_dpbssd(3, 5, 7);
    } else {
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  _tile_release();
}
bool has_avx512() { return __builtin_cpu_supports("avx512f"); }
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#endif

/// What kernels are made for, which WEFT_ISA may have limited.
Target kernel_target(Context& context) {
#ifdef __x86_64__
  return make_target("x86", context);
#else
  return make_target("c", context);
#endif
}

uint64_t sum_words(const std::byte* from, int64_t bytes) {
#ifdef __x86_64__
  if (has_avx512()) return sum_words_512(from, bytes);
  if (has_avx2()) return sum_words_256(from, bytes);
#endif
  return sum_words_body(from, bytes);
}

FmaLoop fma_loop(const Target& target) {
#ifdef __x86_64__
  if (target.vector_bits >= 512) return {fma_chains_512, 16 * 16};
  if (target.vector_bits >= 256 && target.fma) return {fma_chains_256, 12 * 8};
#endif
  return {fma_chains_plain, 16 * 16};
}

// Keeps a result alive without printing it.
void keep(uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

}  // namespace

double measured_read_bandwidth(Context& context) {
  const auto memory = touched_memory(context);
  const double seconds = median_seconds([&] {
    context.thread_pool().parallel_for(kBytes / kBlock, [&](int64_t begin, int64_t end, int) {
      keep(sum_words(memory.get() + begin * kBlock, (end - begin) * kBlock));
    });
  });
  return static_cast<double>(kBytes) / seconds;
}

double measured_copy_bandwidth(Context& context) {
  const auto from = touched_memory(context), to = touched_memory(context);
  const double seconds = median_seconds([&] {
    context.thread_pool().parallel_for(kBytes / kBlock, [&](int64_t begin, int64_t end, int) {
      std::memcpy(to.get() + begin * kBlock, from.get() + begin * kBlock,
                  static_cast<size_t>((end - begin) * kBlock));
    });
  });
  return 2 * static_cast<double>(kBytes) / seconds;
}

double measured_f32_flops(Context& context, int64_t steps) {
  ThreadPool& pool = context.thread_pool();
  const FmaLoop loop = fma_loop(kernel_target(context));
  const double seconds = median_seconds([&] {
    pool.parallel_for(pool.size(), [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) keep(static_cast<uint64_t>(loop.run(steps, 0.001f)));
    });
  });
  return 2.0 * loop.numbers * static_cast<double>(steps) * pool.size() / seconds;
}

double measured_narrow_flops(Context& context, DType dtype) {
  const bool bytes = bits(dtype) == 8;
  const Op words = bytes ? Op::Dot4 : Op::Dot2;
  const Target target = kernel_target(context);
  const bool dots =
      std::ranges::any_of(target.matrix_units, [&](const MatrixUnit& u) { return u.op == words; });
#ifdef __x86_64__
  if (const MatrixUnit* unit = target.tile_unit(words)) {
    ThreadPool& pool = context.thread_pool();
    const double seconds = median_seconds([&] {
      pool.parallel_for(pool.size(), [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) tile_products(kTileSteps, bytes);
      });
    });
    const double each = 2.0 * unit->depth * unit->tile * unit->tile * unit->tile;
    return 4 * each * static_cast<double>(kTileSteps) * pool.size() / seconds;
  }
#endif
  // Without a dot product of words they are multiplied in lanes of 32 bits.
  return (!dots ? 1 : bytes ? 4 : 2) * measured_f32_flops(context);
}

MachineLimits::MachineLimits(Context& context)
    : context_(context),
      f32_flops_(measured_f32_flops(context)),
      bandwidth_(measured_copy_bandwidth(context)),
      cached_bytes_(2.0 * static_cast<double>(Machine::of(context).l2().bytes) *
                    context.thread_pool().size()) {}

double MachineLimits::seconds(double operations, DType dtype, double bytes, bool reads) {
  if (reads && read_bandwidth_ == 0) read_bandwidth_ = measured_read_bandwidth(context_);
  const double compute = operations > 0 ? operations / peak(dtype) : 0;
  const double bandwidth = reads ? read_bandwidth_ : bandwidth_;
  return std::max(compute, bytes > cached_bytes_ ? bytes / bandwidth : 0);
}

double MachineLimits::peak(DType dtype) {
  if (bits(dtype) >= 32) return f32_flops_ * 32 / bits(dtype);
  double& narrow = bits(dtype) == 8 ? byte_flops_ : half_flops_;
  if (narrow == 0) narrow = measured_narrow_flops(context_, dtype);
  return narrow;
}

}  // namespace weft
