// Rules and statistics.
#include <algorithm>
#include <map>

#include "weft/base/file.h"
#include "weft/io/json_tree.h"
#include "weft/lower/lower.h"
#include "weft/rewrite/print.h"
#include "weft/simplify/simplify.h"
#include "weft/viz/proofs.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

constexpr size_t kMostPasses = 100;  // of a rule

struct KnownRule {
  std::string set;
  const RuleEntry* entry;
};

/// This program's rules by name.
class KnownRules {
 public:
  KnownRules() : sets_(simplify_rule_sets()) {
    for (RuleSetRow& set : lower_rule_sets()) sets_.push_back(std::move(set));
    for (const RuleSetRow& set : sets_)
      for (const RuleEntry& entry : set.entries)
        by_name_.try_emplace(entry.rule->name, KnownRule{set.name, &entry});
  }
  const std::map<std::string_view, KnownRule>& all() const { return by_name_; }
  const KnownRule* find(std::string_view name) const {
    const auto at = by_name_.find(name);
    return at == by_name_.end() ? nullptr : &at->second;
  }

 private:
  std::vector<RuleSetRow> sets_;
  std::map<std::string_view, KnownRule> by_name_;
};

RuleFacts facts_of(const KnownRules& known, std::string_view rule, const RuleText* recorded) {
  RuleFacts out;
  if (const KnownRule* k = known.find(rule)) {
    const Rule& r = *k->entry->rule;
    out = {to_text(r), source_of(r), k->set, domain_text(r.domain), "", k->entry->is_native()};
  }
  if (recorded) {
    out.text = recorded->text;
    out.source = recorded->source;
  }
  out.proof = proof_of(rule, out.text);
  return out;
}

struct Fired {
  size_t count = 0;
  std::vector<uint32_t> passes;
  const RuleText* text = nullptr;
};
std::map<std::string_view, Fired> all_firings(const Session::Data& data) {
  std::map<std::string_view, Fired> out;
  for (uint32_t i = 0; i < data.passes.size(); ++i) {
    const PassRow& p = data.passes[i];
    if (p.firings == 0) continue;
    const Process& process = data.processes[p.process];
    for (const Firing& f : data.firings(p)) {
      Fired& fired = out[data.rule_name(p, f)];
      ++fired.count;
      if (fired.passes.size() < kMostPasses && (fired.passes.empty() || fired.passes.back() != i))
        fired.passes.push_back(i);
      if (const auto at = process.rules.find(f.rule); at != process.rules.end())
        fired.text = &at->second;
    }
  }
  return out;
}

}  // namespace

RuleFacts rule_facts(const Process& process, std::string_view rule, uint64_t name) {
  const auto at = process.rules.find(name);
  return facts_of(KnownRules(), rule, at == process.rules.end() ? nullptr : &at->second);
}

std::vector<std::string_view> unproved_rules(const Session::Data& data) {
  std::vector<std::string_view> out;
  for (const Process& p : data.processes)
    for (const auto& [number, rule] : p.rules) {
      const std::string_view* name = p.strings.find(number);
      if (name && proof_of(*name, rule.text).empty()) out.push_back(*name);
    }
  std::ranges::sort(out);
  out.erase(std::ranges::unique(out).begin(), out.end());
  return out;
}

std::string view_rules(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  const KnownRules known;
  std::map<std::string_view, Fired> rules = all_firings(data);
  if (parameters.number("fired", 0) == 0)
    for (const auto& [name, rule] : known.all()) rules.try_emplace(name);
  std::vector<std::pair<std::string_view, const Fired*>> order;
  for (const auto& [name, fired] : rules) order.emplace_back(name, &fired);
  std::ranges::sort(order, {}, [](const auto& r) { return std::pair(~r.second->count, r.first); });
  JsonWriter json;
  json.begin_object().field("total", order.size()).key("rules").begin_array();
  for (const auto& [name, fired] : order) {
    const RuleFacts f = facts_of(known, name, fired->text);
    json.begin_object().field("rule", name).field("set", f.set).field("domain", f.domain);
    json.field("text", f.text).field("source", f.source).field("native", f.native);
    json.field("proof", f.proof).field("fired", fired->count).key("passes").begin_array();
    for (const uint32_t p : fired->passes) json.value(p);
    json.end_array().end_object();
  }
  return json.end_array().end_object().take();
}

// ---- statistics

namespace {

void write_passes(JsonWriter& json, const Session::Data& data) {
  struct Sum {
    size_t runs = 0, changed = 0, firings = 0;
    uint64_t ns = 0;
  };
  std::map<std::string_view, Sum> sums;
  for (const PassRow& p : data.passes) {
    Sum& s = sums[p.name];
    ++s.runs;
    s.changed += p.changed();
    s.firings += p.firings;
    s.ns += p.ns;
  }
  std::vector<std::pair<std::string_view, Sum>> order(sums.begin(), sums.end());
  std::ranges::sort(order, {}, [](const auto& s) { return std::pair(~s.second.ns, s.first); });
  json.key("passes").begin_array();
  for (const auto& [name, s] : order) {
    json.begin_object().field("name", name).field("runs", s.runs).field("changed", s.changed);
    json.field("firings", s.firings).field("ns", s.ns).end_object();
  }
  json.end_array();
}

void write_spans(JsonWriter& json, const Session::Data& data) {
  std::map<std::string_view, std::vector<uint64_t>> lengths;
  for (const SpanRow& s : data.spans) lengths[s.name].push_back(s.ns);
  json.key("spans").begin_array();
  for (auto& [name, ns] : lengths) {
    std::ranges::sort(ns);
    uint64_t sum = 0;
    for (const uint64_t one : ns) sum += one;
    json.begin_object().field("name", name).field("count", ns.size()).field("ns", sum);
    json.field("median_ns", ns[ns.size() / 2]).end_object();
  }
  json.end_array();
}

/// Checked to be JSON, as it goes into JSON unchanged.
void write_checked(JsonWriter& json, std::string_view row, const std::string& path) {
  const JsonTree tree(row, path);
  json.raw(row);
}

/// The rows of a file of benchmarks, a JSON object a line, as they are.
void write_history(JsonWriter& json, const std::string& path) {
  json.key("history").begin_array();
  if (!path.empty()) {
    const MappedFile file(path);
    std::string_view rest = file.text();
    while (!rest.empty()) {
      const size_t end = std::min(rest.find('\n'), rest.size());
      if (end > 0) write_checked(json, rest.substr(0, end), path);
      rest.remove_prefix(std::min(rest.size(), end + 1));
    }
  }
  json.end_array();
}

}  // namespace

std::string view_statistics(const Session& session, const Parameters& parameters) {
  const Session::Data& data = session.data();
  JsonWriter json;
  json.begin_object();
  write_passes(json, data);
  write_spans(json, data);
  std::map<std::string_view, uint64_t> counters;
  for (const Process& p : data.processes)
    for (const auto& [name, value] : p.counters) counters[name] += static_cast<uint64_t>(value);
  json.key("counters").begin_object();
  for (const auto& [name, value] : counters) json.field(name, static_cast<int64_t>(value));
  json.end_object();
  write_history(json, std::string(parameters.text("history")));
  return json.end_object().take();
}

}  // namespace weft::viz
