// Who belongs to whom, by number and by time.
#include <algorithm>
#include <numeric>

#include "weft/viz/session_data.h"

namespace weft::viz {
namespace {

constexpr size_t kMostDepth = 64;  // of spans within spans; deeper ones are drawn there

void bound_times(Session::Data& data) {
  bool any = false;
  for (const Process& p : data.processes) {
    if (!p.described) continue;
    data.begin = any ? std::min(data.begin, p.begin) : p.begin;
    data.end = std::max(data.end, p.last);
    any = true;
  }
  for (const Run& r : data.runs) data.begin = std::min(data.begin, r.start);
  for (const SpanRow& s : data.spans) data.begin = std::min(data.begin, s.start);
  data.end = std::max(data.end, data.begin);
}

void list_passes(Session::Data& data) {
  for (uint32_t i = 0; i < data.passes.size(); ++i) {
    const PassRow& p = data.passes[i];
    if (p.run != kNone) data.runs[p.run].passes.push_back(i);
    if (p.kernel != kNone) data.kernels[p.kernel].passes.push_back(i);
  }
  // Of one whose compiling was cut short its passes know.
  for (KernelRow& k : data.kernels)
    if (!k.passes.empty()) {
      const PassRow& first = data.passes[k.passes[0]];
      if (k.name.empty()) k.name = first.subject;
      if (k.run == kNone) k.run = first.run;
    }
  for (uint32_t i = 0; i < data.kernels.size(); ++i)
    if (data.kernels[i].run != kNone) data.runs[data.kernels[i].run].kernels.push_back(i);
}

/// Spans of a track by start, the longer first, and how many others each lies in.
void order(const std::vector<SpanRow>& spans, TrackRow& track) {
  std::ranges::sort(track.spans, [&](uint32_t a, uint32_t b) {
    const SpanRow &x = spans[a], &y = spans[b];
    return x.start != y.start ? x.start < y.start : x.end() != y.end() ? x.end() > y.end() : a < b;
  });
  std::vector<uint64_t> open;  // ends
  for (const uint32_t i : track.spans) {
    while (!open.empty() && open.back() <= spans[i].start) open.pop_back();
    const size_t depth = std::min(open.size(), kMostDepth);
    track.depths.push_back(static_cast<uint16_t>(depth));
    track.depth = std::max(track.depth, static_cast<uint32_t>(depth) + 1);
    if (open.size() <= kMostDepth) open.push_back(spans[i].end());
  }
}

void list_spans(Session::Data& data) {
  for (uint32_t i = 0; i < data.spans.size(); ++i)
    data.tracks[data.spans[i].track].spans.push_back(i);
  for (TrackRow& track : data.tracks) order(data.spans, track);
}

/// The runs of a process that do not lie in others, by start.
std::vector<std::vector<uint32_t>> runs_by_process(const Session::Data& data) {
  std::vector<std::vector<uint32_t>> out(data.processes.size());
  for (uint32_t i = 0; i < data.runs.size(); ++i) out[data.runs[i].process].push_back(i);
  for (std::vector<uint32_t>& runs : out)
    std::ranges::sort(runs, {}, [&](uint32_t r) { return data.runs[r].start; });
  return out;
}

/// The run that began last before that time, if it had not ended then.
uint32_t run_at(const Session::Data& data, const std::vector<uint32_t>& runs, uint64_t time) {
  auto after =
      std::ranges::upper_bound(runs, time, {}, [&](uint32_t r) { return data.runs[r].start; });
  for (int looked = 0; after != runs.begin() && looked < 4; ++looked) {
    const Run& run = data.runs[*--after];
    if (!run.ended || time < run.end) return *after;
  }
  return kNone;
}

/// Kernels by what launches say of them: their name, in the order of the steps of what runs.
class Launches {
 public:
  explicit Launches(Session::Data& data) : data_(data), by_name_(data.schedules.size()) {
    for (uint32_t i = 0; i < data.kernels.size(); ++i)
      newest_[{data.kernels[i].process, data.kernels[i].entry}] = i;
  }

  uint32_t kernel_of(const SpanRow& span) {
    const uint32_t process = data_.tracks[span.track].process;
    const uint32_t schedule = span.run == kNone ? kNone : data_.runs[span.run].schedule;
    if (span.run != run_) run_ = span.run, next_.clear();
    if (schedule != kNone) {
      const auto& steps = steps_of(schedule);
      if (const auto at = steps.find(span.detail); at != steps.end())
        return at->second[next_[span.detail]++ % at->second.size()];
    }
    const auto at = newest_.find({process, span.detail});
    return at == newest_.end() ? kNone : at->second;
  }

 private:
  using Steps = std::map<std::string_view, std::vector<uint32_t>>;
  const Steps& steps_of(uint32_t schedule) {
    Steps& steps = by_name_[schedule];
    if (steps.empty())
      for (const StepRow& s : data_.schedules[schedule].steps)
        if (s.kernel != kNone) steps[s.entry].push_back(s.kernel);
    return steps;
  }

  Session::Data& data_;
  std::vector<Steps> by_name_;
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> newest_;
  uint32_t run_ = kNone;
  std::map<std::string_view, size_t> next_;  // launches of the run so far
};

void link_launches(Session::Data& data) {
  const std::vector<std::vector<uint32_t>> runs = runs_by_process(data);
  std::vector<uint32_t> order(data.spans.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](uint32_t i) { return std::pair(data.spans[i].start, i); });
  Launches launches(data);
  for (const uint32_t i : order) {
    SpanRow& s = data.spans[i];
    s.run = run_at(data, runs[data.tracks[s.track].process], s.start);
    if (s.name != "kernel") continue;
    s.kernel = launches.kernel_of(s);
    if (s.kernel == kNone) continue;
    KernelRow& k = data.kernels[s.kernel];
    ++k.runs;
    k.ns += s.ns;
    k.lengths.push_back(s.ns);
  }
  for (KernelRow& k : data.kernels) std::ranges::sort(k.lengths);
}

}  // namespace

void link(Session::Data& data) {
  bound_times(data);
  list_passes(data);
  list_spans(data);
  link_launches(data);
}

}  // namespace weft::viz
