#include "weft/target/core.h"

#include <cstddef>

#include "weft/target/machine.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace weft {

#if defined(__x86_64__)
namespace {

// Linux, arch/x86/kernel/cpu/amd.c (bsp_init_amd) and arch/x86/include/asm/intel-family.h.
struct CoreRow {
  Core core;
  bool intel;
  uint32_t family, first, last;  // models
};
constexpr CoreRow kCores[] = {{Core::Zen4, false, 0x19, 0x10, 0x1f},  // Genoa
                              {Core::Zen4, false, 0x19, 0x60, 0xaf},  // Raphael, Phoenix, Bergamo
                              {Core::Zen5, false, 0x1a, 0x00, 0x7f},  // Turin, Granite Ridge, Strix
                              {Core::GoldenCove, true, 6, 0x8f, 0x8f},   // Sapphire Rapids
                              {Core::GoldenCove, true, 6, 0xcf, 0xcf},   // Emerald Rapids
                              {Core::GoldenCove, true, 6, 0xad, 0xae},   // Granite Rapids
                              {Core::GoldenCove, true, 6, 0x97, 0x97},   // Alder Lake
                              {Core::GoldenCove, true, 6, 0x9a, 0x9a},   // Alder Lake, mobile
                              {Core::GoldenCove, true, 6, 0xb7, 0xb7},   // Raptor Lake
                              {Core::GoldenCove, true, 6, 0xba, 0xba},   // Raptor Lake, mobile
                              {Core::GoldenCove, true, 6, 0xbf, 0xbf}};  // Raptor Lake S

/// Leaf 1: stepping in bits 0 to 3, model 4 to 7 and 16 to 19, family 8 to 11 and 20 to 27.
Core core_of(uint32_t signature, bool intel) {
  const uint32_t low = signature >> 8 & 15, family = low + (low == 15 ? signature >> 20 & 255 : 0);
  const uint32_t model = (signature >> 4 & 15) | (signature >> 12 & 0xf0);
  for (const CoreRow& row : kCores)
    if (row.intel == intel && row.family == family && row.first <= model && model <= row.last)
      return row.core;
  return Core::Unknown;
}

}  // namespace

Core this_core() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &a, &b, &c, &d) == 0) return Core::Unknown;
  const bool intel = b == signature_INTEL_ebx, amd = b == signature_AMD_ebx;
  if ((!intel && !amd) || __get_cpuid(1, &a, &b, &c, &d) == 0) return Core::Unknown;
  return core_of(a, intel);
}
#else
Core this_core() { return Core::Unknown; }
#endif

std::string_view name_of(Core core) {
  constexpr std::string_view kNames[] = {"", "Zen 4", "Zen 5", "Golden Cove"};
  return kNames[static_cast<size_t>(core)];
}

Core core_named_in(std::string_view machine_text) {
  const std::string_view name = machine_text.substr(0, machine_text.find(','));
  for (const Core core : {Core::Zen4, Core::Zen5, Core::GoldenCove})
    if (name == name_of(core)) return core;
  return Core::Unknown;
}

std::string text_with_core(const Machine& machine) {
  std::string out(name_of(this_core()));
  return out.empty() ? machine.text() : out + ", " + machine.text();
}

}  // namespace weft
