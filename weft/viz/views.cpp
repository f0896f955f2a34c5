#include "weft/viz/views.h"

#include <algorithm>
#include <charconv>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/io/json_tree.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

constexpr ViewParameter kPaged[] = {{"first", "position in the list to begin with; 0"},
                                    {"count", "at most so many rows; 500"}};
constexpr ViewParameter kRealizations[] = {{"process", "only those of one"}, kPaged[0], kPaged[1]};
constexpr ViewParameter kPasses[] = {{"realization", "only those of one"},
                                     {"kernel", "only those of one"},
                                     {"changed", "1: only those that changed something; 0"},
                                     kPaged[0],
                                     {"count", "at most so many rows; 1000"}};
constexpr ViewParameter kPass[] = {{"pass", "which; must be given"},
                                   {"context", "equal lines around each change; 3"}};
constexpr ViewParameter kFirings[] = {kPass[0], kPaged[0], {"count", "at most so many rows; 100"}};
constexpr ViewParameter kFiring[] = {
    kPass[0], {"step", "which application of a rule; must be given"}, kPass[1]};
constexpr ViewParameter kGraph[] = {{"pass", "of which pass's state"},
                                    {"side", "before, after or both; after"},
                                    {"realization", "instead of a pass: what this runs"},
                                    {"kernel", "likewise: the blocks of its machine code"},
                                    kPaged[0],
                                    {"count", "at most so many nodes; 2000"}};
constexpr ViewParameter kTimeline[] = {
    {"begin", "ns since the session began; 0"},
    {"end", "likewise; the session's end"},
    {"resolution", "ns: shorter spans next to each other are told as one; 0"},
    {"track", "only this one"},
    {"process", "only tracks of this one"}};
constexpr ViewParameter kCompare[] = {
    {"realization", "the first of two"},
    {"other", "the second"},
    {"begin", "ns: instead of realizations two stretches of time"},
    {"end", "ns"},
    {"other_begin", "ns"},
    {"other_end", "ns"},
    kPaged[0],
    kPaged[1]};
constexpr ViewParameter kMemory[] = {{"realization", "which; must be given"}};
constexpr ViewParameter kKernels[] = {
    {"process", "only those of one"}, kPaged[0], {"count", "at most so many rows; 100"}};
constexpr ViewParameter kKernel[] = {{"kernel", "which; must be given"}};
constexpr ViewParameter kOneKernel[] = {
    kKernel[0], {"text", "the kind of the only text to send, or none; all"}};
constexpr ViewParameter kCode[] = {kKernel[0], kPaged[0], {"count", "at most so many lines; 4000"}};
constexpr ViewParameter kRules[] = {{"fired", "1: only those that fired; 0"}};
constexpr ViewParameter kRecompile[] = {
    kKernel[0], {"rules", "to switch off, as WEFT_RULES takes them; none"}, kPass[1]};
constexpr ViewParameter kStatistics[] = {
    {"history", "a file of benchmarks like bench/history.jsonl; none"}};
constexpr ViewParameter kSearch[] = {
    {"text", "what to look for, in capitals or not; must be given"},
    {"kind", "only in: op, dtype, rule, line, kernel or pass"},
    {"count", "at most so many rows; 100"}};

constexpr View kViews[] = {
    {"session", {}, "processes, versions, what is missing", view_session, text_session},
    {"realizations", kRealizations, "what was computed when, for which line", view_realizations,
     text_realizations},
    {"passes", kPasses, "what the compiler did, step by step", view_passes, text_passes},
    {"pass", kPass, "one step: before, after, the difference, the rules", view_pass, text_pass},
    {"firings", kFirings, "every application of a rule in a pass", view_firings, text_firings},
    {"firing", kFiring, "one application of a rule, with its graphs", view_firing},
    {"graph", kGraph, "nodes and edges of a state, or of what a realization runs", view_graph,
     text_graph},
    {"timeline", kTimeline, "spans in an interval", view_timeline, text_timeline},
    {"memory", kMemory, "buffers' lives, the peak and who holds it", view_memory, text_memory},
    {"compare", kCompare, "two realizations, or two stretches of time: what differs", view_compare,
     text_compare},
    {"kernels", kKernels, "kernels by time, longest first", view_kernels, text_kernels},
    {"kernel", kOneKernel, "one kernel: reasons, lines, texts, roofline", view_kernel, text_kernel},
    {"code", kCode, "machine code: blocks, loops, registers' lives, estimates, bytes", view_code,
     text_code},
    {"roofline", kKernel, "what a kernel reaches of what the machine can do", view_roofline,
     text_roofline},
    {"rules", kRules, "rewrite rules, where they fired, what is proved of them", view_rules},
    {"recompile", kRecompile, "a kernel's code with rules switched off, and without",
     view_recompile},
    {"lines", {}, "the user's lines: kernels and time of each, the longest first", view_lines},
    {"statistics", kStatistics, "time by pass and span, counters, history", view_statistics},
    {"search", kSearch, "where an op, dtype, rule, line, kernel or pass occurs", view_search},
    {"views", {}, "this table", view_views},
};

void check_parameters(const View& view, const Parameters& parameters) {
  for (const auto& [name, value] : parameters.values()) {
    const bool known = std::ranges::any_of(view.parameters,
                                           [&](const ViewParameter& p) { return name == p.name; });
    if (known) continue;
    std::vector<std::string_view> names;
    for (const ViewParameter& p : view.parameters) names.emplace_back(p.name);
    fail("viz.parameter", "view {} has no parameter '{}'{}", view.name,
         printable(name.substr(0, 64)), did_you_mean(name, names));
  }
}

// ---- JSON as text, for views that have no text of their own

std::string scalar_text(const JsonTree::Value& v) {
  switch (v.kind()) {
    case JsonTree::Kind::String: return printable(v.text());
    case JsonTree::Kind::Null: return "-";
    case JsonTree::Kind::Number: return strformat("{:.10g}", v.number());
    case JsonTree::Kind::True: return "yes";
    default: return "no";
  }
}

void append_value(std::string& out, const JsonTree::Value& v, size_t depth);

/// A row of a list on one line, without what is nested in it.
void append_row(std::string& out, const JsonTree::Value& row, size_t depth) {
  out.append(depth * 2, ' ');
  bool first = true;
  if (row.is_object())
    for (const JsonTree::Value member : row) {
      if (member.is_object() || member.is_array()) continue;
      append_format(out, "{}{} {}", first ? "" : ", ", member.key(), scalar_text(member));
      first = false;
    }
  else
    out += scalar_text(row);
  out += '\n';
}

void append_value(std::string& out, const JsonTree::Value& v, size_t depth) {
  if (v.is_array())
    for (const JsonTree::Value row : v) append_row(out, row, depth);
  else
    append_row(out, v, depth);
}

std::string lines_of(const std::string& json) {
  const JsonTree tree(json, "a view");
  std::string out;
  for (const JsonTree::Value member : tree.root()) {
    if (!member.is_array() && !member.is_object()) {
      append_format(out, "{}: {}\n", member.key(), scalar_text(member));
      continue;
    }
    append_format(out, "{}:\n", member.key());
    append_value(out, member, 1);
  }
  return out;
}

}  // namespace

std::span<const View> views() { return kViews; }

const View& find_view(std::string_view name) {
  for (const View& view : kViews)
    if (name == view.name) return view;
  std::vector<std::string_view> names;
  for (const View& view : kViews) names.emplace_back(view.name);
  fail("viz.view", "there is no view '{}'{}; `views` lists them", printable(name.substr(0, 64)),
       did_you_mean(name, names));
}

std::string view_json(const Session& session, std::string_view name, const Parameters& parameters) {
  const View& view = find_view(name);
  check_parameters(view, parameters);
  return view.json(session, parameters);
}

std::string view_text(const Session& session, std::string_view name, const Parameters& parameters,
                      bool colour) {
  const View& view = find_view(name);
  check_parameters(view, parameters);
  return view.text ? view.text(session, parameters, colour)
                   : lines_of(view.json(session, parameters));
}

std::string view_views(const Session&, const Parameters&) {
  JsonWriter json;
  json.begin_object().key("views").begin_array();
  for (const View& view : kViews) {
    json.begin_object().field("name", view.name).field("doc", view.doc);
    json.key("parameters").begin_array();
    for (const ViewParameter& p : view.parameters)
      json.begin_object().field("name", p.name).field("doc", p.doc).end_object();
    json.end_array().end_object();
  }
  return json.end_array().end_object().take();
}

void Parameters::set(std::string_view name, std::string_view value) {
  values_.emplace_back(name, value);
}

const std::string* Parameters::find(std::string_view name) const {
  for (size_t i = values_.size(); i-- > 0;)
    if (values_[i].first == name) return &values_[i].second;
  return nullptr;
}

std::string_view Parameters::text(std::string_view name) const {
  const std::string* found = find(name);
  return found ? *found : std::string_view();
}

int64_t Parameters::number(std::string_view name, int64_t initial) const {
  const std::string* text = find(name);
  if (!text) return initial;
  int64_t value = 0;
  const char* end = text->data() + text->size();
  const auto [at, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || at != end || value < 0)
    fail("viz.parameter", "{} is '{}'; it must be a whole number of at least 0", name,
         printable(std::string_view(*text).substr(0, 64)));
  return value;
}

size_t Parameters::position(std::string_view name, size_t end, std::string_view what) const {
  if (!has(name)) fail("viz.parameter", "{} is not given; say which {} is meant", name, what);
  const auto value = static_cast<uint64_t>(number(name, 0));
  if (value >= end)
    fail("viz.parameter", "{} is {}; the session has {} of {}", name, value, end, what);
  return static_cast<size_t>(value);
}

}  // namespace weft::viz
