// Passes, and the rules that fired in them.
#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/graph/print_nodes.h"
#include "weft/run/passes.h"
#include "weft/viz/diff.h"
#include "weft/viz/stored_order.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

// A text of more lines is cut: nobody reads them, and a page has to show them.
constexpr size_t kMostLines = 20000;
constexpr size_t kMostExpression = 2000;

std::string_view afterwards(std::string_view pass) {
  for (const auto& row : all_passes())
    if (pass == row.name) return row.after;
  return {};
}

/// How large states are: each is decoded once, for whoever asks first.
class Sizes {
 public:
  explicit Sizes(const Session::Data& data) : data_(data) {}

  /// Nodes or instructions; 0 where it cannot be read.
  size_t of(const PassRow& pass, uint64_t state) {
    const std::tuple key(pass.process, pass.arena, state);
    {
      const std::lock_guard lock(data_.sizes_mutex);
      const auto known = data_.sizes.find(key);
      if (known != data_.sizes.end()) return known->second;
    }
    const size_t size = read(pass, state);  // a large one takes a while: others go on meanwhile
    const std::lock_guard lock(data_.sizes_mutex);
    return data_.sizes.emplace(key, size).first->second;
  }

 private:
  size_t read(const PassRow& pass, uint64_t state) {
    try {
      NodeSource& nodes =
          sources_.try_emplace({pass.process, pass.arena}, data_, pass).first->second;
      const StateView view = numbers_of(data_, state, nodes);
      if (view.kind == StateParts::Kind::Program) return view.numbers.size();
      return view.numbers.empty() ? 0 : StoredOrder(nodes, view.numbers).size();
    } catch (const Error&) {
      return 0;
    }
  }

  const Session::Data& data_;
  std::map<std::pair<uint32_t, uint64_t>, NodeSource> sources_;
};

std::string cut_text(std::string text) {
  size_t lines = 0;
  for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at)
    if (++lines == kMostLines) {
      const auto left = std::count(text.begin() + static_cast<ptrdiff_t>(at) + 1, text.end(), '\n');
      if (left > 0) {
        text.resize(at + 1);
        append_format(text, "... {} more lines\n", left);
      }
      break;
    }
  return text;
}

/// The lines that are shown of a large graph: no more of it is interned than those.
std::string beginning_of(const StoredOrder& order, NodeSource& nodes) {
  std::vector<NodeRef> first;
  for (size_t i = 0; i < kMostLines; ++i) first.push_back(nodes.get(order.numbers[i]));
  size_t left = 0;
  for (size_t i = kMostLines; i < order.size(); ++i)
    left += order.ops[i] != Op::Const || order.lanes[i] > 1;  // constants have no line
  return strformat("{}... {} more lines\n", print_nodes(first), left);
}

/// A state's text, or why there is none.
struct Shown {
  const char* form = nullptr;
  std::string text;
};
Shown show(const Session::Data& data, const PassRow& pass, uint64_t state) {
  try {
    NodeSource nodes(data, pass);
    StateView view = numbers_of(data, state, nodes);
    if (view.kind == StateParts::Kind::Graph && !view.numbers.empty())
      if (const StoredOrder order(nodes, view.numbers); order.size() > 2 * kMostLines)
        return {view.form(), beginning_of(order, nodes)};
    view = state_of(data, state, nodes);
    return {view.form(), cut_text(text_of(view, data.path))};
  } catch (const Error& error) {
    return {"text", error.what()};
  }
}

}  // namespace

void write_diff(JsonWriter& json, std::string_view before, std::string_view after,
                const Parameters& parameters) {
  constexpr const char* kKinds[] = {"same", "removed", "added", "skipped"};
  const auto context = static_cast<size_t>(parameters.number("context", 3));
  json.key("diff").begin_array();
  for (const DiffLine& line : diff_lines(before, after, context)) {
    json.begin_object().field("kind", kKinds[static_cast<size_t>(line.kind)]);
    if (line.kind == DiffLine::Kind::Skipped) {
      json.field("count", line.count).end_object();
      continue;
    }
    json.key("before");
    line.before ? json.value(line.before) : json.null();
    json.key("after");
    line.after ? json.value(line.after) : json.null();
    json.field("text", line.text).end_object();
  }
  json.end_array();
}

namespace {

struct FiredRule {
  std::string_view name;
  uint64_t string;
  size_t count;
};
std::vector<FiredRule> fired_rules(const Session::Data& data, const PassRow& pass) {
  std::map<uint64_t, size_t> counts;
  for (const Firing& f : data.firings(pass)) ++counts[f.rule];
  std::vector<FiredRule> out;
  for (const auto& [rule, count] : counts)
    out.push_back({data.rule_name(pass, {rule, 0, 0}), rule, count});
  std::ranges::sort(out, [](const FiredRule& a, const FiredRule& b) {
    return a.count != b.count ? a.count > b.count : a.name < b.name;
  });
  return out;
}

void rule_fields(JsonWriter& json, const Process& process, std::string_view name, uint64_t string) {
  const RuleFacts facts = rule_facts(process, name, string);
  json.field("rule", name).field("text", facts.text).field("source", facts.source);
  json.field("proof", facts.proof);
}

/// The pass before or after it of the same kernel or, for those of none, realization.
void neighbour_fields(JsonWriter& json, const Session::Data& data, uint32_t pass) {
  const PassRow& p = data.passes[pass];
  const std::vector<uint32_t>* list = p.kernel != kNone ? &data.kernels[p.kernel].passes
                                      : p.run != kNone  ? &data.runs[p.run].passes
                                                        : nullptr;
  uint32_t before = kNone, after = kNone;
  if (list) {
    const auto at = std::ranges::lower_bound(*list, pass);
    if (at != list->begin()) before = *(at - 1);
    if (at != list->end() && at + 1 != list->end()) after = *(at + 1);
  }
  id_field(json, "previous", before);
  id_field(json, "next", after);
}

std::vector<uint32_t> wanted_passes(const Session::Data& data, const Parameters& parameters) {
  std::vector<uint32_t> out;
  if (parameters.has("realization")) {
    out = data.runs[parameters.position("realization", data.runs.size(), "realizations")].passes;
  } else if (parameters.has("kernel")) {
    out = data.kernels[parameters.position("kernel", data.kernels.size(), "kernels")].passes;
  } else {
    out.resize(data.passes.size());
    for (uint32_t i = 0; i < out.size(); ++i) out[i] = i;
  }
  if (parameters.number("changed", 0) != 0)
    std::erase_if(out, [&](uint32_t i) { return !data.passes[i].changed(); });
  return out;
}

uint32_t wanted_pass(const Session::Data& data, const Parameters& parameters) {
  return static_cast<uint32_t>(parameters.position("pass", data.passes.size(), "passes"));
}

std::string line_of(const Session::Data& data, const PassRow& p) {
  if (p.kernel != kNone) return std::string(data.kernels[p.kernel].line);
  return p.run == kNone ? "" : std::string(data.runs[p.run].line);
}

void pass_fields(JsonWriter& json, const Session::Data& data, uint32_t pass, Sizes& sizes) {
  const PassRow& p = data.passes[pass];
  json.field("pass", pass).field("name", p.name).field("afterwards", afterwards(p.name));
  json.field("subject", p.subject).field("process", p.process);
  id_field(json, "realization", p.run);
  id_field(json, "kernel", p.kernel);
  time_field(json, "start", data, p.start);
  json.field("ns", p.ns).field("failed", !p.ended);
  json.field("size_before", sizes.of(p, p.before));
  json.field("size_after", sizes.of(p, p.after));
  json.field("changed", p.changed()).field("firings", p.firings);
}

}  // namespace

std::string view_passes(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const std::vector<uint32_t> passes = wanted_passes(data, parameters);
  const Page page = page_of(parameters, passes.size(), 1000);
  JsonWriter json;
  Sizes sizes(data);
  json.begin_object().field("total", passes.size()).key("passes").begin_array();
  for (size_t i = page.first; i < page.end; ++i) {
    json.begin_object();
    pass_fields(json, data, passes[i], sizes);
    json.end_object();
  }
  return json.end_array().end_object().take();
}

std::string text_passes(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const std::vector<uint32_t> passes = wanted_passes(data, parameters);
  const Page page = page_of(parameters, passes.size(), 1000);
  std::string out = strformat("{:>6} {:<28} {:<32} {:>11} {:>7} {:>7}\n", "id", "pass", "of",
                              "took", "rules", "");
  for (size_t i = page.first; i < page.end; ++i) {
    const PassRow& p = data.passes[passes[i]];
    append_format(out, "{:>6} {:<28} {:<32} {:>11} {:>7} {}\n", passes[i], printable(p.name),
                  printable(p.subject), duration_text(static_cast<double>(p.ns)), p.firings,
                  !p.ended      ? styled(colour, "31", "failed")
                  : p.changed() ? styled(colour, "32", "changed")
                                : "");
  }
  return out;
}

std::string view_pass(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const uint32_t i = wanted_pass(data, parameters);
  const PassRow& p = data.passes[i];
  const Shown before = show(data, p, p.before), after = show(data, p, p.after);
  JsonWriter json;
  Sizes sizes(data);
  json.begin_object();
  pass_fields(json, data, i, sizes);
  neighbour_fields(json, data, i);
  json.key("form");
  after.form ? json.value(after.form) : json.null();
  json.field("before", before.text).field("after", after.text);
  write_diff(json, before.text, after.text, parameters);
  json.key("rules").begin_array();
  for (const FiredRule& r : fired_rules(data, p)) {
    json.begin_object().field("count", r.count);
    rule_fields(json, data.processes[p.process], r.name, r.string);
    json.end_object();
  }
  return json.end_array().field("line", line_of(data, p)).end_object().take();
}

std::string text_pass(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const PassRow& p = data.passes[wanted_pass(data, parameters)];
  const Shown before = show(data, p, p.before), after = show(data, p, p.after);
  std::string out = strformat("{} {} {}: {}, {} rules\n", styled(colour, "1", printable(p.name)),
                              printable(p.subject), printable(line_of(data, p)),
                              duration_text(static_cast<double>(p.ns)), p.firings);
  for (const FiredRule& r : fired_rules(data, p)) {
    const RuleFacts facts = rule_facts(data.processes[p.process], r.name, r.string);
    append_format(out, "{:>6} x {}{}\n", r.count, printable(facts.text),
                  facts.proof.empty() ? "" : strformat("  [{}]", facts.proof));
  }
  const auto context = static_cast<size_t>(parameters.number("context", 3));
  for (const DiffLine& line : diff_lines(before.text, after.text, context)) {
    switch (line.kind) {
      case DiffLine::Kind::Same: append_format(out, "  {}\n", printable(line.text)); break;
      case DiffLine::Kind::Removed:
        append_format(out, "{}\n", styled(colour, "31", "- " + printable(line.text)));
        break;
      case DiffLine::Kind::Added:
        append_format(out, "{}\n", styled(colour, "32", "+ " + printable(line.text)));
        break;
      case DiffLine::Kind::Skipped:
        append_format(out, "{}\n", styled(colour, "36", strformat("@ {} equal lines", line.count)));
    }
  }
  return out;
}

namespace {

/// A node on one line; why not where it is damaged.
std::string expression_of(NodeSource& nodes, uint64_t number) {
  try {
    NodeRef n = nodes.get(number);
    std::string text = n->rank() == 0 ? expression(n) : summary(n);
    if (text.size() > kMostExpression) text.resize(kMostExpression), text += "...";
    return text;
  } catch (const Error& error) {
    return error.what();
  }
}

std::string graph_of(NodeSource& nodes, uint64_t number) {
  try {
    return cut_text(print_graph(nodes.get(number)));
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::string view_firings(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const uint32_t i = wanted_pass(data, parameters);
  const PassRow& p = data.passes[i];
  const std::vector<Firing> firings = data.firings(p);
  const Page page = page_of(parameters, firings.size(), 100);
  NodeSource nodes(data, p);
  JsonWriter json;
  json.begin_object().field("pass", i).field("total", firings.size());
  json.key("firings").begin_array();
  for (size_t k = page.first; k < page.end; ++k) {
    json.begin_object().field("step", k).field("rule", data.rule_name(p, firings[k]));
    json.field("before", expression_of(nodes, firings[k].before));
    json.field("after", expression_of(nodes, firings[k].after)).end_object();
  }
  return json.end_array().end_object().take();
}

std::string text_firings(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const PassRow& p = data.passes[wanted_pass(data, parameters)];
  const std::vector<Firing> firings = data.firings(p);
  const Page page = page_of(parameters, firings.size(), 100);
  NodeSource nodes(data, p);
  std::string out = strformat("{} rules fired\n", firings.size());
  for (size_t k = page.first; k < page.end; ++k)
    append_format(out, "{:>6} {:<24} {} -> {}\n", k, printable(data.rule_name(p, firings[k])),
                  styled(colour, "31", printable(expression_of(nodes, firings[k].before))),
                  styled(colour, "32", printable(expression_of(nodes, firings[k].after))));
  return out;
}

std::string view_firing(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const uint32_t i = wanted_pass(data, parameters);
  const PassRow& p = data.passes[i];
  const std::vector<Firing> firings = data.firings(p);
  const size_t step = parameters.position("step", firings.size(), "steps");
  const Firing& f = firings[step];
  NodeSource nodes(data, p);
  const std::string before = graph_of(nodes, f.before), after = graph_of(nodes, f.after);
  JsonWriter json;
  json.begin_object().field("pass", i).field("step", step).field("total", firings.size());
  rule_fields(json, data.processes[p.process], data.rule_name(p, f), f.rule);
  json.field("before", expression_of(nodes, f.before));
  json.field("after", expression_of(nodes, f.after));
  json.field("before_graph", before).field("after_graph", after);
  write_diff(json, before, after, parameters);
  return json.end_object().take();
}

}  // namespace weft::viz
