// Levels of instruction sets: what WEFT_ISA leaves of the CPU's features, and what it refuses.
#include "weft/target/cpu_features.h"

#include <gtest/gtest.h>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/target/target.h"

namespace weft {
namespace {

CpuFeatures every_feature() {
  CpuFeatures all;
  for (int f = 0; f < static_cast<int>(CpuFeature::Count); ++f)
    all.set(static_cast<CpuFeature>(f), true);
  return all;
}

std::string refusal(const CpuFeatures& cpu, std::string_view level) {
  try {
    cpu.up_to(level);
  } catch (const Error& error) {
    return error.what();
  }
  return "(not refused)";
}

TEST(IsaLevels, EachAllowsWhatThereIsUpToIt) {
  const CpuFeatures all = every_feature();
  EXPECT_EQ(all.up_to("").bits(), all.bits());
  EXPECT_EQ(all.up_to("amx").bits(), all.bits());
  EXPECT_TRUE(all.up_to("avx512").text().ends_with("avx512vnni avx512bf16"));
  EXPECT_EQ(all.up_to("avx2").text(),
            "sse3 ssse3 sse4.1 sse4.2 popcnt avx f16c fma avx2 bmi bmi2 lzcnt avxvnni");
  EXPECT_EQ(all.up_to("avx").text(), "sse3 ssse3 sse4.1 sse4.2 popcnt avx f16c");
  EXPECT_EQ(all.up_to("sse4.2").compiler_flags(), "-msse3 -mssse3 -msse4.1 -msse4.2 -mpopcnt");
  EXPECT_EQ(all.up_to("sse2").bits(), 0u);
  CpuFeatures without_fma = all;
  without_fma.set(CpuFeature::Fma, false);
  EXPECT_FALSE(without_fma.up_to("avx2").has(CpuFeature::Fma));
  EXPECT_TRUE(all.contains(without_fma));
  EXPECT_FALSE(without_fma.contains(all));
}

TEST(IsaLevels, WhatDoesNotExistIsRefused) {
  const std::string unknown = refusal(every_feature(), "avx1024");
  EXPECT_NE(unknown.find("no level \"avx1024\""), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("amx, avx512, avx2, avx, sse4.2 and sse2"), std::string::npos) << unknown;
  const std::string missing = refusal(every_feature().up_to("avx2"), "avx512");
  EXPECT_NE(missing.find("this CPU has no avx512"), std::string::npos) << missing;
  EXPECT_NE(missing.find("bmi2 lzcnt avxvnni"), std::string::npos) << missing;
}

TEST(IsaLevels, AContextKeepsToItsOption) {
  Options options;
  options.isa = "sse2";
  Context context(options);
  EXPECT_EQ(CpuFeatures::of(context).bits(), 0u);
  EXPECT_EQ(make_target("c", context).lanes(DType::F32), 4);
  EXPECT_NO_THROW(check_features("c", "CPU:C", context));
  EXPECT_THROW(check_features("x86", "NULL:X86", context), DeviceError);
  options.isa = "sse";
  Context wrong(options);
  EXPECT_THROW(make_target("c", wrong), Error);
}

}  // namespace
}  // namespace weft
