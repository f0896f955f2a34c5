#include "weft/run/kernel_trials.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/interrupt.h"
#include "weft/base/thread_pool.h"
#include "weft/run/load.h"
#include "weft/run/translate.h"

namespace weft {
namespace {

constexpr double kSampleSeconds = 200e-6;  // that a sample takes at least
constexpr int64_t kMostRuns = 2048;        // of a kernel in one sample,
constexpr int64_t kMostChanges = 64;       // where each finds what the one before left
constexpr int kMostAttempts = 4;           // at a sample while something comes between,
constexpr double kLongAttempts = 4e-3;     // seconds, of all of them
constexpr size_t kMostSets = 4;            // of buffers taken in turns
constexpr double kFewFlops = 8;            // for each byte: below, memory decides

std::string entry_of(size_t plan) { return strformat("trial_{}", plan); }

}  // namespace

KernelTrials::KernelTrials(TrialSubject subject)
    : subject_(std::move(subject)),
      start_ns_(now_ns()),
      tolerance_(TrialTolerance::of(*subject_.kernel)) {}

double KernelTrials::elapsed() { return static_cast<double>(now_ns() - start_ns_) * 1e-9; }

// ---- compiling

/// On all threads; afterwards they wait, and nothing but kernels runs.
std::vector<BeamTrials::Made> KernelTrials::compile(std::span<const LoopPlan> plans) {
  Device& device = *subject_.device;
  std::vector<Translation> texts(plans.size());
  std::vector<Made> made(plans.size());
  const auto translate = [&](int64_t begin, int64_t end, int) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      try {
        texts[i] = translate_kernel(*subject_.kernel, device.target(), entry_of(trials_.size() + i),
                                    subject_.distinct, &plans[i]);
        made[i].works = !texts[i].report.foreign;
      } catch (const InternalError&) {}  // a plan that lowering does not know
    }
  };
  device.context().thread_pool().parallel_for(static_cast<int64_t>(plans.size()), translate, 1,
                                              [] { ask_interrupt(); });
  std::vector<ProgramSource> sources;
  for (size_t i = 0; i < plans.size(); ++i)
    if (made[i].works)
      sources.push_back({&texts[i].program, texts[i].code, entry_of(trials_.size() + i)});
  std::vector<std::unique_ptr<Executable>> loaded = load_programs(device, sources);
  auto next = loaded.begin();
  for (size_t i = 0; i < plans.size(); ++i) {
    trials_.push_back({});
    if (!made[i].works) continue;
    made[i].spilled = texts[i].spilled;
    if (device.target().machine_code) made[i].code = hash_text(texts[i].code, 1);
    trials_.back().kernel =
        compiled_kernel(subject_.kernel->name, texts[i].program, std::move(*next++));
  }
  if (sets_.empty() && made[0].works) make_sets();
  return made;
}

// ---- memory

KernelTrials::Memory KernelTrials::make_memory() {
  Memory memory;
  for (const int64_t bytes : subject_.bytes)
    memory.push_back(subject_.device->allocate(std::max<int64_t>(bytes, 1), "beam search"));
  fill(memory, TrialData::Positive, true);
  return memory;
}

/// A kernel that waits for memory finds nothing in the last cache that would not be there in a
/// program with others beside it.
void KernelTrials::make_sets() {
  const CompiledKernel& first = *trials_[0].kernel;
  int64_t bytes = 1;
  for (const int64_t each : subject_.bytes) bytes += each;
  for (size_t slot = 0; slot < subject_.bytes.size(); ++slot) changes_ |= in_place(slot);
  const Machine& machine = subject_.device->target().machine;
  const bool waits = first.flops < kFewFlops * first.bytes && bytes > machine.l2().bytes;
  const auto sets = static_cast<size_t>(machine.l3().bytes / bytes) + 1;
  for (size_t i = 0; i < (waits && !changes_ ? std::min(sets, kMostSets) : 1); ++i) {
    sets_.push_back(make_memory());
    slices_.emplace_back();
    for (const auto& buffer : sets_.back()) slices_.back().push_back({buffer.get()});
  }
}

bool KernelTrials::written(size_t slot) const {
  const auto& params = trials_[0].kernel->params;
  return slot < params.size() && params[slot].written;
}

bool KernelTrials::in_place(size_t slot) const {
  return written(slot) && trials_[0].kernel->params[slot].read;
}

/// All, or what runs change.
void KernelTrials::fill(const Memory& memory, TrialData data, bool all) const {
  const auto& params = trials_[0].kernel->params;
  std::vector<std::byte> host;
  for (size_t slot = 0; slot < memory.size(); ++slot) {
    if (slot >= params.size() || !(all || in_place(slot))) continue;
    host.assign(static_cast<size_t>(subject_.bytes[slot]), std::byte{0});
    fill_trial_data(host, params[slot].dtype, data, slot);
    if (!host.empty()) subject_.device->copy_in({memory[slot].get()}, host);
  }
}

// ---- running

Command KernelTrials::command(const Trial& trial, size_t set) const {
  const IndexProgram& items = trial.kernel->items;
  return Command::launch(*trial.kernel->executable, slices_[set], {}, items({}));
}

/// Of one run.
double KernelTrials::time(const Trial& trial, int64_t runs) {
  std::vector<Command> commands;
  for (int64_t i = 0; i < runs; ++i)
    commands.push_back(command(trial, static_cast<size_t>(i) % sets_.size()));
  double least = INFINITY, all = 0;
  for (int attempt = 0; attempt < kMostAttempts && all < kLongAttempts; ++attempt) {
    if (changes_) fill(sets_[0], TrialData::Positive, false);
    const CalibratedClock::Sample s =
        clock_.time([&] { subject_.device->wait(subject_.device->submit(0, commands)); });
    least = std::min(least, s.seconds);
    all += s.seconds;
    if (s.quiet) break;
  }
  return least / static_cast<double>(runs);
}

/// What the first run takes is no sample: pages and caches are new.
double KernelTrials::sample(size_t plan, double enough) {
  ask_interrupt();
  Trial& trial = trials_[plan];
  if (trial.seconds == 0) {
    trial.seconds = std::max(1e-9, time(trial, 1));
    if (trial.seconds > std::max(enough, kSampleSeconds)) return trial.seconds;
    trial.seconds = std::max(1e-9, time(trial, 1));
  }
  const auto runs = static_cast<int64_t>(std::ceil(kSampleSeconds / trial.seconds));
  return time(trial, std::clamp<int64_t>(runs, 1, changes_ ? kMostChanges : kMostRuns));
}

// ---- comparing

std::vector<std::vector<std::byte>> KernelTrials::outputs_of(const Trial& trial, TrialData data) {
  Device& device = *subject_.device;
  fill(sets_[0], data, true);
  const Command once = command(trial, 0);
  device.wait(device.submit(0, {&once, 1}));
  std::vector<std::vector<std::byte>> out(subject_.bytes.size());
  for (size_t slot = 0; slot < out.size(); ++slot) {
    if (!written(slot) || subject_.bytes[slot] == 0) continue;
    out[slot].resize(static_cast<size_t>(subject_.bytes[slot]));
    device.copy_out(out[slot], {sets_[0][slot].get()});
  }
  return out;
}

bool KernelTrials::verify(size_t plan) {
  bool same = true;
  for (const TrialData data : {TrialData::Whole, TrialData::Positive}) {
    const auto expected = outputs_of(trials_[0], data), got = outputs_of(trials_[plan], data);
    for (size_t slot = 0; slot < expected.size(); ++slot)
      same = same && (expected[slot].empty() ||
                      same_values(expected[slot], got[slot], trials_[0].kernel->params[slot].dtype,
                                  data, tolerance_));
  }
  fill(sets_[0], TrialData::Positive, true);
  return same;
}

}  // namespace weft
