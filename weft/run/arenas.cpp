#include "weft/run/arenas.h"

#include <algorithm>
#include <map>
#include <set>

#include "weft/base/checked.h"
#include "weft/base/format.h"
#include "weft/base/hash.h"

namespace weft {
namespace {

/// Copies begin where buffers may.
int64_t bytes_with_copies(const PlannedMemory& p, int b) {
  const CompiledBuffer& buffer = p.schedule.buffers[static_cast<size_t>(b)];
  const int64_t bytes = p.schedule.bytes_of(b, p.values), whole = buffer.device->alignment();
  if (buffer.copies == 1) return bytes;
  return mul_or_fail("memory", add_or_fail("memory", bytes, whole - 1) / whole * whole,
                     buffer.copies);
}

/// Of each buffer of the schedule; first is -1 where no step that runs uses it.
std::vector<Lifetime> lifetimes_of(const PlannedMemory& p) {
  std::vector<Lifetime> all(p.schedule.buffers.size(), {0, -1, -1});
  for (size_t step = 0; step < p.schedule.steps.size(); ++step) {
    if (!p.schedule.steps[step].lengths.contain(p.values)) continue;
    for (int b : p.schedule.steps[step].buffers) {
      Lifetime& l = all[static_cast<size_t>(b)];
      if (l.first < 0) l = {bytes_with_copies(p, b), static_cast<int>(step), 0};
      l.last = static_cast<int>(step);
    }
  }
  return all;
}

/// What ends beyond the device's largest allocation moves to the rest; true where anything does. A
/// value that is too large by itself stays: who allocates it says so.
bool split(ArenaPlan& arena, ArenaPlan& rest) {
  const int64_t most = arena.device->most_bytes();
  const std::vector<int64_t>& offsets = arena.memory.offsets;
  if (arena.memory.bytes <= most) return false;
  if (std::ranges::all_of(offsets, [](int64_t at) { return at == 0; })) return false;
  ArenaPlan kept{arena.device, {}, {}, {}};
  for (size_t i = 0; i < arena.buffers.size(); ++i) {
    const bool stays = offsets[i] == 0 || offsets[i] + arena.lifetimes[i].bytes <= most;
    (stays ? kept : rest).buffers.push_back(arena.buffers[i]);
    (stays ? kept : rest).lifetimes.push_back(arena.lifetimes[i]);
  }
  arena = std::move(kept);
  return true;
}

/// Places for all buffers of an arena; what no allocation is large enough for gets one more, at the
/// end.
void fit(std::vector<ArenaPlan>& arenas, size_t a) {
  const auto plan = [&] {
    arenas[a].memory = plan_memory(arenas[a].lifetimes, arenas[a].device->alignment());
  };
  ArenaPlan rest{arenas[a].device, {}, {}, {}};
  for (plan(); split(arenas[a], rest);) plan();
  if (!rest.buffers.empty()) arenas.push_back(std::move(rest));
}

void plan(PlannedMemory& p) {
  const std::vector<Lifetime> lifetimes = lifetimes_of(p);
  for (size_t b = 0; b < lifetimes.size(); ++b) {
    const CompiledBuffer& buffer = p.schedule.buffers[b];
    if (!buffer.intermediate() || lifetimes[b].first < 0) continue;
    auto arena = std::ranges::find(p.arenas, buffer.device, &ArenaPlan::device);
    if (arena == p.arenas.end())
      arena = p.arenas.insert(arena, ArenaPlan{buffer.device, {}, {}, {}});
    arena->buffers.push_back(static_cast<int>(b));
    arena->lifetimes.push_back(lifetimes[b]);
  }
  for (size_t a = 0; a < p.arenas.size(); ++a) fit(p.arenas, a);
}

/// Whose the bytes of an arena are while its steps go by.
class Owners {
 public:
  explicit Owners(const ArenaPlan& arena) {
    for (size_t i = 0; i < arena.buffers.size(); ++i)
      if (const int64_t bytes = arena.lifetimes[i].bytes; bytes > 0)
        places_[arena.buffers[i]] = {arena.memory.offsets[i], bytes};
  }

  /// The first step that uses it makes it: what lay there is gone.
  void begin(int buffer) {
    const auto place = places_.find(buffer);
    if (place == places_.end() || !begun_.insert(buffer).second) return;
    const auto [at, bytes] = place->second;
    auto old = owners_.lower_bound(at);
    if (old != owners_.begin() && end_of(std::prev(old)->second) > at) --old;
    while (old != owners_.end() && old->first < at + bytes) old = owners_.erase(old);
    owners_[at] = buffer;
  }
  bool has(int buffer) const {
    const auto place = places_.find(buffer);
    if (place == places_.end()) return true;
    const auto owner = owners_.find(place->second.first);
    return owner != owners_.end() && owner->second == buffer;
  }

 private:
  int64_t end_of(int buffer) const {
    const auto [at, bytes] = places_.at(buffer);
    return at + bytes;
  }

  std::map<int, std::pair<int64_t, int64_t>> places_;  // offset and bytes
  std::set<int> begun_;
  std::map<int64_t, int> owners_;  // by offset; disjoint
};

/// Follows the bytes, not the lifetimes that the plan was made of.
bool shares_live_bytes(const PlannedMemory& p, const ArenaPlan& arena) {
  Owners owners(arena);
  for (const CompiledStep& step : p.schedule.steps) {
    if (!step.lengths.contain(p.values)) continue;
    for (int b : step.buffers) owners.begin(b);
    if (!std::ranges::all_of(step.buffers, [&](int b) { return owners.has(b); })) return true;
  }
  return false;
}

bool leaves(const ArenaPlan& arena) {
  for (size_t i = 0; i < arena.buffers.size(); ++i) {
    const int64_t at = arena.memory.offsets[i];
    if (at < 0 || at % arena.device->alignment() != 0 ||
        at + arena.lifetimes[i].bytes > arena.memory.bytes)
      return true;
  }
  return false;
}

const char* misplaced(const PlannedMemory& p) {
  for (const ArenaPlan& a : p.arenas) {
    if (leaves(a)) return "an intermediate that is not aligned or not inside of its arena";
    if (shares_live_bytes(p, a)) return "intermediates that live together and share bytes";
  }
  return nullptr;
}

constexpr Pass<PlannedMemory> kPasses[] = {
    {"plan.arenas", "intermediates lie in arenas; no two that live together share bytes", plan,
     misplaced},
};

}  // namespace

std::span<const Pass<PlannedMemory>> plan_passes() { return kPasses; }

PlannedMemory plan_arenas(const CompiledSchedule& schedule, std::vector<int64_t> values) {
  PlannedMemory planned{schedule, std::move(values)};
  run_passes(plan_passes(), planned);
  return planned;
}

PassView PlannedMemory::view() const {
  return {static_cast<int64_t>(schedule.buffers.size()), hash_text(text())};
}

std::string PlannedMemory::text() const {
  std::string text;
  for (const ArenaPlan& a : arenas) {
    append_format(text, "arena on {}: {} bytes for {} intermediates (at least {})\n",
                  a.device->name(), a.memory.bytes, a.buffers.size(), a.memory.least);
    for (size_t i = 0; i < a.buffers.size(); ++i) {
      const Lifetime& l = a.lifetimes[i];
      append_format(text, "  b{} {} at {} + {}, steps {} to {}\n", a.buffers[i],
                    weft::name(schedule.buffers[static_cast<size_t>(a.buffers[i])].dtype),
                    a.memory.offsets[i], l.bytes, l.first, l.last);
    }
  }
  return text;
}

size_t PlannedMemory::bytes_held() const {
  constexpr size_t kEach = sizeof(int) + sizeof(Lifetime) + sizeof(int64_t);
  size_t bytes = sizeof(PlannedMemory);
  for (const ArenaPlan& a : arenas) bytes += sizeof(ArenaPlan) + a.buffers.size() * kEach;
  return bytes;
}

PlanTotals totals(const PlannedMemory& p) {
  PlanTotals sum;
  for (size_t i = 0; i < p.schedule.buffers.size(); ++i) {
    const CompiledBuffer& b = p.schedule.buffers[i];
    if (b.intermediate()) continue;
    (b.input >= 0 ? sum.inputs : sum.outputs) += p.schedule.bytes_of(static_cast<int>(i), p.values);
  }
  for (const ArenaPlan& a : p.arenas) sum.intermediates += a.memory.bytes;
  return sum;
}

std::string plan_text(const PlannedMemory& p) {
  const PlanTotals sum = totals(p);
  return strformat("{}plan: {} bytes = {} inputs + {} new outputs + {} intermediates\n", p.text(),
                   sum.inputs + sum.outputs + sum.intermediates, sum.inputs, sum.outputs,
                   sum.intermediates);
}

}  // namespace weft
