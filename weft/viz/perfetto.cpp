#include "weft/viz/perfetto.h"

#include "weft/base/json_writer.h"
#include "weft/viz/session_data.h"

namespace weft::viz {
namespace {

void write_name(JsonWriter& json, const char* of, int64_t pid, uint32_t track,
                std::string_view name) {
  json.begin_object().field("name", of).field("ph", "M").field("pid", pid).field("tid", track);
  json.key("args").begin_object().field("name", name).end_object().end_object();
}

std::string command_of(const Process& p) {
  std::string out;
  for (const std::string_view word : p.command) (out += out.empty() ? "" : " ") += word;
  return out;
}

}  // namespace

std::string perfetto_json(const Session& session) {
  const Session::Data& data = session.data();
  JsonWriter json;
  json.begin_object().key("traceEvents").begin_array();
  for (const Process& p : data.processes) write_name(json, "process_name", p.pid, 0, command_of(p));
  for (uint32_t t = 0; t < data.tracks.size(); ++t) {
    const TrackRow& track = data.tracks[t];
    const int64_t pid = data.processes[track.process].pid;
    write_name(json, "thread_name", pid, t, track.name);
    for (const uint32_t i : track.spans) {
      const SpanRow& s = data.spans[i];
      json.begin_object().field("name", s.name).field("ph", "X").field("pid", pid).field("tid", t);
      json.field("ts", static_cast<double>(data.time(s.start)) / 1e3);
      json.field("dur", static_cast<double>(s.ns) / 1e3).key("args").begin_object();
      json.field("detail", s.detail).field("amount", s.amount).end_object().end_object();
    }
  }
  return json.end_array().field("displayTimeUnit", "ns").end_object().take();
}

}  // namespace weft::viz
