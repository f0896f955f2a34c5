#include "weft/run/constant_steps.h"

#include <algorithm>

#include "weft/base/format.h"

namespace weft {
namespace {

// What is kept takes at most so many times the memory it is computed from: numbers of four bits
// as floats. Beyond that (expanded vectors, masks) it had better be small.
constexpr int64_t kGrowth = 8;
constexpr int64_t kSmall = int64_t{1} << 20;

bool is_symbolic(const CompiledSchedule& s, const CompiledStep& step) {
  return std::ranges::any_of(step.variables, [](const auto& v) { return v.position >= 0; }) ||
         std::ranges::any_of(step.buffers, [&](int b) {
           return !s.buffers[static_cast<size_t>(b)].numel.is_constant();
         });
}

class Divider {
 public:
  Divider(const ReplayPlan& plan, const std::vector<bool>& changing)
      : schedule_(plan.schedule),
        runs_(schedule_.steps.size()),
        changes_(schedule_.buffers.size()) {
    for (size_t b = 0; b < changes_.size(); ++b) changes_[b] = schedule_.buffers[b].output >= 0;
    for (size_t i = 0; i < plan.places.size(); ++i)
      if (const HeldPlace& p = plan.places[i]; p.buffer >= 0)
        if (i < plan.arguments || p.written || !p.ending.none() || changing[i])
          changes_[static_cast<size_t>(p.buffer)] = true;
    for (size_t i = 0; i < runs_.size(); ++i) runs_[i] = is_symbolic(schedule_, schedule_.steps[i]);
    do spread();
    while (drop_large());
  }

  bool runs_in_each_call(size_t step) const { return runs_[step]; }

  /// Written by constant steps and looked at by others.
  std::vector<int> kept() const {
    std::vector<int> out;
    const std::vector<bool> written = touched(false, true), wanted = touched(true, false);
    for (size_t b = 0; b < written.size(); ++b)
      if (written[b] && wanted[b]) out.push_back(static_cast<int>(b));
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

  /// What takes too much memory to keep is computed in each call, from what is kept in its place.
  bool drop_large() {
    bool dropped = false;
    for (const int b : kept()) {
      const int64_t bytes = schedule_.bytes_of(b, {});
      if (bytes <= kSmall || bytes <= kGrowth * source_bytes(b)) continue;
      changes_[static_cast<size_t>(b)] = dropped = true;
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
};

}  // namespace

DividedPlan::DividedPlan(const ReplayPlan& plan, const std::vector<bool>& changing) {
  const Divider divider(plan, changing);
  kept = divider.kept();
  for (PlanPart* part : {&constant, &each_call}) {
    part->schedule.variables = plan.schedule.variables;
    part->schedule.buffers = plan.schedule.buffers;
  }
  std::vector<bool> read(plan.schedule.buffers.size());
  for (size_t i = 0; i < plan.schedule.steps.size(); ++i) {
    const CompiledStep& step = plan.schedule.steps[i];
    PlanPart& part = divider.runs_in_each_call(i) ? each_call : constant;
    part.schedule.steps.push_back(step);
    part.steps.push_back(i);
    for (int b : step.buffers)
      read[static_cast<size_t>(b)] = read[static_cast<size_t>(b)] || &part == &constant;
  }
  for (size_t i = 0; i < plan.places.size(); ++i)
    if (const int b = plan.places[i].buffer; b >= 0 && read[static_cast<size_t>(b)])
      sources.push_back(i);
  for (size_t k = 0; k < kept.size(); ++k) {
    const auto b = static_cast<size_t>(kept[k]);
    constant.schedule.buffers[b].output = static_cast<int>(k);
    each_call.schedule.buffers[b].input = static_cast<int>(plan.places.size() + k);
    kept_bytes += plan.schedule.bytes_of(kept[k], {});
  }
}

std::string DividedPlan::text() const {
  if (kept.empty()) return {};
  std::string out = strformat("kept: {} bytes of {} values, computed once by {} steps\n",
                              kept_bytes, kept.size(), constant.steps.size());
  for (const int b : kept) {
    const CompiledBuffer& buffer = constant.schedule.buffers[static_cast<size_t>(b)];
    append_format(out, "  b{} {} of {} bytes\n", b, name(buffer.dtype),
                  constant.schedule.bytes_of(b, {}));
  }
  return out;
}

}  // namespace weft
