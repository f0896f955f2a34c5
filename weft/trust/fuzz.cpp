#include "weft/trust/fuzz.h"

#include <algorithm>
#include <chrono>

#include "weft/base/error.h"
#include "weft/run/passes.h"
#include "weft/target/cpu_features.h"
#include "weft/trust/random.h"

namespace weft::trust {
namespace {

// Programs that share a process: starting one takes as long as a small program.
constexpr uint64_t kBatch = 32;
// C is compiled by another program, which takes longer than all else but a search.
constexpr int kPercentOfC = 2, kPercentOfSearches = 1;
constexpr int kPercentCaptured = 30;

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<std::string> levels_here() {
  std::vector<std::string> levels;
  const CpuFeatures cpu = CpuFeatures::detect();
  if (cpu.has(CpuFeature::Avx512vl)) levels.push_back("avx512");
  if (cpu.has(CpuFeature::Avx2)) levels.push_back("avx2");
  levels.push_back("");
  return levels;
}

std::string device_of(const FuzzPlan& plan, Random& random) {
  if (!plan.devices.empty()) return random.pick(plan.devices);
  if (random.chance(kPercentOfC)) return "CPU:C";
  constexpr const char* kElsewhere[] = {"CHECK:CUDA",  "CHECK:OPENCL", "CHECK:HIP",
                                        "CHECK:METAL", "CHECK:PTX",    "CHECK:WGSL"};
  if (random.chance(20)) return random.pick(kElsewhere);
  return random.chance(70) ? "CPU:X86" : "CPU:INTERP";
}

}  // namespace

RandomGraph fuzz_program(Graph& graph, uint64_t seed) {
  Random random(seed ^ 0x66757a7a);
  RandomGraphOptions options;
  options.steps = static_cast<int>(random.between(4, 24));
  options.largest = random.chance(20) ? 4000 : 200;
  options.longest = random.chance(20) ? 40 : 5;
  options.exact = true;
  options.variables = random.chance(30) ? 2 : 0;
  options.folds = random.chance(20);
  options.elementwise = random.chance(20);
  // As the tests do: chains of any numbers are compared bit for bit, sums are of small integers.
  if (options.elementwise) options.exact = options.transcendental = options.float_sums = false;
  options.simplify = random.chance(50);
  RandomGraph out = random_graph(graph, seed, options);
  if (!options.elementwise && random.chance(30)) end_in_sums(graph, out, seed);
  return out;
}

Options fuzz_options(const FuzzPlan& plan, uint64_t seed) {
  Random random(seed ^ 0x6f707473);
  Options options = plan.options;
  options.cache = false;
  options.dev = device_of(plan, random);
  std::vector<std::string> levels = levels_here();
  if (options.dev.ends_with("X86")) options.isa = random.pick(levels);
  options.threads = random.chance(50) ? 1 : random.between(2, 4);
  options.deterministic = random.chance(15);
  options.jit = random.chance(kPercentCaptured);
  const bool may_search = options.dev == "CPU:X86" && options.beam_cache.empty();
  if (may_search && random.chance(kPercentOfSearches)) {
    options.beam = random.between(1, 3);
    options.beam_seconds = 1;  // for each kernel
  }
  if (!random.chance(30)) return options;
  for (const PassRow& p : all_passes())
    if (p.optional && random.chance(30))
      append_format(options.passes, "{}{}", options.passes.empty() ? "" : ",", p.name);
  return options;
}

FuzzReport fuzz(const FuzzPlan& plan, FunctionRef<void(const FuzzFailure&)> failed) {
  const auto start = Clock::now();
  FuzzReport report;
  const auto run_one = [&plan](uint64_t seed) {
    Graph g;
    const RandomGraph program = fuzz_program(g, seed);
    // A chain of products may leave the integers, however small its operands are.
    return is_exact(program) ? run_here(program, fuzz_options(plan, seed)) : Outcome{};
  };
  while (report.failures < plan.failures) {
    const int64_t left = plan.count < 0 ? INT64_MAX : plan.count - report.programs;
    if (left <= 0 || (plan.count < 0 && seconds_since(start) >= plan.seconds)) break;
    const uint64_t first = plan.seed + static_cast<uint64_t>(report.programs);
    const uint64_t count = std::min<uint64_t>(kBatch, static_cast<uint64_t>(left));
    const Outcome all = run_apart([&] {
      Outcome outcome;
      for (uint64_t k = 0; k < count && outcome.passed(); ++k) outcome = run_one(first + k);
      return outcome;
    });
    for (uint64_t k = 0; k < count && !all.passed() && report.failures < plan.failures; ++k) {
      const Outcome outcome = run_apart([&] { return run_one(first + k); });
      if (outcome.passed()) continue;
      ++report.failures;
      failed({first + k, fuzz_options(plan, first + k), outcome});
    }
    report.programs += static_cast<int64_t>(count);
  }
  report.seconds = seconds_since(start);
  return report;
}

}  // namespace weft::trust
