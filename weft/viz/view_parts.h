// What views share: ids that may be none, pages of lists, colours, rows.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

#include "weft/base/json_writer.h"
#include "weft/viz/graph_data.h"
#include "weft/viz/session_data.h"
#include "weft/viz/views.h"

namespace weft::viz {

/// A position, or null.
inline void id_field(JsonWriter& json, const char* name, uint32_t id) {
  json.key(name);
  if (id == kNone)
    json.null();
  else
    json.value(id);
}
inline void time_field(JsonWriter& json, const char* name, const Session::Data& data, uint64_t ns) {
  json.field(name, data.time(ns));
}

/// first and count of a list of `total`, cut to what there is.
struct Page {
  size_t first, end;
};
Page page_of(const Parameters& parameters, size_t total, int64_t count);
/// The process that is asked for, or kNone for all.
uint32_t wanted_process(const Session::Data& data, const Parameters& parameters);

/// `text` in a terminal's colour ("32" green), where colours are wanted.
std::string styled(bool colour, const char* code, std::string_view text);
/// What a terminal can show: control characters, but line ends and tabs, are "\x1b".
std::string printable(std::string_view text);
std::string duration_text(double ns);  ///< "1.25 ms"
std::string bytes_text(double bytes);  ///< "1.5 MB"

/// A field "diff", with as many equal lines as the parameter `context` says.
void write_diff(JsonWriter& json, std::string_view before, std::string_view after,
                const Parameters& parameters);

/// Of a kernel's machine code: its blocks, and which follow which. Errors: those of kernel_code().
std::unique_ptr<GraphData> control_flow_graph(const Session::Data& data,
                                              const Parameters& parameters);

/// What is known of a rule; a recorded program's text and source win over those of this one.
struct RuleFacts {
  std::string text, source, set, domain, proof;
  bool native = false;
};
/// `name`: its string in the process.
RuleFacts rule_facts(const Process& process, std::string_view rule, uint64_t name);

/// Rules that fired and of which nothing is known: no proof, and no test of a right side in C++.
std::vector<std::string_view> unproved_rules(const Session::Data& data);
/// What a realization's memory holds at its peak, by the line and the kind of its buffers.
struct HeldAtPeak {
  using Key = std::pair<std::string_view, std::string_view>;
  uint64_t bytes = 0;
  std::map<Key, uint64_t> by = {};
};
HeldAtPeak held_at_peak(const Session::Data& data, uint32_t run);

std::string view_session(const Session& session, const Parameters& parameters);
std::string text_session(const Session& session, const Parameters& parameters, bool colour);
std::string view_realizations(const Session& session, const Parameters& parameters);
std::string text_realizations(const Session& session, const Parameters& parameters, bool colour);
std::string view_passes(const Session& session, const Parameters& parameters);
std::string text_passes(const Session& session, const Parameters& parameters, bool colour);
std::string view_pass(const Session& session, const Parameters& parameters);
std::string text_pass(const Session& session, const Parameters& parameters, bool colour);
std::string view_firings(const Session& session, const Parameters& parameters);
std::string text_firings(const Session& session, const Parameters& parameters, bool colour);
std::string view_firing(const Session& session, const Parameters& parameters);
std::string view_graph(const Session& session, const Parameters& parameters);
std::string text_graph(const Session& session, const Parameters& parameters, bool colour);
std::string view_timeline(const Session& session, const Parameters& parameters);
std::string text_timeline(const Session& session, const Parameters& parameters, bool colour);
std::string view_memory(const Session& session, const Parameters& parameters);
std::string text_memory(const Session& session, const Parameters& parameters, bool colour);
std::string view_compare(const Session& session, const Parameters& parameters);
std::string text_compare(const Session& session, const Parameters& parameters, bool colour);
std::string view_kernels(const Session& session, const Parameters& parameters);
std::string text_kernels(const Session& session, const Parameters& parameters, bool colour);
std::string view_kernel(const Session& session, const Parameters& parameters);
std::string text_kernel(const Session& session, const Parameters& parameters, bool colour);
std::string view_code(const Session& session, const Parameters& parameters);
std::string text_code(const Session& session, const Parameters& parameters, bool colour);
std::string view_roofline(const Session& session, const Parameters& parameters);
std::string text_roofline(const Session& session, const Parameters& parameters, bool colour);
std::string view_rules(const Session& session, const Parameters& parameters);
std::string view_recompile(const Session& session, const Parameters& parameters);
std::string view_lines(const Session& session, const Parameters& parameters);
std::string view_statistics(const Session& session, const Parameters& parameters);
std::string view_search(const Session& session, const Parameters& parameters);
std::string view_views(const Session& session, const Parameters& parameters);

}  // namespace weft::viz
