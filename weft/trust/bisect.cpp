#include "weft/trust/bisect.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/base/options.h"
#include "weft/rewrite/print.h"
#include "weft/run/passes.h"
#include "weft/simplify/simplify.h"

namespace weft::trust {
namespace {

/// An option at the value that asks least of the compiler; of several, one after the other.
struct Alternative {
  const char* name;
  const char* value;
};
constexpr Alternative kAlternatives[] = {
    {"WEFT_CACHE", "0"},    {"WEFT_JIT", "0"},          {"WEFT_KEEP_CONSTANTS", "0"},
    {"WEFT_BEAM", "0"},     {"WEFT_THREADS", "1"},      {"WEFT_DETERMINISTIC", "1"},
    {"WEFT_ISA", "avx512"}, {"WEFT_ISA", "avx2"},       {"WEFT_ISA", "sse2"},
    {"WEFT_DEV", "CPU:C"},  {"WEFT_DEV", "CPU:INTERP"},
};

std::string joined(std::string list, const std::vector<std::string>& names) {
  for (const std::string& name : names) append_format(list, "{}-{}", list.empty() ? "" : ",", name);
  return list;
}

class Search {
 public:
  Search(const Options& options, Trial trial) : options_(options), trial_(trial) {}

  Bisection run() {
    find_rules();
    if (out_.culprits.empty()) find_passes();
    if (out_.culprits.empty()) find_options();
    return std::move(out_);
  }

 private:
  using Names = std::vector<std::string>;

  bool passes(const Settings& settings) {
    ++out_.runs;
    return trial_(settings) == Verdict::Passes;
  }
  bool passes_without(const char* option, const std::string& already, const Names& names) {
    return passes({{option, joined(already, names)}});
  }

  /// The fewest of `names` that have to be left out, by Zeller's delta debugging: halves, then
  /// smaller parts and what is left without them.
  Names fewest(const char* option, const std::string& already, Names names) {
    size_t parts = 2;
    while (names.size() > 1) {
      const size_t size = (names.size() + parts - 1) / parts;
      bool smaller = false;
      for (size_t at = 0; at < names.size() && !smaller; at += size) {
        const auto first = names.begin() + static_cast<std::ptrdiff_t>(at);
        const auto last =
            names.begin() + static_cast<std::ptrdiff_t>(std::min(at + size, names.size()));
        Names part(first, last), rest(names.begin(), first);
        rest.insert(rest.end(), last, names.end());
        if ((smaller = passes_without(option, already, part))) {
          names = std::move(part);
          parts = 2;
        } else if (parts > 2 && (smaller = passes_without(option, already, rest))) {
          names = std::move(rest);
          --parts;
        }
      }
      if (smaller) continue;
      if (parts >= names.size()) break;
      parts = std::min(parts * 2, names.size());
    }
    return names;
  }

  /// All of them left out; where that does not help (it may break something else), each by itself.
  Names found(const char* option, const std::string& already, const Names& names) {
    if (passes_without(option, already, names)) return fewest(option, already, names);
    for (const std::string& name : names)
      if (passes_without(option, already, {name})) return {name};
    return {};
  }

  void find_rules() {
    std::vector<RuleSetRow> sets = simplify_rule_sets();
    Names names;
    for (const RuleSetRow& set : sets)
      for (const RuleEntry& e : set.entries) names.emplace_back(e.rule->name);
    const Names guilty = found("WEFT_RULES", options_.rules, names);
    for (const RuleSetRow& set : sets)
      for (const RuleEntry& e : set.entries)
        if (std::ranges::find(guilty, e.rule->name) != guilty.end())
          out_.culprits.push_back(
              {Culprit::Kind::Rule, e.rule->name, "", to_text(*e.rule), source_of(*e.rule)});
    if (!guilty.empty()) out_.without = {{"WEFT_RULES", joined(options_.rules, guilty)}};
  }

  void find_passes() {
    Names names;
    for (const PassRow& p : all_passes())
      if (p.optional) names.emplace_back(p.name);
    const Names guilty = found("WEFT_PASSES", options_.passes, names);
    for (const PassRow& p : all_passes())
      if (std::ranges::find(guilty, p.name) != guilty.end())
        out_.culprits.push_back({Culprit::Kind::Pass, p.name, "", p.after});
    if (!guilty.empty()) out_.without = {{"WEFT_PASSES", joined(options_.passes, guilty)}};
  }

  /// Every one by itself: several may help, each by going another way.
  void find_options() {
    for (const Alternative& a : kAlternatives) {
      const bool known =
          std::ranges::any_of(out_.culprits, [&a](const Culprit& c) { return c.name == a.name; });
      if (known || options_.text(std::string_view(a.name).substr(5)) == a.value) continue;
      if (!passes({{a.name, a.value}})) continue;
      out_.culprits.push_back({Culprit::Kind::Option, a.name, a.value, text_of(a.name)});
      if (out_.without.empty()) out_.without = {{a.name, a.value}};
    }
  }
  static std::string text_of(std::string_view option) {
    size_t count = 0;
    const OptionRow* rows = option_rows(count);
    for (size_t i = 0; i < count; ++i)
      if (rows[i].name == option) return rows[i].doc;
    return {};
  }

  const Options& options_;
  Trial trial_;
  Bisection out_;
};

}  // namespace

std::string_view kind_name(Culprit::Kind kind) {
  constexpr std::string_view kNames[] = {"rule", "pass", "option"};
  return kNames[static_cast<size_t>(kind)];
}

Bisection bisect(const Options& options, Trial trial) { return Search(options, trial).run(); }

}  // namespace weft::trust
