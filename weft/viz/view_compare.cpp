// Two steps of a program, or two stretches of its time, next to each other: what differs.
#include <algorithm>
#include <tuple>

#include "weft/base/error.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

/// One of the two.
struct Part {
  uint32_t run = kNone;  ///< or a stretch of time
  uint64_t begin = 0, end = 0;
  bool has(const SpanRow& s) const {
    return run != kNone ? s.run == run : s.start >= begin && s.start < end;
  }
};

struct Sum {
  std::string_view name = {};
  uint32_t kernel = kNone;
  uint64_t count = 0, ns = 0;
};
struct Summary {
  std::vector<Sum> kernels = {}, spans = {};  ///< in the order of the first of each
  uint64_t launches = 0, kernel_ns = 0;
};

/// What is of one kernel, or has one name, in both.
struct Pair {
  Sum one = {}, other = {};
  std::string_view name() const { return one.count > 0 ? one.name : other.name; }
  int64_t difference() const { return static_cast<int64_t>(other.ns - one.ns); }
  const char* what() const { return one.count == 0 ? "added" : other.count == 0 ? "gone" : "same"; }
};

Part part_of_run(const Session::Data& data, const Parameters& parameters, std::string_view name) {
  const size_t i = parameters.position(name, data.runs.size(), "realizations");
  const Run& run = data.runs[i];
  return {static_cast<uint32_t>(i), run.start, run.ended ? run.end : data.end};
}

Part part_of_time(const Session::Data& data, const Parameters& parameters, std::string_view begin,
                  std::string_view end) {
  for (const std::string_view name : {begin, end})
    if (!parameters.has(name))
      fail("viz.parameter",
           "{} is not given; say which two realizations are meant (realization, other), or which "
           "two "
           "stretches of time (begin, end, other_begin, other_end)",
           name);
  const auto at = [&](std::string_view name) {
    const auto since = static_cast<uint64_t>(parameters.number(name, 0));
    return data.begin + std::min(since, UINT64_MAX - data.begin);
  };
  if (at(end) < at(begin))
    fail("viz.parameter", "{} is {} and {} is {}; the end must not lie before the beginning", begin,
         parameters.text(begin), end, parameters.text(end));
  return {kNone, at(begin), at(end)};
}

std::pair<Part, Part> parts_of(const Session::Data& data, const Parameters& parameters) {
  if (parameters.has("realization") || parameters.has("other"))
    return {part_of_run(data, parameters, "realization"), part_of_run(data, parameters, "other")};
  return {part_of_time(data, parameters, "begin", "end"),
          part_of_time(data, parameters, "other_begin", "other_end")};
}

void add(std::vector<Sum>& sums, std::map<std::pair<uint32_t, std::string_view>, size_t>& places,
         uint32_t kernel, std::string_view name, uint64_t ns) {
  const auto [at, fresh] =
      places.try_emplace({kernel, kernel == kNone ? name : std::string_view()}, sums.size());
  if (fresh) sums.push_back({name, kernel});
  ++sums[at->second].count;
  sums[at->second].ns += ns;
}

Summary summary_of(const Session::Data& data, const Part& part) {
  Summary out;
  std::map<std::pair<uint32_t, std::string_view>, size_t> kernels, spans;
  for (const TrackRow& track : data.tracks)
    for (const uint32_t i : track.spans) {
      const SpanRow& s = data.spans[i];
      if (!part.has(s)) continue;
      add(out.spans, spans, kNone, s.name, s.ns);
      if (s.name != "kernel") continue;
      const bool known = s.kernel != kNone && !data.kernels[s.kernel].name.empty();
      add(out.kernels, kernels, s.kernel, known ? data.kernels[s.kernel].name : s.detail, s.ns);
      ++out.launches;
      out.kernel_ns += s.ns;
    }
  return out;
}

int64_t magnitude(int64_t x) { return x < 0 ? -x : x; }

/// Those of the same kernel; then, in order, those of the same name: a step that was compiled anew
/// has kernels of its own.
std::vector<Pair> pairs_of(const std::vector<Sum>& one, const std::vector<Sum>& other) {
  std::vector<Pair> out;
  std::vector<bool> paired(other.size());
  std::map<uint32_t, size_t> by_kernel;
  std::map<std::string_view, std::vector<size_t>> by_name;  // the last first
  for (size_t i = other.size(); i-- > 0;)
    if (other[i].kernel != kNone) by_kernel[other[i].kernel] = i;
  for (const Sum& s : one) {
    out.push_back({s});
    const auto at = by_kernel.find(s.kernel);
    if (at == by_kernel.end()) continue;
    out.back().other = other[at->second];
    paired[at->second] = true;
  }
  for (size_t i = other.size(); i-- > 0;)
    if (!paired[i]) by_name[other[i].name].push_back(i);
  for (Pair& p : out) {
    const auto at = by_name.find(p.one.name);
    if (p.other.count > 0 || at == by_name.end() || at->second.empty()) continue;
    p.other = other[at->second.back()];
    paired[at->second.back()] = true;
    at->second.pop_back();
  }
  for (size_t i = 0; i < other.size(); ++i)
    if (!paired[i]) out.push_back({{}, other[i]});
  std::ranges::sort(out, {}, [](const Pair& p) {
    return std::tuple(-magnitude(p.difference()), ~(p.one.ns + p.other.ns), p.one.kernel,
                      p.other.kernel, p.one.name, p.other.name);
  });
  return out;
}

// ---- memory

/// Of a stretch of time, that of the realization in it that needs most.
HeldAtPeak held_by(const Session::Data& data, const Part& part) {
  if (part.run != kNone) return held_at_peak(data, part.run);
  HeldAtPeak most;
  for (uint32_t i = 0; i < data.runs.size(); ++i) {
    if (data.runs[i].start < part.begin || data.runs[i].start >= part.end) continue;
    HeldAtPeak held = held_at_peak(data, i);
    if (held.bytes > most.bytes) most = std::move(held);
  }
  return most;
}

struct MemoryPair {
  HeldAtPeak::Key key;
  uint64_t one = 0, other = 0;
  int64_t difference() const { return static_cast<int64_t>(other - one); }
};
std::vector<MemoryPair> pairs_of(const HeldAtPeak& one, const HeldAtPeak& other) {
  std::map<HeldAtPeak::Key, MemoryPair> all;
  for (const auto& [key, bytes] : one.by) all[key].one = bytes;
  for (const auto& [key, bytes] : other.by) all[key].other = bytes;
  std::vector<MemoryPair> out;
  for (auto& [key, pair] : all) out.push_back({key, pair.one, pair.other});
  std::ranges::sort(out, {}, [](const MemoryPair& p) {
    return std::tuple(-magnitude(p.difference()), ~(p.one + p.other), p.key);
  });
  return out;
}

/// Both, with what differs.
struct Comparison {
  Comparison(const Session::Data& data, const Parameters& parameters)
      : parts(parts_of(data, parameters)),
        one(summary_of(data, parts.first)),
        other(summary_of(data, parts.second)),
        held(held_by(data, parts.first)),
        other_held(held_by(data, parts.second)),
        kernels(pairs_of(one.kernels, other.kernels)),
        spans(pairs_of(one.spans, other.spans)),
        memory(pairs_of(held, other_held)) {}
  std::pair<Part, Part> parts;
  Summary one, other;
  HeldAtPeak held, other_held;
  std::vector<Pair> kernels, spans;
  std::vector<MemoryPair> memory;
};

void write_part(JsonWriter& json, const Session::Data& data, const Part& part,
                const Summary& summary, const HeldAtPeak& held) {
  json.begin_object();
  id_field(json, "realization", part.run);
  json.field("line", part.run == kNone ? std::string_view() : data.runs[part.run].line);
  time_field(json, "begin", data, part.begin);
  time_field(json, "end", data, part.end);
  json.field("ns", part.end - part.begin);
  json.field("compile_ns", part.run == kNone ? 0 : data.runs[part.run].compile_ns);
  json.field("launches", summary.launches).field("kernel_ns", summary.kernel_ns);
  json.field("peak", held.bytes).end_object();
}

void write_sums(JsonWriter& json, const Pair& p) {
  json.field("ns", p.one.ns).field("other_ns", p.other.ns).field("difference", p.difference());
}

}  // namespace

std::string view_compare(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const Comparison c(data, parameters);
  const Page page = page_of(parameters, c.kernels.size(), 500);
  JsonWriter json;
  json.begin_object().key("one");
  write_part(json, data, c.parts.first, c.one, c.held);
  json.key("other");
  write_part(json, data, c.parts.second, c.other, c.other_held);
  json.field("total", c.kernels.size()).key("kernels").begin_array();
  for (size_t i = page.first; i < page.end; ++i) {
    const Pair& p = c.kernels[i];
    json.begin_object().field("name", p.name()).field("what", p.what());
    id_field(json, "kernel", p.one.kernel);
    id_field(json, "other_kernel", p.other.kernel);
    json.field("runs", p.one.count).field("other_runs", p.other.count);
    write_sums(json, p);
    json.end_object();
  }
  json.end_array().key("spans").begin_array();
  for (const Pair& p : c.spans) {
    json.begin_object().field("name", p.name()).field("what", p.what());
    json.field("count", p.one.count).field("other_count", p.other.count);
    write_sums(json, p);
    json.end_object();
  }
  json.end_array().key("memory").begin_array();
  for (const MemoryPair& p : c.memory) {
    json.begin_object().field("line", p.key.first).field("kind", p.key.second);
    json.field("bytes", p.one).field("other_bytes", p.other);
    json.field("difference", p.difference()).end_object();
  }
  return json.end_array().end_object().take();
}

namespace {

/// "+1.25 ms"
std::string more_text(int64_t difference, std::string (*text)(double)) {
  const auto size = static_cast<double>(difference);
  return strformat("{}{}", difference < 0 ? "-" : "+", text(difference < 0 ? -size : size));
}
std::string ns_text(uint64_t ns) { return duration_text(static_cast<double>(ns)); }

std::string part_text(const Session::Data& data, const Part& part) {
  const double at = static_cast<double>(data.time(part.begin)) / 1e6;
  if (part.run == kNone) return strformat("{} from {:.3f} ms", ns_text(part.end - part.begin), at);
  return strformat("realization {} {}", part.run, printable(data.runs[part.run].line));
}

void append_total(std::string& out, const char* what, uint64_t one, uint64_t other,
                  std::string (*text)(double)) {
  append_format(out, "{:>12} {:>12} {:>13}  {}\n", text(static_cast<double>(one)),
                text(static_cast<double>(other)),
                more_text(static_cast<int64_t>(other - one), text), what);
}

}  // namespace

std::string text_compare(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const Comparison c(data, parameters);
  const auto& [first, second] = c.parts;
  std::string out = strformat("{} and {}\n", styled(colour, "1", part_text(data, first)),
                              styled(colour, "1", part_text(data, second)));
  append_total(out, "from begin to end", first.end - first.begin, second.end - second.begin,
               duration_text);
  append_total(out, "in kernels", c.one.kernel_ns, c.other.kernel_ns, duration_text);
  append_total(out, "of memory at the peak", c.held.bytes, c.other_held.bytes, bytes_text);
  const Page page = page_of(parameters, c.kernels.size(), 500);
  append_format(out, "{:>12} {:>12} {:>13} {:>11}  kernel\n", "time", "other", "difference",
                "runs");
  for (size_t i = page.first; i < page.end; ++i) {
    const Pair& p = c.kernels[i];
    const std::string_view what = p.what();
    const char* code = what == "added" ? "32" : "31";
    append_format(out, "{:>12} {:>12} {:>13} {:>11}  {}\n", ns_text(p.one.ns), ns_text(p.other.ns),
                  more_text(p.difference(), duration_text),
                  strformat("{} / {}", p.one.count, p.other.count),
                  styled(colour && what != "same", code,
                         strformat("{}{}",
                                   what == "added"  ? "+ "
                                   : what == "gone" ? "- "
                                                    : "  ",
                                   printable(p.name()))));
  }
  for (const MemoryPair& p : c.memory)
    if (p.one != p.other)
      append_format(out, "{:>12} {:>12} {:>13}  {} of {}\n", bytes_text(static_cast<double>(p.one)),
                    bytes_text(static_cast<double>(p.other)), more_text(p.difference(), bytes_text),
                    p.key.second, p.key.first.empty() ? "no line" : printable(p.key.first));
  return out;
}

}  // namespace weft::viz
