// The description of the machine: what CPUID gives is what the system lists, and what kernels of
// WEFT_DETERMINISTIC are made for does not depend on it.
#include "weft/target/machine.h"

#include <gtest/gtest.h>

#include <fstream>

#include "weft/base/context.h"
#include "weft/target/core.h"
#include "weft/target/target.h"

namespace weft {
namespace {

/// A line of /sys/devices/system/cpu/cpu0/cache/index<i>/<name>; empty where there is none.
std::string listed(int i, const char* name) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(i) + "/" + name);
  std::string line;
  std::getline(file, line);
  return line;
}

TEST(Machine, CachesAreThoseThatTheSystemLists) {
  const Machine machine = Machine::detect(CpuFeatures::detect());
  int compared = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string type = listed(i, "type");
    if (type.empty() || type == "Instruction") continue;
    const size_t level = std::stoul(listed(i, "level"));
    if (level > machine.caches.size()) continue;
    const CacheLevel& cache = machine.caches[level - 1];
    EXPECT_EQ(cache.bytes, std::stoll(listed(i, "size")) << 10) << "level " << level;
    EXPECT_EQ(cache.ways, std::stoi(listed(i, "ways_of_associativity"))) << "level " << level;
    ++compared;
  }
  if (compared == 0) GTEST_SKIP() << "the system lists no caches";
}

TEST(Machine, IsDescribedSensibly) {
  const Machine machine = Machine::detect(CpuFeatures::detect());
  EXPECT_GE(machine.l1().bytes, 8 << 10);
  EXPECT_GE(machine.l2().bytes, machine.l1().bytes);
  for (const CacheLevel& c : machine.caches) {
    EXPECT_GE(c.ways, 1);
    EXPECT_EQ(c.way_bytes() * c.ways, c.bytes);
  }
  EXPECT_TRUE(machine.native_bits == 256 || machine.native_bits == 512) << machine.native_bits;
  EXPECT_EQ(Machine().text(),
            "L1 48 KiB 12 ways, L2 1 MiB 16 ways, L3 32 MiB 16 ways, 512-bit operations");
}

TEST(Machine, SaysWhoseCoreItIs) {
  EXPECT_EQ(core_named_in(text_with_core(Machine())), this_core());
  for (const Core core : {Core::Zen4, Core::Zen5, Core::GoldenCove})
    EXPECT_EQ(core_named_in(std::string(name_of(core)) + ", " + Machine().text()), core);
  EXPECT_EQ(core_named_in(Machine().text()), Core::Unknown);
  EXPECT_EQ(core_named_in(""), Core::Unknown);
  EXPECT_EQ(core_named_in("Zen 45, L1"), Core::Unknown);
}

/// What CPUID gives for this processor, beside what the system says of it.
TEST(Machine, TheCoreIsThatOfTheSystemsModel) {
  std::ifstream file("/proc/cpuinfo");
  int family = 0, model = 0;
  bool amd = false, intel = false;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const std::string value = line.substr(std::min(line.find(':') + 2, line.size()));
    amd |= value == "AuthenticAMD";
    intel |= value == "GenuineIntel";
    if (line.starts_with("cpu family")) family = std::stoi(value);
    if (line.starts_with("model\t")) model = std::stoi(value);
  }
  const Core core = this_core();
  if (amd && family == 25 && model == 17)
    EXPECT_EQ(core, Core::Zen4);
  else if (amd && family == 26)
    EXPECT_EQ(core, Core::Zen5);
  else if (intel && family == 6 && (model == 0x8f || model == 0xad))
    EXPECT_EQ(core, Core::GoldenCove);
  else
    GTEST_SKIP() << "family " << family << ", model " << model << " is none that this test knows";
}

TEST(Machine, RunningWideRegistersInHalvesTakesTwoTurns) {
  Machine zen4;
  zen4.native_bits = 256;
  EXPECT_EQ(zen4.turns(512), 2);
  EXPECT_EQ(zen4.turns(256), 1);
  EXPECT_EQ(Machine().turns(512), 1);
  EXPECT_NE(zen4.key(), Machine().key());
}

TEST(Machine, IsPartOfTheKeyOfCode) {
  Target full = make_target("x86", CpuFeatures(), 2), half = full;
  half.machine.native_bits = 256;
  EXPECT_NE(full.key(), half.key());
}

TEST(Machine, DeterministicKernelsAreMadeForOneMachine) {
  Options options;
  options.deterministic = true;
  Context fixed(options), free;
  EXPECT_EQ(make_target("x86", fixed).machine.key(), Machine().key());
  EXPECT_EQ(make_target("x86", free).machine.key(), Machine::detect(CpuFeatures::detect()).key());
}

}  // namespace
}  // namespace weft
