// Graphs: of states, whose nodes are those of the IR, and of what a realization runs.
#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <thread>

#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/viz/graph_data.h"
#include "weft/viz/network_layers.h"
#include "weft/viz/state.h"
#include "weft/viz/stored_order.h"
#include "weft/viz/view_parts.h"

namespace weft::viz {
namespace {

/// Kinds by name, numbered as they come.
class Kinds {
 public:
  explicit Kinds(GraphData& graph) : graph_(graph) {}
  void add(std::string_view name) {
    const auto [at, fresh] = numbers_.try_emplace(name, graph_.kind_names.size());
    if (fresh) graph_.kind_names.emplace_back(name);
    graph_.kinds.push_back(static_cast<uint16_t>(at->second));
  }

 private:
  GraphData& graph_;
  std::map<std::string_view, size_t> numbers_;
};

// ---- states

/// Of a state: nodes are interned, which takes most of the time, when a text of theirs is asked
/// for.
class NodeGraph final : public GraphData {
 public:
  NodeGraph(const Session::Data& data, const PassRow& pass)
      : source_(data, pass), inputs_(inputs_of(data, pass)) {}

  NodeSource& source() { return source_; }

  /// `marked`: what is in `after` alone is new.
  void build(std::span<const uint64_t> before, std::span<const uint64_t> after, bool marked) {
    std::vector<uint64_t> roots(before.begin(), before.end());
    if (!std::ranges::equal(before, after)) roots.insert(roots.end(), after.begin(), after.end());
    if (roots.empty()) return;
    order_ = StoredOrder(source_, roots);
    if (marked) mark(before, after);
    begins = std::move(order_.begins);
    sources = std::move(order_.sources);
    std::array<int, 256> kind_of;
    kind_of.fill(-1);
    for (const Op op : order_.ops) {
      int& kind = kind_of[static_cast<uint8_t>(op)];
      if (kind < 0) {
        kind = static_cast<int>(kind_names.size());
        kind_names.emplace_back(info(op).mnemonic);
      }
      kinds.push_back(static_cast<uint16_t>(kind));
    }
    if (inputs_) find_layers(*this, [this](size_t i) { return parameter(i); });
  }

  std::string dtype(size_t i) const override { return std::string(name(order_.dtypes[i])); }
  std::string shape(size_t i) const override { return shape_text(node(i)->shape); }
  int64_t lanes(size_t i) const override { return order_.lanes[i]; }
  std::string line(size_t i) const override { return std::string(source_.line(order_.numbers[i])); }
  std::string label(size_t i) const override { return summary(node(i)); }
  std::string text(size_t i) const override {
    std::string out = strformat("%{} = {}", i, summary(node(i)));
    for (uint32_t s = begins[i]; s < begins[i + 1]; ++s) append_format(out, " %{}", sources[s]);
    return out;
  }
  void prepare() const override {
    constexpr size_t kAtOnce = 256;  // a fraction of a millisecond, for which others wait
    for (size_t i = 0; i < order_.size(); i += kAtOnce) {
      while (waiting_ > 0) std::this_thread::yield();
      const std::lock_guard lock(mutex_);
      for (size_t k = i; k < std::min(order_.size(), i + kAtOnce); ++k)
        source_.get(order_.numbers[k]);
    }
    prepared_ = true;
  }
  bool has_texts_at_hand() const override {
    constexpr size_t kSoonThere = 30'000;  // nodes: some ten milliseconds
    return prepared_ || order_.size() <= kSoonThere;
  }

 private:
  /// What a pass over tensors reads; null for those over kernels.
  static const std::vector<BufferRow>* inputs_of(const Session::Data& data, const PassRow& pass) {
    if (pass.kernel != kNone || pass.run == kNone) return nullptr;
    const uint32_t schedule = data.runs[pass.run].schedule;
    return schedule == kNone ? nullptr : &data.schedules[schedule].buffers;
  }
  std::string_view parameter(size_t i) const {
    if (order_.ops[i] != Op::Param) return {};
    const int64_t slot = node(i)->int_arg(0);
    const auto at = std::ranges::find(*inputs_, slot, &BufferRow::input);
    return at == inputs_->end() ? std::string_view() : at->name;
  }
  NodeRef node(size_t i) const {
    ++waiting_;
    const std::lock_guard lock(mutex_);
    --waiting_;
    return source_.get(order_.numbers[i]);
  }
  void mark(std::span<const uint64_t> before, std::span<const uint64_t> after) {
    if (std::ranges::equal(before, after)) return marks.assign(order_.size(), Mark::Same);
    const std::vector<bool> in_before = order_.below(before), in_after = order_.below(after);
    for (size_t i = 0; i < order_.size(); ++i)
      marks.push_back(!in_before[i] ? Mark::Added : in_after[i] ? Mark::Same : Mark::Removed);
  }

  mutable std::mutex mutex_;
  mutable std::atomic<int> waiting_ = 0;
  mutable std::atomic<bool> prepared_ = false;
  mutable NodeSource source_;
  StoredOrder order_;
  const std::vector<BufferRow>* inputs_;
};

bool has_nodes(StateParts::Kind kind) {
  return kind != StateParts::Kind::Text && kind != StateParts::Kind::Machine;
}

std::unique_ptr<GraphData> graph_of_pass(const Session::Data& data, const Parameters& parameters) {
  const PassRow& p = data.passes[parameters.position("pass", data.passes.size(), "passes")];
  const std::string_view side = parameters.has("side") ? parameters.text("side") : "after";
  const bool both = side == "both";
  if (!both && side != "before" && side != "after")
    fail("viz.parameter", "side is '{}'; it must be before, after or both",
         printable(side.substr(0, 64)));
  auto out = std::make_unique<NodeGraph>(data, p);
  std::vector<uint64_t> before, after;
  out->form = "graph";
  out->title = strformat("{} {}", p.name, p.subject);
  std::string without;  // the form of a side that has no nodes
  const auto read = [&](uint64_t number, std::vector<uint64_t>& roots) {
    StateView state = numbers_of(data, number, out->source());
    if (!has_nodes(state.kind)) return void(without = state.form());
    if (state.kind == StateParts::Kind::Program) out->form = "program";
    roots = std::move(state.numbers);
  };
  if (both || side == "before") read(p.before, before);
  if (both || side == "after") read(p.after, after);
  out->build(before, after, both && without.empty());
  if (out->size() == 0 && !without.empty()) {
    out->form = without;
    append_format(out->title, ": {}, not a graph; the view pass shows it", without);
  }
  return out;
}

// ---- what a realization runs

class Dataflow final : public GraphData {
 public:
  Dataflow(const Session::Data& data, const ScheduleRow& schedule)
      : data_(data), schedule_(schedule), kinds_(*this), newest_(schedule.buffers.size(), kNone) {
    form = "dataflow";
    for (uint32_t i = 0; i < schedule.steps.size(); ++i) add_step(i);
    find_layers(*this, [this](size_t i) {
      return is_step(i) ? std::string_view() : buffer(i).input >= 0 ? buffer(i).name : "";
    });
  }

  std::string dtype(size_t i) const override {
    return is_step(i) ? "" : std::string(buffer(i).dtype);
  }
  int64_t bytes(size_t i) const override { return is_step(i) ? 0 : buffer(i).bytes; }
  int64_t kernel(size_t i) const override {
    return is_step(i) && step(i).kernel != kNone ? int64_t{step(i).kernel} : -1;
  }
  int64_t ns(size_t i) const override {
    const int64_t k = kernel(i);
    if (k < 0) return 0;
    const KernelRow& row = data_.kernels[static_cast<size_t>(k)];
    return row.runs == 0 ? 0 : static_cast<int64_t>(row.ns / row.runs);
  }
  std::string line(size_t i) const override { return is_step(i) ? std::string(step(i).line) : ""; }
  std::string label(size_t i) const override {
    if (is_step(i)) return std::string(step(i).name);
    const BufferRow& b = buffer(i);
    return strformat("{}{}{} {}", b.name, b.name.empty() ? "" : " ", b.dtype,
                     bytes_text(static_cast<double>(b.bytes)));
  }
  std::string text(size_t i) const override {
    std::string out = strformat("%{} = {} {}", i, kind_names[kinds[i]], label(i));
    for (uint32_t s = begins[i]; s < begins[i + 1]; ++s) append_format(out, " %{}", sources[s]);
    return out;
  }

 private:
  bool is_step(size_t i) const { return what_[i].step != kNone; }
  const StepRow& step(size_t i) const { return schedule_.steps[what_[i].step]; }
  const BufferRow& buffer(size_t i) const { return schedule_.buffers[what_[i].buffer]; }

  uint32_t add(uint32_t step, uint32_t buffer, std::string_view kind) {
    begins.push_back(static_cast<uint32_t>(sources.size()));
    kinds_.add(kind);
    what_.push_back({step, buffer});
    return static_cast<uint32_t>(what_.size() - 1);
  }
  static std::string_view kind_of(const BufferRow& b) {
    return b.input >= 0 ? "input" : b.output >= 0 ? "output" : "intermediate";
  }

  void add_step(uint32_t i) {
    const StepRow& s = schedule_.steps[i];
    for (const uint64_t use : s.buffers)
      if (const auto b = static_cast<uint32_t>(use / 2); newest_[b] == kNone && use % 2 == 0)
        newest_[b] = add(kNone, b, kind_of(schedule_.buffers[b]));
    for (const uint64_t use : s.buffers)
      if (const uint32_t at = newest_[static_cast<size_t>(use / 2)]; at != kNone)
        sources.push_back(at);
    const uint32_t node = add(i, kNone, s.copy ? "copy" : "kernel");
    for (const uint64_t use : s.buffers) {
      if (use % 2 == 0) continue;
      const auto b = static_cast<uint32_t>(use / 2);
      sources.push_back(node);
      newest_[b] = add(kNone, b, kind_of(schedule_.buffers[b]));
    }
  }

  struct What {
    uint32_t step, buffer;
  };
  const Session::Data& data_;
  const ScheduleRow& schedule_;
  Kinds kinds_;
  std::vector<What> what_;
  std::vector<uint32_t> newest_;  // node of each buffer's contents, as steps go on
};

std::unique_ptr<GraphData> graph_of_run(const Session::Data& data, const Parameters& parameters) {
  const size_t i = parameters.position("realization", data.runs.size(), "realizations");
  const uint32_t schedule = data.runs[i].schedule;
  static const ScheduleRow kNothing{};
  auto out =
      std::make_unique<Dataflow>(data, schedule == kNone ? kNothing : data.schedules[schedule]);
  out->title = strformat("realization {} {}", i, data.runs[i].line);
  if (schedule == kNone)
    out->title +=
        ": it is not recorded what it runs: it failed, it had not ended, or the recording began "
        "later";
  return out;
}

constexpr const char* kMarks[] = {"", "same", "added", "removed", "changed"};

void write_node(JsonWriter& json, const GraphData& g, size_t i) {
  json.begin_object().field("node", i).field("op", g.kind_names[g.kinds[i]]);
  json.field("dtype", g.dtype(i)).field("lanes", g.lanes(i)).field("shape", g.shape(i));
  json.field("label", g.label(i)).field("text", g.text(i)).field("line", g.line(i));
  json.field("layer", g.layer(i));
  json.field("mark", kMarks[g.marks.empty() ? 0 : static_cast<size_t>(g.marks[i])]);
  if (g.form == "dataflow") {
    json.key("kernel");
    g.kernel(i) >= 0 ? json.value(g.kernel(i)) : json.null();
    json.field("bytes", g.bytes(i)).field("ns", g.ns(i));
  }
  json.end_object();
}

}  // namespace

std::unique_ptr<GraphData> graph_data(const Session& session, const Parameters& parameters) {
  if (parameters.has("realization") && !parameters.has("pass"))
    return graph_of_run(session.data(), parameters);
  if (parameters.has("kernel") && !parameters.has("pass"))
    return control_flow_graph(session.data(), parameters);
  return graph_of_pass(session.data(), parameters);
}

std::string view_graph(const Session& session, const Parameters& parameters) {
  const std::unique_ptr<GraphData> g = graph_data(session, parameters);
  const Page page = page_of(parameters, g->size(), 2000);
  JsonWriter json;
  json.begin_object().field("form", g->form).field("title", g->title);
  json.field("total", g->size()).field("edge_total", g->sources.size());
  json.field("first", page.first).key("nodes").begin_array();
  for (size_t i = page.first; i < page.end; ++i) write_node(json, *g, i);
  json.end_array().key("edges").begin_array();
  for (size_t i = page.first; i < page.end; ++i)
    for (uint32_t s = g->begins[i]; s < g->begins[i + 1]; ++s) {
      json.begin_array().value(g->sources[s]).value(i);
      json.value(s - g->begins[i]).end_array();
    }
  return json.end_array().end_object().take();
}

std::string text_graph(const Session& session, const Parameters& parameters, bool colour) {
  const std::unique_ptr<GraphData> g = graph_data(session, parameters);
  const Page page = page_of(parameters, g->size(), 2000);
  std::string out = strformat("{}: {} nodes, {} edges\n", styled(colour, "1", printable(g->title)),
                              g->size(), g->sources.size());
  for (size_t i = page.first; i < page.end; ++i) {
    const Mark mark = g->marks.empty() ? Mark::None : g->marks[i];
    const std::string line = g->line(i);
    const std::string layer = g->layer(i);
    const char* code = mark == Mark::Added ? "32" : mark == Mark::Removed ? "31" : "0";
    append_format(out, "{}{}{}\n",
                  mark == Mark::Added     ? "+ "
                  : mark == Mark::Removed ? "- "
                                          : "  ",
                  styled(colour && code[0] != '0', code, printable(g->text(i))),
                  line.empty() && layer.empty() ? "" : "  # " + printable(line + " " + layer));
  }
  return out;
}

}  // namespace weft::viz
