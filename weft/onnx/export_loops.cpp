// Running folds and loops with state as CumSum and Scan.
#include <algorithm>
#include <functional>

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

Names scan_of_repeat(Exporter& e, NodeRef repeat, const Names& in) {
  const RepeatParts p(repeat);
  const size_t states = p.inits.size(), stacks = p.stacked.size();
  const auto holes =
      placeholders_in(closed_sources(repeat), p.slot, stacks + p.whole.size() + states);
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
  return e.out.nodes("Scan", given, states + p.outs.size(), std::move(a));
}

/// One of the results of `node`, all of which the first to ask writes.
std::function<std::string(const Names&)> result_of(Exporter& e, NodeRef node, int64_t which,
                                                   Names (*all)(Exporter&, NodeRef, const Names&)) {
  return [&e, node, which, all](const Names& in) {
    if (e.results_of(node).empty()) {
      Names results = all(e, node, in);
      e.results_of(node) = std::move(results);
    }
    return e.results_of(node)[static_cast<size_t>(which)];
  };
}

MaybeEmission repeat(Exporter& e, NodeRef n) {
  if (n->op != Op::Get || n->src(0)->op != Op::Repeat) return std::nullopt;
  const RepeatParts parts(n->src(0));
  if (parts.stacked.empty()) return std::nullopt;  // Scan's length is that of what it goes over
  Emission made;
  for (const auto part : {parts.inits, parts.stacked, parts.whole})
    made.needs.insert(made.needs.end(), part.begin(), part.end());
  made.write = result_of(e, n->src(0), n->int_arg(0), scan_of_repeat);
  return made;
}

/// A loop's body with its state and the elements of a turn, null where it does not read one.
Body body_of(NodeRef loop, const LoopParts& p) {
  Body body;
  for (NodeRef x : p.inits) body.states.emplace_back(nullptr, x->dtype);
  for (NodeRef x : p.elements) body.slices.emplace_back(nullptr, x->dtype);
  for (NodeRef x : Toposort(p.values)) {
    if ((x->op != Op::Carry && x->op != Op::Elem) || x->int_arg(1) != loop->int_arg(0)) continue;
    auto& list = x->op == Op::Carry ? body.states : body.slices;
    list[static_cast<size_t>(x->int_arg(0))].first = x;
  }
  body.nexts.assign(p.values.begin(), p.values.end());
  if (is_running(loop)) body.outs = body.nexts;
  return body;
}

/// What the Scan of a loop is given: what is carried has the elements' shape without its axis.
Names given_to(Exporter& e, const LoopParts& p, int64_t axis, const Names& in) {
  const auto dims = p.elements[0]->shape->span();
  std::vector<NodeRef> shape(dims.begin(), dims.end());
  shape.erase(shape.begin() + axis);
  Names given = in;
  if (shape.empty()) return given;
  const std::string sizes = e.sizes(shape);
  for (size_t i = 0; i < p.inits.size(); ++i) given[i] = e.out.node("Expand", {in[i], sizes});
  return given;
}

Names scan_of_loop(Exporter& e, NodeRef loop, const Names& in) {
  const LoopParts p = loop_parts(loop);
  const int64_t axis = loop_axes(loop)[0];
  const Body body = body_of(loop, p);
  const Names given = given_to(e, p, axis, in);
  std::vector<Attribute> a = attributes_of(body.slices.size(), body.outs.size(), axis, false);
  a.push_back(attribute("body", written(e, body, {})));
  Names results = e.out.nodes("Scan", given, body.nexts.size() + body.outs.size(), std::move(a));
  if (is_running(loop))
    results.erase(results.begin(), results.begin() + static_cast<int64_t>(p.inits.size()));
  return results;
}

/// Elements of a fold of several values see each other along one axis.
MaybeEmission loop(Exporter& e, NodeRef n) {
  if (n->op != Op::Get || n->src(0)->op != Op::Loop || loop_axes(n->src(0)).size() != 1)
    return std::nullopt;
  const LoopParts parts = loop_parts(n->src(0));
  Emission made;
  for (const auto part : {parts.inits, parts.elements})
    made.needs.insert(made.needs.end(), part.begin(), part.end());
  made.write = result_of(e, n->src(0), n->int_arg(0), scan_of_loop);
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
