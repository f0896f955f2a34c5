// Kernels: by time, and one of them with all that is known.
#include <algorithm>
#include <functional>

#include "weft/base/error.h"
#include "weft/viz/kernel_code.h"
#include "weft/viz/plan_choices.h"
#include "weft/viz/state.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

/// Of one launch; 0 where it is not known.
double per_second(double amount, uint64_t ns) {
  return ns == 0 ? 0 : amount / static_cast<double>(ns) * 1e9;
}

uint64_t total_ns(const Session::Data& data) {
  uint64_t sum = 0;
  for (const KernelRow& k : data.kernels) sum += k.ns;
  return sum;
}

void kernel_fields(JsonWriter& json, const Session::Data& data, uint32_t i, uint64_t total) {
  const KernelRow& k = data.kernels[i];
  json.field("kernel", i).field("name", k.name).field("device", k.device);
  json.field("target", k.target).field("process", k.process);
  id_field(json, "realization", k.run);
  json.field("line", k.line).field("runs", k.runs).field("ns", k.ns);
  json.field("median_ns", k.median_ns());
  json.field("share", total == 0 ? 0 : static_cast<double>(k.ns) / static_cast<double>(total));
  json.field("flops", k.flops).field("bytes", k.bytes);
  json.field("gflops", per_second(k.flops, k.median_ns()) * 1e-9);
  json.field("gbytes", per_second(k.bytes, k.median_ns()) * 1e-9);
  json.field("compile_ns", k.compile_ns).field("code_bytes", k.code_bytes);
  json.field("spilled", k.spilled);
}

std::vector<uint32_t> by_time(const Session::Data& data, const Parameters& parameters) {
  const uint32_t process = wanted_process(data, parameters);
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < data.kernels.size(); ++i)
    if (process == kNone || data.kernels[i].process == process) out.push_back(i);
  std::ranges::sort(out, {}, [&](uint32_t i) { return std::pair(~data.kernels[i].ns, i); });
  return out;
}

uint32_t wanted_kernel(const Session::Data& data, const Parameters& parameters) {
  return static_cast<uint32_t>(parameters.position("kernel", data.kernels.size(), "kernels"));
}

// ---- texts

struct KernelText {
  std::string kind;
  std::function<std::string()> text;
};

/// What the last pass with such a name left.
const PassRow* last_pass(const Session::Data& data, const KernelRow& k, std::string_view prefix) {
  for (size_t i = k.passes.size(); i-- > 0;)
    if (data.passes[k.passes[i]].name.starts_with(prefix)) return &data.passes[k.passes[i]];
  return nullptr;
}

/// A text, or the words that say why it cannot be shown.
std::string shown(const Session::Data& data, const PassRow& pass, uint64_t state) {
  try {
    NodeSource nodes(data, pass);
    return text_of(state_of(data, state, nodes), data.path);
  } catch (const Error& error) {
    return error.what();
  }
}

std::string language_of(const KernelRow& k) {
  return k.target.empty() ? "text" : std::string(k.target);
}

std::vector<KernelText> texts_of(const Session::Data& data, const KernelRow& k) {
  std::vector<KernelText> out;
  const auto add = [&](std::string_view prefix, const std::string& kind) {
    if (const PassRow* p = last_pass(data, k, prefix))
      out.push_back({kind, [&data, p] { return shown(data, *p, p->after); }});
  };
  if (!k.passes.empty()) {
    const PassRow& first = data.passes[k.passes[0]];
    out.push_back({"kernel", [&data, &first] { return shown(data, first, first.before); }});
  }
  add("optimize.", "graph");
  add("lower.", "program");
  add("codegen.", "listing");
  add("render.", language_of(k));
  if (!k.code.empty()) out.push_back({"bytes", [&k] { return hex_text(k.code); }});
  return out;
}

// ---- reasons

/// Decisions of the same realization about the kernel's lines; all where it has none.
std::vector<const DecisionRow*> decisions_of(const Session::Data& data, const KernelRow& k) {
  std::vector<const DecisionRow*> out;
  for (const auto& [run, rows] : data.decisions) {
    if (run != k.run) continue;
    for (const DecisionRow& d : rows)
      if (k.line.empty() ||
          (!d.line.empty() && (k.line.find(d.line) != std::string_view::npos ||
                               std::ranges::find(k.lines, d.line) != k.lines.end())))
        out.push_back(&d);
  }
  return out;
}

const SearchRow* search_of(const Session::Data& data, const KernelRow& k) {
  for (size_t i = data.searches.size(); i-- > 0;) {
    const SearchRow& s = data.searches[i];
    if (s.process == k.process && s.kernel == k.name && s.device == k.device) return &s;
  }
  return nullptr;
}

void write_search(JsonWriter& json, const SearchRow* s) {
  json.key("search");
  if (!s) return static_cast<void>(json.null());
  json.begin_object().field("analytic", s->analytic).field("best", s->best);
  json.field("analytic_seconds", s->analytic_seconds).field("best_seconds", s->best_seconds);
  json.field("analytic_cycles", s->analytic_cycles).field("best_cycles", s->best_cycles);
  json.field("rounds", s->rounds).field("plans", s->plans).field("samples", s->samples);
  json.field("refused", s->refused).field("seconds", s->seconds).end_object();
}

}  // namespace

std::string view_kernels(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const std::vector<uint32_t> order = by_time(data, parameters);
  const Page page = page_of(parameters, order.size(), 100);
  const uint64_t total = total_ns(data);
  JsonWriter json;
  json.begin_object().field("total", order.size()).field("ns", total);
  json.key("kernels").begin_array();
  for (size_t i = page.first; i < page.end; ++i) {
    json.begin_object();
    kernel_fields(json, data, order[i], total);
    json.end_object();
  }
  return json.end_array().end_object().take();
}

std::string text_kernels(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const std::vector<uint32_t> order = by_time(data, parameters);
  const Page page = page_of(parameters, order.size(), 100);
  const auto total = static_cast<double>(total_ns(data));
  std::string out =
      styled(colour, "1",
             strformat("{:>6} {:<32} {:>7} {:>6} {:>11} {:>11} {:>9} {:>9}  {}", "id", "kernel",
                       "share", "runs", "all", "median", "GFLOPS", "GB/s", "line")) +
      "\n";
  for (size_t i = page.first; i < page.end; ++i) {
    const KernelRow& k = data.kernels[order[i]];
    const auto ns = static_cast<double>(k.ns);
    append_format(out, "{:>6} {:<32} {:>6.1f}% {:>6} {:>11} {:>11} {:>9.2f} {:>9.2f}  {}\n",
                  order[i], printable(k.name), total > 0 ? ns / total * 100 : 0, k.runs,
                  duration_text(ns), duration_text(static_cast<double>(k.median_ns())),
                  per_second(k.flops, k.median_ns()) * 1e-9,
                  per_second(k.bytes, k.median_ns()) * 1e-9, printable(k.line));
  }
  return out;
}

std::string view_kernel(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const uint32_t i = wanted_kernel(data, parameters);
  const KernelRow& k = data.kernels[i];
  const std::vector<PlanChoice> plans = plan_choices(data, k);
  JsonWriter json;
  json.begin_object();
  kernel_fields(json, data, i, total_ns(data));
  json.key("lines").begin_array();
  for (const std::string_view line : k.lines) json.value(line);
  json.end_array().key("decisions").begin_array();
  for (const DecisionRow* d : decisions_of(data, k)) {
    json.begin_object().field("staged", d->staged).field("value", d->value);
    json.field("reason", d->reason).field("line", d->line).end_object();
  }
  json.end_array().key("applied").begin_array();
  for (const std::string_view line : k.applied) json.value(line);
  json.end_array().key("alternatives").begin_array();
  for (const PlanChoice& p : plans) {
    json.begin_object().field("plan", p.plan).field("cycles", p.cycles);
    json.field("chosen", p.chosen).end_object();
  }
  json.end_array();
  write_search(json, search_of(data, k));
  json.key("texts").begin_array();
  // They may be long: who shows one of them asks for that one.
  const std::string_view wanted = parameters.text("text");
  for (const KernelText& t : texts_of(data, k)) {
    json.begin_object().field("kind", t.kind).key("text");
    wanted.empty() || wanted == t.kind ? json.value(t.text()) : json.null();
    json.end_object();
  }
  json.end_array().key("passes").begin_array();
  for (const uint32_t p : k.passes) json.value(p);
  json.end_array().field("has_code", has_kernel_code(data, i));
  return json.end_object().take();
}

std::string text_kernel(const Session& session, const Parameters& parameters, bool colour) {
  const Session::Data& data = session.data();
  const KernelRow& k = data.kernels[wanted_kernel(data, parameters)];
  std::string out = strformat("{} on {} ({}), {}\n", styled(colour, "1", printable(k.name)),
                              printable(k.device), printable(k.target), printable(k.line));
  append_format(out,
                "{} launches, median {}, {:.2f} GFLOPS, {:.2f} GB/s; compiled in {}, {}, {} "
                "values without a register\n",
                k.runs, duration_text(static_cast<double>(k.median_ns())),
                per_second(k.flops, k.median_ns()) * 1e-9,
                per_second(k.bytes, k.median_ns()) * 1e-9,
                duration_text(static_cast<double>(k.compile_ns)),
                bytes_text(static_cast<double>(k.code_bytes)), k.spilled);
  for (const DecisionRow* d : decisions_of(data, k))
    append_format(out, "  {} {}: {} {}\n", d->staged ? "stage" : "fuse", printable(d->value),
                  printable(d->reason), printable(d->line));
  for (const std::string_view line : k.applied) append_format(out, "  {}\n", printable(line));
  for (const PlanChoice& p : plan_choices(data, k))
    append_format(out, "{} {:>12.0f} cycles  {}\n", p.chosen ? " *" : "  ", p.cycles, p.plan);
  if (const SearchRow* s = search_of(data, k))
    append_format(out, "  search: {:.2f} us -> {:.2f} us, {} plans in {:.1f} s\n",
                  s->analytic_seconds * 1e6, s->best_seconds * 1e6, s->plans, s->seconds);
  for (const KernelText& t : texts_of(data, k))
    append_format(out, "{}\n{}\n", styled(colour, "36", "--- " + t.kind), printable(t.text()));
  return out;
}

}  // namespace weft::viz
