#include "weft/target/cpu_features.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/tile_state.h"

namespace weft {

namespace {

struct FeatureRow {
  CpuFeature feature;
  const char* name;
  uint32_t leaf, subleaf;
  int reg, bit;
  uint64_t state;
};

constexpr FeatureRow kFeatures[] = {
#define X(id, name, leaf, subleaf, reg, bit, state) \
  {CpuFeature::id, name, leaf, subleaf, reg, bit, state},
#include "weft/target/cpu_features.def"
#undef X
};

/// What a name of WEFT_ISA allows: the rows before `beyond`. A CPU without `least` is below it.
struct IsaLevel {
  std::string_view name;
  CpuFeature beyond, least;
};

constexpr CpuFeature kNone = CpuFeature::Count;
constexpr IsaLevel kLevels[] = {
    {"amx", kNone, CpuFeature::AmxTile},
    {"avx512", CpuFeature::AmxTile, CpuFeature::Avx512vl},
    {"avx2", CpuFeature::Avx512f, CpuFeature::Avx2},
    {"avx", CpuFeature::Fma, CpuFeature::Avx},
    {"sse4.2", CpuFeature::Avx, CpuFeature::Sse42},
    {"sse2", CpuFeature::Sse3, kNone},  // every x86-64
};

struct HostCpu {
  explicit HostCpu(Context& context)
      : features(CpuFeatures::detect().up_to(context.options().isa)) {}
  CpuFeatures features;
};

#if defined(__x86_64__)
// Which register sets the system saves at a context switch, tiles on request; 0 where it does not
// say.
uint64_t saved_state() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return 0;
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  constexpr uint64_t kTiles = 0x60000;
  const uint64_t state = static_cast<uint64_t>(high) << 32 | low;
  return (state & kTiles) == kTiles && !request_tile_state() ? state & ~kTiles : state;
}

bool present(const FeatureRow& row, uint64_t state) {
  uint32_t r[4] = {};
  if (!__get_cpuid_count(row.leaf, row.subleaf, &r[0], &r[1], &r[2], &r[3])) return false;
  return (r[row.reg] >> row.bit & 1) != 0 && (state & row.state) == row.state;
}
#endif

}  // namespace

CpuFeatures CpuFeatures::detect() {
  CpuFeatures found;
#if defined(__x86_64__)
  const uint64_t state = saved_state();
  for (const FeatureRow& row : kFeatures) found.set(row.feature, present(row, state));
#endif
  return found;
}

const CpuFeatures& CpuFeatures::of(Context& context) { return context.get<HostCpu>().features; }

CpuFeatures CpuFeatures::up_to(std::string_view level) const {
  if (level.empty()) return *this;
  const IsaLevel* row = std::find_if(std::begin(kLevels), std::end(kLevels),
                                     [&](const IsaLevel& l) { return l.name == level; });
  if (row == std::end(kLevels))
    fail("context.options",
         "WEFT_ISA: there is no level \"{}\"; levels are amx, avx512, avx2, avx, sse4.2 and sse2",
         level);
  if (row->least != kNone && !has(row->least))
    fail("context.options",
         "WEFT_ISA: this CPU has no {} (it has: {}); unset it to use what it has", level, text());
  CpuFeatures allowed;
  for (const FeatureRow& f : kFeatures)
    allowed.set(f.feature, has(f.feature) && f.feature < row->beyond);
  return allowed;
}

std::string_view CpuFeatures::newest_level() const {
  for (const IsaLevel& l : kLevels)
    if (l.least == kNone || has(l.least)) return l.name;
  return {};
}

std::string CpuFeatures::compiler_flags() const {
  std::string flags;
  for (const FeatureRow& row : kFeatures) {
    if (!has(row.feature)) continue;
    if (!flags.empty()) flags += ' ';
    (flags += "-m") += row.name;
  }
  return flags;
}

std::string CpuFeatures::text() const {
  std::string names;
  for (const FeatureRow& row : kFeatures) {
    if (!has(row.feature)) continue;
    if (!names.empty()) names += ' ';
    names += row.name;
  }
  return names;
}

}  // namespace weft
