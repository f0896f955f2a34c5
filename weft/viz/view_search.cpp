// Where a text occurs: in ops, dtypes, rules, lines, kernels and passes.
#include <algorithm>
#include <cctype>
#include <set>

#include "weft/base/error.h"
#include "weft/viz/stored_order.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

constexpr std::string_view kKinds[] = {"op", "dtype", "rule", "line", "kernel", "pass"};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

struct Found {
  std::string_view kind;
  std::string text;
  uint32_t realization = kNone, pass = kNone, kernel = kNone;
  std::string rule = {};
};

class Search {
 public:
  Search(const Session::Data& data, std::string_view text, std::string_view kind, size_t most)
      : data_(data), wanted_(lower(text)), kind_(kind), most_(most) {}

  std::vector<Found> run() {
    if (asked("kernel")) find_kernels();
    if (asked("pass")) find_passes();
    if (asked("rule")) find_rules();
    if (asked("line")) find_lines();
    if (asked("op") || asked("dtype")) find_nodes();
    return std::move(found_);
  }
  size_t total() const { return total_; }

 private:
  bool asked(std::string_view kind) const { return kind_.empty() || kind_ == kind; }
  bool matches(std::string_view text) const {
    return lower(text).find(wanted_) != std::string::npos;
  }
  void add(Found found) {
    ++total_;
    if (found_.size() < most_) found_.push_back(std::move(found));
  }

  void find_kernels() {
    for (uint32_t i = 0; i < data_.kernels.size(); ++i)
      if (const KernelRow& k = data_.kernels[i]; matches(k.name))
        add({"kernel", std::string(k.name), k.run, kNone, i});
  }
  void find_passes() {
    for (uint32_t i = 0; i < data_.passes.size(); ++i)
      if (const PassRow& p = data_.passes[i]; matches(p.name))
        add({"pass", strformat("{} {}", p.name, p.subject), p.run, i, p.kernel});
  }
  void find_rules() {
    for (uint32_t i = 0; i < data_.passes.size(); ++i) {
      const PassRow& p = data_.passes[i];
      std::set<std::string_view> names;
      for (const Firing& f : data_.firings(p)) names.insert(data_.rule_name(p, f));
      for (const std::string_view name : names)
        if (matches(name))
          add({"rule", strformat("{} in {} {}", name, p.name, p.subject), p.run, i, p.kernel,
               std::string(name)});
    }
  }
  void find_lines() {
    for (uint32_t i = 0; i < data_.runs.size(); ++i)
      if (matches(data_.runs[i].line)) add({"line", std::string(data_.runs[i].line), i});
    for (uint32_t i = 0; i < data_.kernels.size(); ++i)
      for (const KernelRow& k = data_.kernels[i]; const std::string_view line : k.lines)
        if (matches(line)) {
          add({"line", std::string(line), k.run, kNone, i});
          break;
        }
  }

  /// In kernels as the compiler was given them.
  void find_nodes() {
    for (uint32_t i = 0; i < data_.kernels.size(); ++i) {
      const KernelRow& k = data_.kernels[i];
      if (k.passes.empty()) continue;
      try {
        find_nodes_of(i, k);
      } catch (const Error&) {
        continue;  // it is damaged; others may not be
      }
    }
  }
  void find_nodes_of(uint32_t i, const KernelRow& k) {
    const PassRow& first = data_.passes[k.passes[0]];
    NodeSource nodes(data_, first);
    const StoredOrder order(nodes, numbers_of(data_, first.before, nodes).numbers);
    std::set<std::pair<Op, DType>> found;
    for (size_t n = 0; n < order.size(); ++n) found.emplace(order.ops[n], order.dtypes[n]);
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (const auto& [op, dtype] : found) seen.emplace(info(op).mnemonic, name(dtype));
    std::set<std::string_view> dtypes;
    for (const auto& [op, dtype] : seen) {
      if (asked("op") && matches(op))
        add({"op", strformat("{} {} in {}", op, dtype, k.name), k.run, k.passes[0], i});
      if (asked("dtype") && matches(dtype) && dtypes.insert(dtype).second)
        add({"dtype", strformat("{} in {}", dtype, k.name), k.run, k.passes[0], i});
    }
  }

  const Session::Data& data_;
  std::string wanted_;
  std::string_view kind_;
  size_t most_, total_ = 0;
  std::vector<Found> found_;
};

}  // namespace

std::string view_search(const Session& session, const Parameters& parameters) {
  const std::string_view text = parameters.text("text"), kind = parameters.text("kind");
  if (text.empty()) fail("viz.parameter", "text is not given; say what to look for");
  if (!kind.empty() && std::ranges::find(kKinds, kind) == std::end(kKinds))
    fail("viz.parameter", "kind is '{}'; it must be op, dtype, rule, line, kernel or pass",
         printable(kind.substr(0, 64)));
  Search search(session.data(), text, kind, static_cast<size_t>(parameters.number("count", 100)));
  const std::vector<Found> found = search.run();
  JsonWriter json;
  json.begin_object().field("text", text).field("total", search.total());
  json.key("results").begin_array();
  for (const Found& f : found) {
    json.begin_object().field("kind", f.kind).field("text", f.text);
    id_field(json, "realization", f.realization);
    id_field(json, "pass", f.pass);
    id_field(json, "kernel", f.kernel);
    json.key("rule");
    f.rule.empty() ? json.null() : json.value(std::string_view(f.rule));
    json.end_object();
  }
  return json.end_array().end_object().take();
}

}  // namespace weft::viz
