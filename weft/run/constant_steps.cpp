#include "weft/run/constant_steps.h"

#include <algorithm>

#include "weft/base/format.h"

namespace weft {
namespace {

// What is kept takes at most so many times the memory it is computed from: numbers of four bits
// as floats. Beyond that (expanded vectors, masks) it had better be small.
constexpr int64_t kGrowth = 8;
constexpr int64_t kSmall = int64_t{1} << 20;

bool is_symbolic(const CompiledStep& step) {
  return !step.lengths.all() ||
         std::ranges::any_of(step.variables, [](const auto& v) { return v.position >= 0; });
}

class Divider {
 public:
  Divider(const ReplayPlan& plan, const CompiledSchedule& schedule,
          const std::vector<bool>& changing)
      : schedule_(schedule), runs_(schedule_.steps.size()), changes_(schedule_.buffers.size()) {
    for (size_t b = 0; b < changes_.size(); ++b)
      changes_[b] = schedule_.buffers[b].output >= 0 || !schedule_.buffers[b].numel.is_constant() ||
                    !schedule_.buffers[b].lengths.all();
    for (size_t i = 0; i < plan.places.size(); ++i)
      if (const HeldPlace& p = plan.places[i]; p.buffer >= 0)
        if (i < plan.arguments || p.written || !p.ending.none() || changing[i])
          changes_[static_cast<size_t>(p.buffer)] = true;
    for (size_t i = 0; i < runs_.size(); ++i) runs_[i] = is_symbolic(schedule_.steps[i]);
    do spread();
    while (drop_large());
  }

  /// By buffer, whether no call changes it.
  std::vector<bool> constants() const {
    std::vector<bool> out = changes_;
    out.flip();
    return out;
  }
  /// How many values are too large to keep.
  int dropped() const { return dropped_; }

  const std::vector<bool>& in_each_call() const { return runs_; }

  /// Written by constant steps and looked at by others.
  std::vector<int> kept() const {
    std::vector<int> out;
    const std::vector<bool> written = touched(false, true), wanted = touched(true, false);
    for (size_t b = 0; b < written.size(); ++b)
      if (written[b] && wanted[b]) out.push_back(static_cast<int>(b));
    return out;
  }

  /// By steps of one part or the other; written, or touched at all.
  std::vector<bool> touched(bool in_each_call, bool written) const {
    std::vector<bool> out(changes_.size());
    for (size_t i = 0; i < runs_.size(); ++i) {
      const CompiledStep& step = schedule_.steps[i];
      for (size_t slot = 0; runs_[i] == in_each_call && slot < step.buffers.size(); ++slot)
        if (!written || step.writes(slot)) out[static_cast<size_t>(step.buffers[slot])] = true;
    }
    return out;
  }

 private:
  /// From what a call changes to all that depends on it.
  void spread() {
    for (bool more = true; more;) {
      more = false;
      std::vector<bool> seen(changes_.size());  // by what runs in each call
      for (size_t i = 0; i < runs_.size(); ++i) {
        if (!runs_[i] && !depends(schedule_.steps[i], seen)) continue;
        runs_[i] = true;
        more |= mark(schedule_.steps[i], seen);
      }
    }
  }

  bool depends(const CompiledStep& step, const std::vector<bool>& seen) const {
    for (size_t slot = 0; slot < step.buffers.size(); ++slot) {
      const auto b = static_cast<size_t>(step.buffers[slot]);
      if (changes_[b] || (seen[b] && step.writes(slot))) return true;
    }
    return false;
  }

  /// True where that is news.
  bool mark(const CompiledStep& step, std::vector<bool>& seen) {
    bool news = false;
    for (size_t slot = 0; slot < step.buffers.size(); ++slot) {
      const auto b = static_cast<size_t>(step.buffers[slot]);
      seen[b] = true;
      if (!step.writes(slot) || changes_[b]) continue;
      changes_[b] = news = true;
    }
    return news;
  }

  /// What takes too much memory to keep is computed in each call, from what is kept in its place.
  bool drop_large() {
    bool dropped = false;
    for (const int b : kept()) {
      const int64_t bytes = schedule_.bytes_of(b, {});
      if (bytes <= kSmall || bytes <= kGrowth * source_bytes(b)) continue;
      changes_[static_cast<size_t>(b)] = dropped = true;
      ++dropped_;
    }
    return dropped;
  }

  /// Of all that the writers of a buffer read.
  int64_t source_bytes(int buffer) const {
    std::vector<int> sources;
    for (const CompiledStep& step : schedule_.steps)
      for (size_t slot = 0; slot < step.buffers.size(); ++slot)
        if (step.buffers[slot] == buffer && step.writes(slot))
          sources.insert(sources.end(), step.buffers.begin(), step.buffers.end());
    std::ranges::sort(sources);
    sources.erase(std::ranges::unique(sources).begin(), sources.end());
    int64_t sum = 0;
    for (const int b : sources)
      if (b != buffer) sum += schedule_.bytes_of(b, {});
    return sum;
  }

  const CompiledSchedule& schedule_;
  std::vector<bool> runs_;     // in each call, by step
  std::vector<bool> changes_;  // by buffer
  int dropped_ = 0;
};

}  // namespace

namespace {

CapturedSteps steps_without_constants(const ReplayPlan& plan) {
  return steps_for_constants(plan, std::vector<bool>(plan.captured.buffers.size()));
}

/// Packing that is not kept would be done in every call: rather none, then.
CapturedSteps steps_to_divide(const ReplayPlan& plan, const std::vector<bool>& changing) {
  CapturedSteps steps = steps_as_they_ran(plan);
  const std::vector<bool> constants = Divider(plan, steps.schedule, changing).constants();
  steps = steps_for_constants(plan, constants);
  const int dropped = Divider(plan, steps.schedule, changing).dropped();
  if (dropped == 0) return steps;
  CapturedSteps plain = steps_without_constants(plan);
  const bool fewer = Divider(plan, plain.schedule, changing).dropped() < dropped;
  return fewer ? plain : steps;
}

}  // namespace

DividedPlan::DividedPlan(const ReplayPlan& plan) {
  CapturedSteps steps = steps_without_constants(plan);
  const std::vector<bool> runs(steps.schedule.steps.size(), true);
  divide(std::move(steps), runs);
}

DividedPlan::DividedPlan(const ReplayPlan& plan, const std::vector<bool>& changing) {
  CapturedSteps steps = steps_to_divide(plan, changing);
  const Divider divider(plan, steps.schedule, changing);
  kept = divider.kept();
  const std::vector<bool> read = divider.touched(false, false),
                          again = divider.touched(true, false);
  divide(std::move(steps), divider.in_each_call());
  for (size_t i = 0; i < plan.places.size(); ++i) {
    const int b = plan.places[i].buffer;
    if (b < 0 || !read[static_cast<size_t>(b)]) continue;
    sources.push_back(i);
    if (!again[static_cast<size_t>(b)]) done_with.push_back(b);
  }
}

/// Programs of long texts have many steps: they are not there twice.
void DividedPlan::divide(CapturedSteps steps, const std::vector<bool>& runs) {
  const auto each = static_cast<size_t>(std::ranges::count(runs, true));
  for (CapturedSteps* part : {&constant, &each_call}) {
    part->schedule.variables = steps.schedule.variables;
    part->schedule.buffers = steps.schedule.buffers;
    part->schedule.loops = steps.schedule.loops;
    const size_t count = part == &each_call ? each : runs.size() - each;
    part->schedule.steps.reserve(count);
  }
  for (size_t i = 0; i < runs.size(); ++i) {
    CapturedSteps& part = runs[i] ? each_call : constant;
    part.add(std::move(steps.schedule.steps[i]), steps.sites(i));
  }
  // What is kept comes from outside of the one and leaves the other: it lies in no arena.
  for (size_t k = 0; k < kept.size(); ++k) {
    const auto b = static_cast<size_t>(kept[k]);
    constant.schedule.buffers[b].output = static_cast<int>(k);
    each_call.schedule.buffers[b].input = static_cast<int>(k);
    kept_bytes += steps.schedule.bytes_of(kept[k], {});
  }
}

std::string DividedPlan::text() const {
  if (kept.empty()) return {};
  std::string out = strformat("kept: {} bytes of {} values, computed once by {} steps\n",
                              kept_bytes, kept.size(), constant.schedule.steps.size());
  for (const int b : kept) {
    const CompiledBuffer& buffer = constant.schedule.buffers[static_cast<size_t>(b)];
    append_format(out, "  b{} {} of {} bytes\n", b, name(buffer.dtype),
                  constant.schedule.bytes_of(b, {}));
  }
  return out;
}

}  // namespace weft
