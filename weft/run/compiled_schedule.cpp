#include "weft/run/compiled_schedule.h"

#include <algorithm>

#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft {

int64_t CompiledSchedule::bytes_of(int buffer, std::span<const int64_t> values) const {
  const CompiledBuffer& b = buffers[static_cast<size_t>(buffer)];
  const int64_t count = b.numel(values);
  return add_or_fail("memory", mul_or_fail("memory", count, bits(b.dtype)), 7) / 8;
}

size_t CompiledSchedule::bytes_held() const {
  std::vector<const CompiledKernel*> kernels;
  for (const CompiledStep& step : steps)
    if (step.kernel) kernels.push_back(step.kernel.get());
  std::sort(kernels.begin(), kernels.end());
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  size_t bytes = steps.size() * 2 * sizeof(CompiledStep) + buffers.size() * sizeof(CompiledBuffer);
  for (const CompiledKernel* k : kernels) bytes += k->bytes_held();
  return bytes;
}

namespace {

/// What ends beyond the device's largest allocation moves to the rest; true where anything does. A
/// value that is too large by itself stays: who allocates it says so.
bool split_arena(ArenaPlan& arena, std::vector<Lifetime>& lifetimes, ArenaPlan& rest,
                 std::vector<Lifetime>& moved) {
  const int64_t most = arena.device->most_bytes();
  const MemoryPlan& memory = arena.memory;
  if (memory.bytes <= most) return false;
  const auto stays = [&](size_t i) {
    return memory.offsets[i] == 0 || memory.offsets[i] + lifetimes[i].bytes <= most;
  };
  if (std::ranges::all_of(memory.offsets, [](int64_t at) { return at == 0; })) return false;
  std::vector<int> buffers;
  std::vector<Lifetime> kept;
  for (size_t i = 0; i < arena.buffers.size(); ++i) {
    (stays(i) ? buffers : rest.buffers).push_back(arena.buffers[i]);
    (stays(i) ? kept : moved).push_back(lifetimes[i]);
  }
  arena.buffers = std::move(buffers);
  lifetimes = std::move(kept);
  return true;
}

}  // namespace

std::vector<ArenaPlan> plan_arenas(const CompiledSchedule& s, std::span<const int64_t> values) {
  std::vector<ArenaPlan> arenas;
  std::vector<std::vector<Lifetime>> lifetimes;
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    const CompiledBuffer& b = s.buffers[i];
    if (!b.intermediate() || b.first < 0) continue;
    size_t a = 0;
    while (a < arenas.size() && arenas[a].device != b.device) ++a;
    if (a == arenas.size()) {
      arenas.push_back({b.device, {}, {}});
      lifetimes.emplace_back();
    }
    arenas[a].buffers.push_back(static_cast<int>(i));
    lifetimes[a].push_back({s.bytes_of(static_cast<int>(i), values), b.first, b.last});
  }
  const auto plan = [&](size_t a) {
    arenas[a].memory = plan_memory(lifetimes[a], arenas[a].device->alignment());
  };
  for (size_t a = 0; a < arenas.size(); ++a) {
    plan(a);
    ArenaPlan rest{arenas[a].device, {}, {}};
    std::vector<Lifetime> moved;
    while (split_arena(arenas[a], lifetimes[a], rest, moved)) plan(a);
    if (moved.empty()) continue;
    arenas.push_back(std::move(rest));
    lifetimes.push_back(std::move(moved));
  }
  return arenas;
}

PlanTotals plan_totals(const CompiledSchedule& s, std::span<const int64_t> values) {
  PlanTotals sum;
  for (size_t i = 0; i < s.buffers.size(); ++i) {
    const CompiledBuffer& b = s.buffers[i];
    if (b.input >= 0) sum.inputs += s.bytes_of(static_cast<int>(i), values);
    if (b.input < 0 && b.output >= 0) sum.outputs += s.bytes_of(static_cast<int>(i), values);
  }
  for (const ArenaPlan& a : plan_arenas(s, values)) sum.intermediates += a.memory.bytes;
  return sum;
}

std::string plan_text(const CompiledSchedule& s, std::span<const int64_t> values) {
  std::string text;
  for (const ArenaPlan& a : plan_arenas(s, values)) {
    append_format(text, "arena on {}: {} bytes for {} intermediates (at least {})\n",
                  a.device->name(), a.memory.bytes, a.buffers.size(), a.memory.least);
    for (size_t i = 0; i < a.buffers.size(); ++i) {
      const CompiledBuffer& b = s.buffers[static_cast<size_t>(a.buffers[i])];
      append_format(text, "  b{} {} at {} + {}, steps {} to {}\n", a.buffers[i], name(b.dtype),
                    a.memory.offsets[i], s.bytes_of(a.buffers[i], values), b.first, b.last);
    }
  }
  const PlanTotals sum = plan_totals(s, values);
  append_format(text, "plan: {} bytes = {} inputs + {} new outputs + {} intermediates\n",
                sum.inputs + sum.outputs + sum.intermediates, sum.inputs, sum.outputs,
                sum.intermediates);
  return text;
}

void find_lifetimes(CompiledSchedule& s) {
  s.point_of_no_return = s.steps.size();
  for (size_t i = 0; i < s.steps.size(); ++i) {
    const CompiledStep& step = s.steps[i];
    for (size_t slot = 0; slot < step.buffers.size(); ++slot) {
      CompiledBuffer& b = s.buffers[static_cast<size_t>(step.buffers[slot])];
      if (b.first < 0) b.first = static_cast<int>(i);
      b.last = static_cast<int>(i);
      if (step.writes(slot) && b.input >= 0)
        s.point_of_no_return = std::min(s.point_of_no_return, i);
    }
  }
}

}  // namespace weft
