// The views of a session as a whole: processes, realizations, lines, and where something occurs.
#include <time.h>

#include <algorithm>

#include "weft/base/format.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

constexpr const char* kKinds[] = {"realize", "capture", "replay"};

std::string wall_text(uint64_t unix_ns) {
  const auto seconds = static_cast<time_t>(unix_ns / 1'000'000'000);
  tm utc{};
  if (::gmtime_r(&seconds, &utc) == nullptr) return "";
  char text[32];
  return {text, ::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

void list_field(JsonWriter& json, const char* name, const std::vector<std::string_view>& list) {
  json.key(name).begin_array();
  for (const std::string_view t : list) json.value(t);
  json.end_array();
}

void write_process(JsonWriter& json, const Session::Data& data, uint32_t i) {
  const Process& p = data.processes[i];
  json.begin_object().field("process", i).field("pid", p.pid).field("parent", p.parent);
  list_field(json, "command", p.command);
  json.field("directory", p.directory).field("weft", p.version).field("build", p.build);
  json.field("started", wall_text(p.unix_ns));
  time_field(json, "start", data, p.described ? p.begin : data.begin);
  time_field(json, "end", data, std::max(p.last, data.begin));
  json.field("finished", p.finished).field("device", p.device).field("machine", p.machine);
  list_field(json, "options", p.options);
  json.field("realizations", p.run_count).field("passes", p.pass_count);
  json.field("kernels", p.kernel_count).field("spans", p.span_count).end_object();
}

/// Launches of a run's kernels, by kernel.
struct Launched {
  uint32_t kernel;
  std::string_view name;
  size_t runs = 0;
  uint64_t ns = 0;
};
std::vector<std::vector<Launched>> launches_by_run(const Session::Data& data, Page page) {
  std::vector<std::vector<Launched>> out(page.end - page.first);
  for (const SpanRow& s : data.spans) {
    if (s.name != "kernel" || s.run == kNone || s.run < page.first || s.run >= page.end) continue;
    std::vector<Launched>& of = out[s.run - page.first];
    auto at = std::ranges::find_if(
        of, [&](const Launched& l) { return l.kernel == s.kernel && l.name == s.detail; });
    if (at == of.end()) at = of.insert(of.end(), {s.kernel, s.detail});
    ++at->runs;
    at->ns += s.ns;
  }
  return out;
}

void write_run(JsonWriter& json, const Session::Data& data, uint32_t i,
               const std::vector<Launched>& launched) {
  const Run& r = data.runs[i];
  json.begin_object().field("realization", i).field("process", r.process);
  json.field("kind", kKinds[r.kind]).field("line", r.line);
  time_field(json, "start", data, r.start);
  json.key("ns");
  if (r.ended)
    json.value(r.end - r.start);
  else
    json.null();
  json.field("compile_ns", r.compile_ns).field("failed", r.failed);
  json.field("steps", r.schedule == kNone ? 0 : data.schedules[r.schedule].steps.size());
  json.field("passes", r.passes.size()).key("compiled").begin_array();
  for (const uint32_t k : r.kernels) json.value(k);
  json.end_array().key("kernels").begin_array();
  for (const Launched& l : launched) {
    json.begin_object();
    id_field(json, "kernel", l.kernel);
    json.field("name", l.kernel == kNone ? l.name : data.kernels[l.kernel].name)
        .field("runs", l.runs)
        .field("ns", l.ns)
        .end_object();
  }
  json.end_array().end_object();
}

/// Positions of the runs that are asked for.
std::vector<uint32_t> wanted_runs(const Session::Data& data, const Parameters& parameters) {
  const uint32_t process = wanted_process(data, parameters);
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < data.runs.size(); ++i)
    if (process == kNone || data.runs[i].process == process) out.push_back(i);
  return out;
}

}  // namespace

std::string view_session(const Session& session, const Parameters&) {
  const Session::Data& data = session.data();
  JsonWriter json;
  json.begin_object().field("version", 1).field("path", data.path);
  json.field("bytes", data.bytes.size()).field("begin", 0).field("end", data.time(data.end));
  json.key("processes").begin_array();
  for (uint32_t i = 0; i < data.processes.size(); ++i) write_process(json, data, i);
  json.end_array().key("missing").begin_array();
  for (const MissingRow& m : data.missing) {
    json.begin_object();
    id_field(json, "process", m.process);
    json.field("why", m.why).field("text", m.text).field("at", m.at).end_object();
  }
  json.end_array();
  list_field(json, "unproved", unproved_rules(data));
  return json.end_object().take();
}

std::string text_session(const Session& session, const Parameters&, bool colour) {
  const Session::Data& data = session.data();
  std::string out = strformat("{}: {}, {}\n", printable(data.path),
                              bytes_text(static_cast<double>(data.bytes.size())),
                              duration_text(static_cast<double>(data.end - data.begin)));
  for (size_t i = 0; i < data.processes.size(); ++i) {
    const Process& p = data.processes[i];
    std::string command;
    for (const std::string_view word : p.command)
      append_format(command, "{}{}", command.empty() ? "" : " ", printable(word));
    append_format(out, "{}  pid {}{}  {}\n", styled(colour, "1", strformat("process {}", i)), p.pid,
                  p.finished ? "" : " (killed, or still running)", command);
    append_format(out, "  weft {} (build {}), {}, started {}\n", printable(p.version),
                  printable(p.build), printable(p.device), wall_text(p.unix_ns));
    append_format(out, "  {} realizations, {} passes, {} kernels compiled, {} spans\n", p.run_count,
                  p.pass_count, p.kernel_count, p.span_count);
  }
  for (const MissingRow& m : data.missing)
    append_format(out, "{} {}\n", styled(colour, "33", "missing:"), printable(m.text));
  for (const std::string_view rule : unproved_rules(data))
    append_format(out, "{} the rule {} fired\n", styled(colour, "33", "no known proof:"),
                  printable(rule));
  return out;
}

std::string view_realizations(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const std::vector<uint32_t> runs = wanted_runs(data, parameters);
  const Page page = page_of(parameters, runs.size(), 500);
  const auto launched = launches_by_run(data, {0, data.runs.size()});
  JsonWriter json;
  json.begin_object().field("total", runs.size()).key("realizations").begin_array();
  for (size_t i = page.first; i < page.end; ++i) write_run(json, data, runs[i], launched[runs[i]]);
  return json.end_array().end_object().take();
}

std::string text_realizations(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const std::vector<uint32_t> runs = wanted_runs(data, parameters);
  const Page page = page_of(parameters, runs.size(), 500);
  std::string out = strformat("{:>6} {:8} {:>12} {:>12} {:>7} {:>7} {:>7}  line\n", "id", "kind",
                              "took", "compiling", "steps", "passes", "new");
  for (size_t i = page.first; i < page.end; ++i) {
    const Run& r = data.runs[runs[i]];
    append_format(
        out, "{:>6} {:8} {:>12} {:>12} {:>7} {:>7} {:>7}  {}{}\n", runs[i], kKinds[r.kind],
        r.ended ? duration_text(static_cast<double>(r.end - r.start)) : "-",
        duration_text(static_cast<double>(r.compile_ns)),
        r.schedule == kNone ? 0 : data.schedules[r.schedule].steps.size(), r.passes.size(),
        r.kernels.size(), printable(r.line), r.failed ? styled(colour, "31", " failed") : "");
  }
  return out;
}

std::string view_lines(const Session& session, const Parameters&) {
  const Session::Data& data = session.data();
  struct Line {
    std::vector<uint32_t> kernels, runs;
    uint64_t launches = 0, ns = 0;
  };
  std::map<std::string_view, Line> lines;
  for (uint32_t i = 0; i < data.kernels.size(); ++i) {
    const KernelRow& k = data.kernels[i];
    for (const std::string_view text : k.lines) {
      Line& line = lines[text];
      line.kernels.push_back(i);
      line.launches += k.runs;
      line.ns += k.ns;
    }
  }
  for (uint32_t i = 0; i < data.runs.size(); ++i)
    if (!data.runs[i].line.empty()) lines[data.runs[i].line].runs.push_back(i);
  std::vector<std::pair<std::string_view, const Line*>> order;
  for (auto& [text, line] : lines) {
    std::ranges::sort(line.kernels, {},
                      [&](uint32_t k) { return std::pair(~data.kernels[k].ns, k); });
    order.emplace_back(text, &line);
  }
  std::ranges::sort(order, {}, [](const auto& l) { return std::pair(~l.second->ns, l.first); });
  JsonWriter json;
  json.begin_object().field("total", order.size()).key("lines").begin_array();
  for (const auto& [text, line] : order) {
    json.begin_object().field("line", text).key("kernels").begin_array();
    for (const uint32_t k : line->kernels) json.value(k);
    json.end_array().key("realizations").begin_array();
    for (const uint32_t r : line->runs) json.value(r);
    json.end_array().field("runs", line->launches).field("ns", line->ns).end_object();
  }
  return json.end_array().end_object().take();
}

}  // namespace weft::viz
