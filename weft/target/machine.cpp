#include "weft/target/machine.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/base/context.h"
#include "weft/base/format.h"
#include "weft/base/hash.h"
#include "weft/target/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace weft {
namespace {

struct HostMachine {
  explicit HostMachine(Context& context) : machine(Machine::detect(CpuFeatures::of(context))) {}
  Machine machine;
};

#if defined(__x86_64__)

// Leaf 4 of Intel and 0x8000001d of AMD have one layout: Intel, "Software Developer's Manual",
// volume 2A, CPUID; AMD, "Architecture Programmer's Manual", volume 3, E.4.15.
bool read_caches(uint32_t leaf, Machine& machine) {
  enum : uint32_t { kNone = 0, kInstructions = 2 };
  bool found = false;
  uint32_t a = 0, b = 0, c = 0, d = 0;
  for (uint32_t i = 0; i < 16 && __get_cpuid_count(leaf, i, &a, &b, &c, &d); ++i) {
    const uint32_t type = a & 0x1f, level = a >> 5 & 7;
    if (type == kNone) break;
    if (type == kInstructions || level < 1 || level > machine.caches.size()) continue;
    const int64_t line = (b & 0xfff) + 1, partitions = (b >> 12 & 0x3ff) + 1, ways = (b >> 22) + 1,
                  sets = int64_t{c} + 1;
    CacheLevel& cache = machine.caches[level - 1];
    cache.bytes = line * partitions * ways * sets;
    cache.ways = static_cast<int>(ways);
    found = true;
  }
  return found;
}

bool is_intel() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature_INTEL_ebx &&
         c == signature_INTEL_ecx && d == signature_INTEL_edx;
}

/// What CPUID does not tell; the default is Zen 5's. The slices of L3 of Intel's server cores lie
/// across the die: 10.4 bytes a cycle were measured in runs of 4 to 64 MiB on Granite Rapids.
void set_l3_bandwidth(const CpuFeatures& cpu, Machine& machine) {
  if (!is_intel() || !cpu.has(CpuFeature::Avx512f) || machine.l2().bytes < 1 << 20) return;
  machine.caches[2].bytes_per_cycle = 10;
}

// Eight chains hide the latency of two operations a cycle on every core with AVX-512; the empty
// asm keeps them from being folded into one, unrolling from going through memory.
#define WEFT_TIME_FMA(name, features, type, set1, fmadd)                            \
  __attribute__((target(features))) uint64_t name() {                               \
    type chains[8];                                                                 \
    for (type & c : chains) c = set1(1.0F);                                         \
    const type factor = set1(0.5F);                                                 \
    const uint64_t start = __rdtsc();                                               \
    for (int i = 0; i < 500; ++i) _Pragma("GCC unroll 8") for (type & c : chains) { \
        c = fmadd(c, factor, factor);                                               \
        asm volatile("" : "+x"(c));                                                 \
      }                                                                             \
    return __rdtsc() - start;                                                       \
  }
WEFT_TIME_FMA(time_ymm, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps)
WEFT_TIME_FMA(time_zmm, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps)
#undef WEFT_TIME_FMA

/// How long an operation on 512 bits takes beside one on half as many: 1, or 2 where it runs in
/// halves. In turns, the least of each: the machine may be busy, and some processors start with
/// half of the wide pipes asleep, for 20 us. What is neither is measured again.
double measured_turns() {
  uint64_t ymm = UINT64_MAX, zmm = UINT64_MAX;
  double turns = 0;
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 60; ++i) {
      ymm = std::min(ymm, time_ymm());
      zmm = std::min(zmm, time_zmm());
    }
    turns = static_cast<double>(zmm) / static_cast<double>(ymm);
    if (std::abs(turns - 1.5) > 0.25) break;
  }
  return turns;
}

/// Once a process: were it to come out otherwise in another context, sums would have other bits.
int measured_native_bits(const CpuFeatures& cpu) {
  if (!cpu.has(CpuFeature::Avx512f)) return 256;
  static const bool halves = measured_turns() > 1.5;
  return halves ? 256 : 512;
}

#endif

std::string size_text(int64_t bytes) {
  return bytes % (1 << 20) == 0 ? strformat("{} MiB", bytes >> 20)
                                : strformat("{} KiB", bytes >> 10);
}

}  // namespace

Machine Machine::detect([[maybe_unused]] const CpuFeatures& cpu) {
  Machine machine;
#if defined(__x86_64__)
  if (!read_caches(0x8000001d, machine)) read_caches(4, machine);
  set_l3_bandwidth(cpu, machine);
  machine.native_bits = measured_native_bits(cpu);
#endif
  return machine;
}

const Machine& Machine::of(Context& context) { return context.get<HostMachine>().machine; }

uint64_t Machine::key() const {
  uint64_t h = 0;
  for (const CacheLevel& c : caches)
    for (const uint64_t part : {static_cast<uint64_t>(c.bytes), static_cast<uint64_t>(c.ways),
                                std::bit_cast<uint64_t>(c.bytes_per_cycle)})
      h = hash_combine(h, part);
  for (const double part : {vector_ops, loads, static_cast<double>(native_bits)})
    h = hash_combine(h, std::bit_cast<uint64_t>(part));
  return h;
}

std::string Machine::text() const {
  std::string out;
  for (size_t i = 0; i < caches.size(); ++i)
    out += strformat("L{} {} {} ways, ", i + 1, size_text(caches[i].bytes), caches[i].ways);
  return out + strformat("{}-bit operations", native_bits);
}

}  // namespace weft
