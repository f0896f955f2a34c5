#include "weft/onnx/export.h"

#include <algorithm>
#include <optional>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/graph/provenance.h"
#include "weft/onnx/exporter.h"
#include "weft/rewrite/driver.h"
#include "weft/tensor/captured_function.h"
#include "weft/tensor/random.h"
#include "weft/tensor/tracing.h"

namespace weft::onnx {

namespace {

// A size with a name is at least 1; what is built must hold up to this one.
constexpr int64_t kLargestSize = int64_t{1} << 20;
constexpr size_t kMostListed = 20;

/// https://github.com/onnx/onnx/blob/main/docs/Versioning.md
int64_t ir_version_of(int64_t opset) { return opset <= 18 ? 8 : opset <= 20 ? 9 : 10; }

std::string name_at(const std::vector<std::string>& names, size_t i, const char* what) {
  return i < names.size() ? names[i] : strformat("{}_{}", what, i);
}

DeclaredValue declared(const std::string& name, DType dtype, std::span<const NodeRef> dims) {
  DeclaredValue v;
  v.name = name;
  v.type.kind = DeclaredType::Kind::Tensor;
  v.type.element = element_type_of(dtype);
  v.type.shape.emplace();
  for (NodeRef d : dims) {
    DeclaredDim dim;
    NodeRef size = d->op == Op::Bind ? d->src(0) : d;
    if (is_const(size))
      dim.size = size->vmin;
    else
      dim.name = size->op == Op::Variable ? std::string(size->text()) : expression(size);
    v.type.shape->push_back(std::move(dim));
  }
  return v;
}

/// The model around a graph whose values are written.
class ModelExport {
 public:
  ModelExport(Context& context, const ExportOptions& options)
      : context_(context),
        options_(options),
        exporter_(context, tensor_graph(context), graph_, options.opset) {
    if (options.opset < kOldestExportOpset || options.opset > kNewestExportOpset)
      fail("onnx.export", "opset {} cannot be written: choose one from {} to {}", options.opset,
           kOldestExportOpset, kNewestExportOpset);
  }

  void add_input(NodeRef param) {
    const size_t i = graph_.graph().inputs.size();
    const std::string name = graph_.fresh(name_at(options_.input_names, i, "input"));
    if (element_type_of(param->dtype) == ElementType::Undefined)
      fail_type("onnx.export", "the input {} is {}, which ONNX has no type for", quoted_name(name),
                weft::name(param->dtype));
    graph_.graph().inputs.push_back(declared(name, param->dtype, param->shape->span()));
    exporter_.name(param, name);
    for (uint32_t a = 0; a < param->rank(); ++a) {
      NodeRef d = param->dim(a)->op == Op::Bind ? param->dim(a)->src(0) : param->dim(a);
      if (d->op == Op::Variable)
        exporter_.name_size(std::string(d->text()), {name, static_cast<int64_t>(a)});
    }
  }

  void add_state(const std::string& name, NodeRef value) {
    if (value->op == Op::Buffer) exporter_.name_state(value, name);
  }
  /// What the Error will say, with the line that made the node, where there is one.
  void add_problem(std::string what, NodeRef n) {
    const CallSite at = n ? context_.get<Provenance>().find(n) : CallSite();
    if (at.file) append_format(what, " (made at {}:{})", at.file, at.line);
    if (std::ranges::find(problems_, what) == problems_.end()) problems_.push_back(std::move(what));
  }

  /// Within a Graph::Building scope.
  void write(std::span<const NodeRef> results) {
    exporter_.count_uses(results);
    Graph& g = graph_.graph();
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string value = exporter_.value(results[i]);
      const std::string name = graph_.fresh(name_at(options_.output_names, i, "output"));
      if (!renames_.emplace(value, name).second) copies_.emplace_back(value, name);
      g.outputs.push_back(declared(name, results[i]->dtype, results[i]->shape->span()));
    }
    refuse_problems();
    name_results(g);
  }
  Model finished() {
    exporter_.compute_constants();
    Model model;
    model.graph = std::move(graph_.graph());
    model.graph.name = options_.name;
    model.opsets[""] = options_.opset;
    model.ir_version = ir_version_of(options_.opset);
    model.producer = "weft";
    return model;
  }

 private:
  /// What makes a result gets its name. An input, a constant, what is a result already and what
  /// graphs inside of nodes may read is copied.
  void name_results(Graph& g) {
    std::map<std::string, std::string> made;
    const bool nested = std::ranges::any_of(g.nodes, [](const Node& n) {
      return std::ranges::any_of(n.attributes,
                                 [](const Attribute& a) { return !a.graphs.empty(); });
    });
    for (Node& n : g.nodes)
      for (std::string& name : n.outputs)
        if (const auto at = renames_.find(name); at != renames_.end() && !nested)
          made.insert(*at), name = at->second;
    for (Node& n : g.nodes)
      for (std::string& name : n.inputs)
        if (const auto at = made.find(name); at != made.end()) name = at->second;
    for (auto& [value, name] : copies_)
      if (const auto at = made.find(value); at != made.end()) value = at->second;
    for (const auto& [value, name] : renames_)
      if (!made.contains(value)) copies_.emplace_back(value, name);
    for (const auto& [value, name] : copies_) {
      Node copy;
      copy.op = "Identity", copy.name = name;
      copy.inputs = {value}, copy.outputs = {name};
      g.nodes.push_back(std::move(copy));
    }
  }

  void refuse_problems() {
    for (const Exporter::Problem& p : exporter_.problems()) add_problem(p.what, p.node);
    if (problems_.empty()) return;
    std::string text;
    for (size_t i = 0; i < problems_.size() && i < kMostListed; ++i) text += "\n  " + problems_[i];
    if (problems_.size() > kMostListed)
      append_format(text, "\n  and {} more", problems_.size() - kMostListed);
    fail("onnx.export", "this cannot be written as ONNX, opset {}:{}", options_.opset, text);
  }

  Context& context_;
  const ExportOptions& options_;
  ExportedGraph graph_;
  Exporter exporter_;
  std::vector<std::string> problems_;
  std::map<std::string, std::string> renames_;               // values to the results that they are
  std::vector<std::pair<std::string, std::string>> copies_;  // of values that have another name
};

// ---- functions

/// Stand for inputs like these, with Variables for sizes that have names.
Tensors holes_for(const Tensors& inputs, const ExportOptions& options) {
  Tensors holes;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = name_at(options.input_names, i, "input");
    Dims dims = inputs[i].dims();
    if (const auto named = options.dynamic_axes.find(name); named != options.dynamic_axes.end())
      for (const auto& [axis, size] : named->second) {
        const auto rank = static_cast<int64_t>(dims.size()), a = axis < 0 ? axis + rank : axis;
        if (a < 0 || a >= rank)
          fail("onnx.export", "axis {} of the input {} of shape {} cannot have a name", axis,
               quoted_name(name), dims.text());
        dims[static_cast<size_t>(a)] = Variable(size, 1, kLargestSize).unbound();
      }
    holes.push_back(placeholder(inputs[i], dims));
  }
  for (const auto& [name, axes] : options.dynamic_axes) {
    bool known = false;
    for (size_t i = 0; i < inputs.size(); ++i)
      known |= name == name_at(options.input_names, i, "input");
    if (!known) fail("onnx.export", "dynamic_axes names {}, which is no input", quoted_name(name));
  }
  return holes;
}

/// What f writes to while it is traced, which must not stay: it is made of placeholders.
class TracedWrites {
 public:
  TracedWrites() = default;
  ~TracedWrites() {
    for (const WriteWatch::Write& w : watch_.writes())
      if (const auto cell = w.cell.lock()) cell->set_value(w.before.get());
  }
  TracedWrites(const TracedWrites&) = delete;
  TracedWrites& operator=(const TracedWrites&) = delete;

  void list(const std::vector<NamedTensor>& state, ModelExport& out) const {
    for (const WriteWatch::Write& w : watch_.writes()) {
      const auto cell = w.cell.lock();
      std::string what = "a tensor";
      for (const NamedTensor& t : state)
        if (TensorAccess::shared(t.tensor) == cell) what = quoted_name(t.name);
      out.add_problem(what + " is written to: export what is done for inference",
                      cell ? cell->value() : nullptr);
    }
  }

 private:
  WriteWatch watch_;
};

void require_names(const char* what, size_t names, size_t values) {
  if (names != 0 && names != values)
    fail("onnx.export", "{} {} names are given for {}: give as many, or none", names, what, values);
}

}  // namespace

Model export_onnx(const TensorFunction& f, const Tensors& inputs, const ExportOptions& options) {
  Context& context = inputs.empty() ? Context::current() : inputs[0].context();
  require_names("input", options.input_names.size(), inputs.size());
  Tensors state;
  for (const NamedTensor& t : options.state) state.push_back(t.tensor);
  realize(state);
  ModelExport out(context, options);
  const Tensors holes = holes_for(inputs, options);
  const SymbolicCallsScope calls;
  Generator& random = Generator::of(context);
  const Tensor drawn = random.number();
  Tensors results;
  {
    const TracedWrites writes;
    results = f(holes);
    writes.list(options.state, out);
  }
  if (random.number().node() != drawn.node())
    out.add_problem("random numbers, which would be the same in every run", nullptr);
  require_names("output", options.output_names.size(), results.size());
  std::optional<weft::Graph::Building> building(tensor_graph(context));
  for (const Tensor& h : holes) out.add_input(h.node());
  for (const NamedTensor& t : options.state) out.add_state(t.name, t.tensor.node());
  out.write(nodes_of(results));
  building.reset();  // constants are computed
  return out.finished();
}

// ---- captured functions

namespace {

/// What is in numbered memory, as values over placeholders of the arguments and the state.
class Memories {
 public:
  Memories(weft::Graph& g, const CapturedFunction& f) : g_(g), f_(f), values_(f.memories) {}

  void set(int memory, NodeRef value) {
    if (memory >= 0) values_[static_cast<size_t>(memory)] = value;
  }
  NodeRef value(const CapturedFunction::Ending& e) const {
    if (e.memory >= 0) return values_[static_cast<size_t>(e.memory)];
    const auto& place = f_.places[static_cast<size_t>(e.place)];
    return place.memory >= 0 ? values_[static_cast<size_t>(place.memory)] : nullptr;
  }

  void run(const CapturedFunction::Computation& c) {
    std::vector<NodeRef> roots;
    for (const RootedNode& v : c.values) roots.push_back(v.get());
    NodeMap<NodeRef> replacement;
    for (NodeRef n : Toposort::evaluated(roots)) {
      const auto slot = n->op == Op::Param ? static_cast<size_t>(param_slot(n)) : c.inputs.size();
      if (slot >= c.inputs.size() || c.inputs[slot] < 0) continue;
      if (NodeRef value = values_[static_cast<size_t>(c.inputs[slot])]) replacement.set(n, value);
    }
    for (size_t i = 0; i < roots.size(); ++i)
      set(c.results[i], substitute(g_, roots[i], replacement));
  }

 private:
  weft::Graph& g_;
  const CapturedFunction& f_;
  std::vector<NodeRef> values_;
};

bool writes_place(const CapturedFunction& f, const CapturedFunction::Place& p) {
  if (!p.ending.none()) return true;
  return std::ranges::any_of(f.computations, [&](const auto& c) {
    return p.memory >= 0 && std::ranges::find(c.results, p.memory) != c.results.end();
  });
}

}  // namespace

Model export_onnx(const CapturedFunction& f, const ExportOptions& options) {
  Context& context = Context::current();
  weft::Graph& g = tensor_graph(context);
  ModelExport out(context, options);
  require_names("input", options.input_names.size(), f.arguments);
  require_names("output", options.output_names.size(), f.results.size());
  std::optional<weft::Graph::Building> building(g);
  Memories memories(g, f);
  std::vector<NodeRef> places;
  Tensors kept;
  for (size_t i = 0; i < f.places.size(); ++i) {
    const CapturedFunction::Place& p = f.places[i];
    if (writes_place(f, p)) out.add_problem(quoted_name(p.name) + " is written to", nullptr);
    if (p.view) out.add_problem(quoted_name(p.name) + " is a view of larger memory", nullptr);
    if (i < f.arguments) {
      kept.push_back(placeholder(Tensor::from_node(p.form.get()), dims_of(p.form.get())));
      out.add_input(kept.back().node());
    } else {
      kept.push_back(p.state);
      out.add_state(strformat("state_{}", i - f.arguments), p.state.node());
    }
    places.push_back(kept.back().node());
    memories.set(p.memory, places.back());
  }
  for (const CapturedFunction::Computation& c : f.computations) memories.run(c);
  std::vector<NodeRef> results;
  for (const CapturedFunction::Result& r : f.results) {
    results.push_back(r.itself >= 0 ? places[static_cast<size_t>(r.itself)]
                                    : memories.value(r.ending));
    if (!results.back())
      fail("onnx.export", "a result of {} is not computed by it", quoted_name(f.name));
  }
  out.write(results);
  building.reset();
  return out.finished();
}

}  // namespace weft::onnx
