// Running folds and loops with state as CumSum and Scan.
#include <algorithm>

#include "weft/graph/loops.h"
#include "weft/graph/tuple.h"
#include "weft/onnx/exporter.h"

namespace weft::onnx {

namespace {

DeclaredValue declared(const std::string& name, DType dtype,
                       const std::optional<std::vector<DeclaredDim>>& shape) {
  DeclaredValue v;
  v.name = name;
  v.type.kind = DeclaredType::Kind::Tensor;
  v.type.element = element_type_of(dtype);
  v.type.shape = shape;
  return v;
}

/// The body of a Scan: states, then slices, to the next states, then what is stacked.
struct Body {
  std::vector<std::pair<NodeRef, DType>> states, slices;  // null: one that is not read
  std::vector<NodeRef> nexts, outs;
};

Graph written(Exporter& e, const Body& body,
              const std::vector<std::pair<NodeRef, std::string>>& known) {
  ExportedGraph graph(e.out);
  Exporter inner(e, graph);
  for (const auto& [node, name] : known) inner.name(node, name);
  for (const auto* list : {&body.states, &body.slices})
    for (const auto& [node, dtype] : *list) {
      const std::string name = graph.fresh(list == &body.states ? "state" : "slice");
      if (node) inner.name(node, name);
      graph.graph().inputs.push_back(declared(name, dtype, std::nullopt));
    }
  for (const auto* list : {&body.nexts, &body.outs})
    for (NodeRef n : *list) {
      // A result must be made in the body, and once.
      const std::string name = graph.node("Identity", {inner.value(n)});
      graph.graph().outputs.push_back(declared(name, n->dtype, std::nullopt));
    }
  graph.graph().name = graph.fresh("body");
  return std::move(graph.graph());
}

std::vector<Attribute> attributes_of(size_t inputs, size_t outputs, int64_t axis, bool reversed) {
  const auto all = [](size_t n, int64_t value) { return std::vector<int64_t>(n, value); };
  std::vector<Attribute> a{attribute("num_scan_inputs", static_cast<int64_t>(inputs)),
                           attribute("scan_input_axes", all(inputs, axis))};
  if (outputs > 0) a.push_back(attribute("scan_output_axes", all(outputs, axis)));
  if (reversed) {
    a.push_back(attribute("scan_input_directions", all(inputs, 1)));
    if (outputs > 0) a.push_back(attribute("scan_output_directions", all(outputs, 1)));
  }
  return a;
}

MaybeEmission repeat(Exporter& e, NodeRef n) {
  if (n->op != Op::Get || n->src(0)->op != Op::Repeat) return std::nullopt;
  NodeRef node = n->src(0);
  const RepeatParts parts(node);
  if (parts.stacked.empty()) return std::nullopt;  // Scan's length is that of what it goes over
  Emission made;
  for (const auto part : {parts.inits, parts.stacked, parts.whole})
    made.needs.insert(made.needs.end(), part.begin(), part.end());
  made.write = [&e, node, k = static_cast<size_t>(n->int_arg(0))](const Names& in) {
    Names& all = e.results_of(node);
    if (!all.empty()) return all[k];
    const RepeatParts p(node);
    const size_t states = p.inits.size(), stacks = p.stacked.size();
    const auto holes =
        placeholders_in(closed_sources(node), p.slot, stacks + p.whole.size() + states);
    Body body;
    for (size_t i = 0; i < states; ++i)
      body.states.emplace_back(holes[stacks + p.whole.size() + i], p.inits[i]->dtype);
    for (size_t i = 0; i < stacks; ++i) body.slices.emplace_back(holes[i], p.stacked[i]->dtype);
    body.nexts.assign(p.nexts.begin(), p.nexts.end());
    body.outs.assign(p.outs.begin(), p.outs.end());
    std::vector<std::pair<NodeRef, std::string>> known;
    for (size_t i = 0; i < p.whole.size(); ++i)
      if (holes[stacks + i]) known.emplace_back(holes[stacks + i], in[states + stacks + i]);
    std::vector<Attribute> a = attributes_of(stacks, p.outs.size(), 0, p.reversed);
    a.push_back(attribute("body", written(e, body, known)));
    const Names given(in.begin(), in.begin() + static_cast<int64_t>(states + stacks));
    Names results = e.out.nodes("Scan", given, states + p.outs.size(), std::move(a));
    return (e.results_of(node) = std::move(results))[k];
  };
  return made;
}

/// Elements of a fold of several values see each other along one axis; what is carried has the
/// other axes.
MaybeEmission loop(Exporter& e, NodeRef n) {
  if (n->op != Op::Get || n->src(0)->op != Op::Loop || loop_axes(n->src(0)).size() != 1)
    return std::nullopt;
  NodeRef node = n->src(0);
  const LoopParts parts = loop_parts(node);
  Emission made;
  for (const auto part : {parts.inits, parts.elements})
    made.needs.insert(made.needs.end(), part.begin(), part.end());
  made.write = [&e, node, k = static_cast<size_t>(n->int_arg(0))](const Names& in) {
    Names& all = e.results_of(node);
    if (!all.empty()) return all[k];
    const LoopParts p = loop_parts(node);
    const int64_t axis = loop_axes(node)[0];
    const bool stacked = is_running(node);
    Body body;
    std::vector<NodeRef> shape(p.elements[0]->shape->span().begin(),
                               p.elements[0]->shape->span().end());
    shape.erase(shape.begin() + axis);
    Names given;
    const std::string sizes = e.sizes(shape);
    std::vector<NodeRef> carried(p.inits.size()), slices(p.elements.size());
    for (NodeRef x : Toposort(p.values)) {
      if (x->op == Op::Carry && x->int_arg(1) == node->int_arg(0))
        carried[static_cast<size_t>(x->int_arg(0))] = x;
      if (x->op == Op::Elem && x->int_arg(1) == node->int_arg(0))
        slices[static_cast<size_t>(x->int_arg(0))] = x;
    }
    for (size_t i = 0; i < p.inits.size(); ++i) {
      body.states.emplace_back(carried[i], p.inits[i]->dtype);
      given.push_back(shape.empty() ? in[i] : e.out.node("Expand", {in[i], sizes}));
    }
    for (size_t i = 0; i < p.elements.size(); ++i) {
      body.slices.emplace_back(slices[i], p.elements[i]->dtype);
      given.push_back(in[p.inits.size() + i]);
    }
    body.nexts.assign(p.values.begin(), p.values.end());
    if (stacked) body.outs = body.nexts;
    std::vector<Attribute> a = attributes_of(slices.size(), body.outs.size(), axis, false);
    a.push_back(attribute("body", written(e, body, {})));
    Names results = e.out.nodes("Scan", given, body.nexts.size() + body.outs.size(), std::move(a));
    if (stacked)
      results.erase(results.begin(), results.begin() + static_cast<int64_t>(p.inits.size()));
    return (e.results_of(node) = std::move(results))[k];
  };
  return made;
}

/// A running fold: of sums CumSum, of others a Scan whose body is one operator.
MaybeEmission scan(Exporter& e, NodeRef n) {
  if (n->op != Op::Scan) return std::nullopt;
  const int64_t axis = n->int_arg(1);
  if (fold_of(n) == Fold::Add)
    return Emission{{n->src(0)}, [&e, axis](const Names& in) {
                      return e.out.node(
                          "CumSum", {in[0], e.out.scalar(DType::I64, static_cast<double>(axis))});
                    }};
  const char* op = fold_of(n) == Fold::Mul ? "Mul" : fold_of(n) == Fold::Max ? "Max" : "Min";
  if (is_bool(n->dtype) || fold_of(n) == Fold::Set || fold_of(n) == Fold::And ||
      fold_of(n) == Fold::Or)
    return std::nullopt;
  return Emission{
      {n->src(0)}, [&e, n, axis, op](const Names& in) {
        ExportedGraph graph(e.out);
        const std::string state = graph.fresh("state"), slice = graph.fresh("slice");
        Graph& g = graph.graph();
        g.name = graph.fresh("body");
        g.inputs = {declared(state, n->dtype, std::nullopt),
                    declared(slice, n->dtype, std::nullopt)};
        const std::string next = graph.node(op, {state, slice});
        const std::string out = graph.node("Identity", {next});
        g.outputs = {declared(next, n->dtype, std::nullopt), declared(out, n->dtype, std::nullopt)};
        std::vector<Attribute> a = attributes_of(1, 1, axis, false);
        a.push_back(attribute("body", std::move(g)));
        // Before the first element: the first element, or 1 for products.
        const std::string first =
            e.out.node("Gather", {in[0], e.out.scalar(DType::I64, 0)}, {attribute("axis", axis)});
        const std::string one =
            e.out.node("Expand", {e.out.scalar(n->dtype, 1), e.out.node("Shape", {first})});
        const std::string init = fold_of(n) == Fold::Mul ? one : first;
        return e.out.nodes("Scan", {init, in[0]}, 2, std::move(a))[1];
      }};
}

constexpr ExportRule kRules[] = {scan, repeat, loop};

}  // namespace

std::span<const ExportRule> export_loops() { return kRules; }

}  // namespace weft::onnx
