#include "weft/onnx/exporter.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/graph/tuple.h"
#include "weft/graph/walks.h"
#include "weft/io/tensors.h"
#include "weft/tensor/build.h"

namespace weft::onnx {

namespace {

constexpr char kMissing = '?';  // names what cannot be written: the graph is given up
constexpr int kDeepestSize = 64;
// A table of more elements is written as what computes it, where that is possible.
constexpr int64_t kMostFolded = int64_t{1} << 20;

}  // namespace

Exporter::Exporter(Exporter& outer, ExportedGraph& graph)
    : Exporter(outer.context, outer.g, graph, outer.opset) {
  state_ = outer.state_;
  sizes_ = outer.sizes_;
  problems_ = outer.problems_;
  folded_ = outer.folded_;
}

void Exporter::count_uses(std::span<const NodeRef> roots) {
  for (NodeRef n : Toposort::evaluated(roots))
    for (NodeRef s : n->src().first(evaluated_sources(n))) ++uses_[s];
  for (NodeRef r : roots) ++uses_[r];
}

bool Exporter::used_once(NodeRef n) const {
  const uint32_t* count = uses_.find(n);
  return !count || *count <= 1;
}

// ---- walking

std::string Exporter::value(NodeRef root) {
  std::vector<NodeRef> stack{root};
  while (!stack.empty()) {
    NodeRef n = meaning(stack.back());
    if (names_.contains(n)) {
      stack.pop_back();
      continue;
    }
    Emission* known = emissions_.find(n);
    if (!known) known = &emissions_.set(n, emission(n));
    const size_t before = stack.size();
    for (NodeRef s : known->needs)
      if (!names_.contains(meaning(s))) stack.push_back(s);
    if (stack.size() > before) continue;
    Names names;
    for (NodeRef s : known->needs) names.push_back(names_.at(meaning(s)));
    const Emission own = std::move(*known);  // what writes it may ask for values of its own
    names_.set(n, own.write(names));
    stack.pop_back();
  }
  return names_.at(meaning(root));
}

NodeRef Exporter::meaning(NodeRef n) {
  while (true) {
    if (names_.contains(n)) return n;
    if (n->op == Op::Detach || n->op == Op::Contiguous || n->op == Op::Copy) {
      n = n->src(0);
      continue;
    }
    if (n->op != Op::Get || n->src(0)->op != Op::Function) return n;
    n = FunctionParts(n->src(0)).results[static_cast<size_t>(n->int_arg(0))];
  }
}

Emission Exporter::emission(NodeRef n) {
  if (n->op == Op::Const || n->op == Op::Buffer ||
      (is_foldable(n) && n->op != Op::Expand && is_static(n) && static_numel(n) <= kMostFolded))
    return {{}, [this, n](const Names&) { return folded(n); }};
  for (const auto rules : {export_products(), export_networks(), export_transposed(),
                           export_functions(), export_indexing(), export_reductions(),
                           export_loops(), export_movements(), export_elementwise()})
    for (const ExportRule rule : rules)
      if (MaybeEmission made = rule(*this, n)) return *std::move(made);
  return refuse(n, strformat("no operator stands for {}", summary(n)));
}

Emission Exporter::refuse(NodeRef n, std::string what) {
  problems_->push_back({std::move(what), n});
  std::vector<NodeRef> below;
  for (NodeRef s : n->src().first(evaluated_sources(n)))
    if (is_data(s->dtype) && !is_tuple(s->op)) below.push_back(s);
  return {below, [](const Names&) { return std::string(1, kMissing); }};
}

// ---- constants

uint8_t Exporter::leaf_flags(NodeRef n) const {
  if (names_.contains(n)) return kVaries;
  switch (n->op) {
    case Op::Param:
    case Op::Variable:
    case Op::Carry:
    case Op::Elem: return kVaries;
    case Op::Buffer: return state_.contains(n) ? kState : 0;
    default: return 0;
  }
}

uint8_t Exporter::flags(NodeRef root) {
  std::vector<NodeRef> stack{root};
  while (!stack.empty()) {
    NodeRef n = stack.back();
    uint8_t found = leaf_flags(n);
    const size_t before = stack.size();
    for (NodeRef s : n->src().first(evaluated_sources(n))) {
      const uint8_t* known = flags_.find(s);
      if (known)
        found |= *known;
      else
        stack.push_back(s);
    }
    if (stack.size() > before) continue;
    flags_.set(n, found);
    stack.pop_back();
  }
  return flags_.at(root);
}

bool Exporter::is_foldable(NodeRef n) { return flags(n) == 0; }

std::string Exporter::folded(NodeRef n) {
  if (n->op == Op::Const) return out.number(const_value(n));
  const std::string* name = state_.find(n);
  const std::string own = out.unfilled(name ? *name : "constant", n->dtype);
  folded_->emplace_back(tensor(n), own);
  return own;
}

void Exporter::compute_constants() {
  std::vector<Tensor> all;
  for (const auto& [value, name] : *folded_) all.push_back(value);
  realize(all);
  for (const auto& [value, name] : *folded_) out.fill(name, host_array_of(value));
}

std::string Exporter::cast(const std::string& x, DType to) {
  return out.node("Cast", {x}, {attribute("to", static_cast<int64_t>(element_type_of(to)))});
}

// ---- sizes

std::string Exporter::size(NodeRef dim, int depth) {
  if (is_const(dim)) return out.integers({dim->vmin});
  if (const std::string* known = known_sizes_.find(dim)) return *known;
  if (depth > kDeepestSize)
    fail("onnx.export", "a size is an expression of more than {} levels", kDeepestSize);
  const auto part = [&](size_t i) { return size(dim->src(i), depth + 1); };
  std::string made;
  switch (dim->op) {
    case Op::Bind: made = part(0); break;
    case Op::Variable: {
      const auto found = sizes_.find(std::string(dim->text()));
      if (found == sizes_.end()) break;
      const auto& [input, axis] = found->second;
      made = out.node("Shape", {input}, {attribute("start", axis), attribute("end", axis + 1)});
      break;
    }
    case Op::Add: made = out.node("Add", {part(0), part(1)}); break;
    case Op::Mul: made = out.node("Mul", {part(0), part(1)}); break;
    case Op::Max: made = out.node("Max", {part(0), part(1)}); break;
    case Op::Min: made = out.node("Min", {part(0), part(1)}); break;
    case Op::Mod: made = out.node("Mod", {part(0), part(1)}); break;
    case Op::IDiv:  // ONNX's rounds towards zero
      if (dim->src(0)->vmin >= 0) made = out.node("Div", {part(0), part(1)});
      break;
    default: break;
  }
  if (made.empty()) {
    problems_->push_back({strformat("the size {} cannot be computed", expression(dim)), dim});
    made.assign(1, kMissing);
  }
  return known_sizes_.set(dim, made);
}

std::string Exporter::sizes(std::span<const NodeRef> dims) {
  std::vector<int64_t> numbers;
  Names parts;
  const auto flush = [&] {
    if (!numbers.empty()) parts.push_back(out.integers(numbers));
    numbers.clear();
  };
  for (NodeRef d : dims) {
    if (is_const(d)) {
      numbers.push_back(d->vmin);
      continue;
    }
    flush();
    parts.push_back(size(d, 0));
  }
  flush();
  if (parts.empty()) return out.integers({});
  return parts.size() == 1 ? parts[0] : out.node("Concat", parts, {attribute("axis", int64_t{0})});
}

std::string Exporter::reshaped(const std::string& x, std::span<const NodeRef> dims) {
  const auto symbolic = std::ranges::count_if(dims, [](NodeRef d) { return !is_const(d); });
  const bool empty = std::ranges::any_of(dims, [](NodeRef d) { return is_int_const(d, 0); });
  std::string target;
  if (symbolic == 1 && !empty) {
    std::vector<int64_t> numbers;
    for (NodeRef d : dims) numbers.push_back(is_const(d) ? d->vmin : -1);
    target = out.integers(numbers);
  } else {
    target = sizes(dims);
  }
  std::vector<Attribute> attributes;
  if (empty) attributes.push_back(attribute("allowzero", int64_t{1}));
  return out.node("Reshape", {x, target}, std::move(attributes));
}

}  // namespace weft::onnx
