// Spans by time, and buffers by the steps at which they live.
#include <algorithm>

#include "weft/base/format.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

/// A span, or several next to each other on a level that are too short to be told apart.
struct Drawn {
  uint32_t span;  ///< the first
  uint64_t start, end;
  size_t merged = 1;
  uint16_t depth;
};

struct Interval {
  uint64_t begin, end, resolution;
};
Interval interval_of(const Session::Data& data, const Parameters& parameters) {
  const auto at = [&](const char* name, uint64_t initial) {
    const auto since = static_cast<uint64_t>(parameters.number(name, data.time(initial)));
    return data.begin + std::min(since, UINT64_MAX - data.begin);
  };
  return {at("begin", data.begin), at("end", data.end),
          static_cast<uint64_t>(parameters.number("resolution", 0))};
}

std::vector<Drawn> drawn(const Session::Data& data, const TrackRow& track, const Interval& in) {
  std::vector<Drawn> out;
  std::vector<size_t> last(track.depth, SIZE_MAX);  // of each level, in `out`
  for (size_t i = 0; i < track.spans.size(); ++i) {
    const SpanRow& s = data.spans[track.spans[i]];
    if (s.start > in.end) break;
    if (s.end() < in.begin) continue;
    const uint16_t depth = track.depths[i];
    if (const size_t l = last[depth]; l != SIZE_MAX && s.ns < in.resolution) {
      Drawn& before = out[l];
      if (before.end - before.start < in.resolution && s.end() - before.start < in.resolution) {
        before.end = std::max(before.end, s.end());
        ++before.merged;
        continue;
      }
    }
    last[depth] = out.size();
    out.push_back({track.spans[i], s.start, s.end(), 1, depth});
  }
  return out;
}

void write_span(JsonWriter& json, const Session::Data& data, const Drawn& d) {
  const SpanRow& s = data.spans[d.span];
  json.begin_object().field("name", s.name).field("detail", s.detail);
  time_field(json, "start", data, d.start);
  json.field("ns", d.end - d.start).field("depth", d.depth).field("amount", s.amount);
  json.field("merged", d.merged);
  id_field(json, "kernel", s.kernel);
  id_field(json, "realization", s.run);
  json.end_object();
}

std::vector<uint32_t> wanted_tracks(const Session::Data& data, const Parameters& parameters) {
  std::vector<uint32_t> out;
  const uint32_t process = wanted_process(data, parameters);
  if (parameters.has("track")) {
    out.push_back(
        static_cast<uint32_t>(parameters.position("track", data.tracks.size(), "tracks")));
    return out;
  }
  for (uint32_t i = 0; i < data.tracks.size(); ++i)
    if (process == kNone || data.tracks[i].process == process) out.push_back(i);
  return out;
}

}  // namespace

std::string view_timeline(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const Interval in = interval_of(data, parameters);
  JsonWriter json;
  json.begin_object();
  time_field(json, "begin", data, in.begin);
  time_field(json, "end", data, in.end);
  json.field("resolution", in.resolution).field("total", data.spans.size());
  json.key("tracks").begin_array();
  for (const uint32_t t : wanted_tracks(data, parameters)) {
    const TrackRow& track = data.tracks[t];
    json.begin_object().field("track", t).field("process", track.process);
    json.field("name", track.name).field("kind", track.queue ? "queue" : "thread");
    json.field("depth", track.depth).key("spans").begin_array();
    for (const Drawn& d : drawn(data, track, in)) write_span(json, data, d);
    json.end_array().end_object();
  }
  return json.end_array().end_object().take();
}

std::string text_timeline(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const Interval in = interval_of(data, parameters);
  std::string out;
  for (const uint32_t t : wanted_tracks(data, parameters)) {
    const TrackRow& track = data.tracks[t];
    append_format(out, "{} of process {}\n",
                  styled(colour, "1", strformat("track {}: {}", t, printable(track.name))),
                  track.process);
    for (const Drawn& d : drawn(data, track, in)) {
      const SpanRow& s = data.spans[d.span];
      append_format(out, "{:>14} {:>11} {:{}}{} {}{}\n",
                    strformat("+{:.3f} ms", static_cast<double>(data.time(d.start)) / 1e6),
                    duration_text(static_cast<double>(d.end - d.start)), "", d.depth * 2 + 1,
                    printable(s.name), printable(s.detail),
                    d.merged > 1 ? strformat(" and {} more", d.merged - 1) : "");
    }
  }
  return out;
}

// ---- memory

namespace {

struct Life {
  uint64_t bytes = 0;
  size_t first = SIZE_MAX, last = 0;
  uint32_t arena = kNone, maker = kNone;
  uint64_t offset = 0;
  std::string_view line;
  bool used() const { return first != SIZE_MAX; }
};

/// Lives of a schedule's buffers, and how many bytes each step finds alive.
class Lives {
 public:
  explicit Lives(const ScheduleRow& s) : schedule(s), of(s.buffers.size()) {
    for (size_t i = 0; i < s.steps.size(); ++i)
      for (const uint64_t use : s.steps[i].buffers) touch(static_cast<size_t>(use / 2), i, use % 2);
    for (size_t b = 0; b < of.size(); ++b) {
      const BufferRow& row = s.buffers[b];
      if (row.bytes > 0) of[b].bytes = static_cast<uint64_t>(row.bytes);
      if (row.input >= 0 || row.output >= 0) {
        of[b].first = 0;  // somebody else's before or after
        of[b].last = s.steps.empty() ? 0 : s.steps.size() - 1;
      }
    }
    place();
    add_up();
  }

  const ScheduleRow& schedule;
  std::vector<Life> of;
  std::vector<uint64_t> by_step;
  size_t peak = 0;

 private:
  void touch(size_t b, size_t step, bool written) {
    Life& l = of[b];
    if (written && l.maker == kNone) {
      l.maker = schedule.steps[step].kernel;
      l.line = schedule.steps[step].line;
    }
    l.first = std::min(l.first, step);
    l.last = std::max(l.last, step);
  }
  void place() {
    for (uint32_t a = 0; a < schedule.arenas.size(); ++a)
      for (const LifeRow& row : schedule.arenas[a].buffers) {
        if (row.buffer >= of.size()) continue;
        Life& l = of[static_cast<size_t>(row.buffer)];
        l.arena = a;
        l.offset = row.offset;
        l.bytes = row.bytes;
      }
  }
  void add_up() {
    std::vector<uint64_t> change(schedule.steps.size() + 1);
    for (const Life& l : of)
      if (l.used() && l.last < schedule.steps.size()) {
        change[l.first] += l.bytes;
        change[l.last + 1] -= l.bytes;
      }
    uint64_t live = 0;  // of a damaged file whatever it comes to
    for (size_t i = 0; i < schedule.steps.size(); ++i) {
      by_step.push_back(live += change[i]);
      if (by_step[i] > by_step[peak]) peak = i;
    }
  }
};

const char* kind_of(const BufferRow& b) {
  return b.input >= 0 ? "input" : b.output >= 0 ? "output" : "intermediate";
}

const ScheduleRow& wanted_schedule(const Session::Data& data, const Parameters& parameters) {
  static const ScheduleRow kEmpty{};
  const size_t i = parameters.position("realization", data.runs.size(), "realizations");
  const uint32_t schedule = data.runs[i].schedule;
  return schedule == kNone ? kEmpty : data.schedules[schedule];
}

void write_buffer(JsonWriter& json, const Lives& lives, size_t b) {
  const BufferRow& row = lives.schedule.buffers[b];
  const Life& l = lives.of[b];
  json.begin_object().field("buffer", b).field("device", row.device).field("dtype", row.dtype);
  json.field("bytes", l.bytes).field("kind", kind_of(row));
  json.field("first", l.used() ? l.first : 0).field("last", l.last);
  id_field(json, "arena", l.arena);
  json.field("offset", l.offset);
  id_field(json, "made_by", l.maker);
  json.field("line", l.line).field("name", row.name).end_object();
}

}  // namespace

std::string view_memory(const Session& session, const Parameters& parameters) {
  const Lives lives(wanted_schedule(session.data(), parameters));
  JsonWriter json;
  json.begin_object().field("realization", parameters.number("realization", 0));
  json.field("steps", lives.by_step.size()).key("peak").begin_object();
  json.field("step", lives.peak);
  json.field("bytes", lives.by_step.empty() ? 0 : lives.by_step[lives.peak]);
  json.key("buffers").begin_array();
  for (size_t b = 0; b < lives.of.size(); ++b)
    if (lives.of[b].first <= lives.peak && lives.of[b].last >= lives.peak) json.value(b);
  json.end_array().end_object().key("by_step").begin_array();
  for (const uint64_t bytes : lives.by_step) json.value(bytes);
  json.end_array().key("arenas").begin_array();
  for (const ArenaRow& a : lives.schedule.arenas)
    json.begin_object()
        .field("device", a.device)
        .field("bytes", a.bytes)
        .field("least", a.least)
        .end_object();
  json.end_array().key("buffers").begin_array();
  for (size_t b = 0; b < lives.of.size(); ++b) write_buffer(json, lives, b);
  return json.end_array().end_object().take();
}

HeldAtPeak held_at_peak(const Session::Data& data, uint32_t run) {
  HeldAtPeak out;
  if (data.runs[run].schedule == kNone) return out;
  const Lives lives(data.schedules[data.runs[run].schedule]);
  if (lives.by_step.empty()) return out;
  out.bytes = lives.by_step[lives.peak];
  for (size_t b = 0; b < lives.of.size(); ++b) {
    const Life& l = lives.of[b];
    if (l.first <= lives.peak && l.last >= lives.peak)
      out.by[{l.line, kind_of(lives.schedule.buffers[b])}] += l.bytes;
  }
  return out;
}

std::string text_memory(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const Lives lives(wanted_schedule(data, parameters));
  if (lives.by_step.empty()) return "nothing runs\n";
  std::string out =
      strformat("{}\n", styled(colour, "1",
                               strformat("peak {} at step {} of {}",
                                         bytes_text(static_cast<double>(lives.by_step[lives.peak])),
                                         lives.peak, lives.by_step.size())));
  std::vector<size_t> order;
  for (size_t b = 0; b < lives.of.size(); ++b)
    if (lives.of[b].first <= lives.peak && lives.of[b].last >= lives.peak) order.push_back(b);
  std::ranges::sort(order, {}, [&](size_t b) { return std::pair(~lives.of[b].bytes, b); });
  for (const size_t b : order) {
    const Life& l = lives.of[b];
    append_format(out, "{:>10} {:<12} {:<6} steps {} to {}  {} {}\n",
                  bytes_text(static_cast<double>(l.bytes)), kind_of(lives.schedule.buffers[b]),
                  printable(lives.schedule.buffers[b].dtype), l.first, l.last,
                  l.maker == kNone ? "" : printable(data.kernels[l.maker].name), printable(l.line));
  }
  return out;
}

}  // namespace weft::viz
