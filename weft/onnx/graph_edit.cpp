#include "weft/onnx/graph_edit.h"

#include <algorithm>

#include "weft/base/format.h"

namespace weft::onnx {

GraphEdit::GraphEdit(Graph& g) : graph(g) {
  for (const DeclaredValue& v : g.inputs) inputs_.insert(v.name);
  for (const DeclaredValue& v : g.outputs) outputs_.insert(v.name), ++uses_[v.name];
  for (size_t i = 0; i < g.initialisers.size(); ++i) constants_[g.initialisers[i].name] = i;
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    for (const std::string& name : g.nodes[i].outputs) producers_[name] = i;
    for (const std::string& name : g.nodes[i].inputs) ++uses_[name];
    for (const Attribute& a : g.nodes[i].attributes)
      for (const auto& inner : a.graphs)
        for (const std::string& name : inner->captures) captured_.insert(name), ++uses_[name];
  }
}

size_t GraphEdit::uses(const std::string& name) const {
  const auto at = uses_.find(name);
  return at == uses_.end() ? 0 : at->second;
}

Node* GraphEdit::producer(const std::string& name) const {
  const auto at = producers_.find(name);
  return at == producers_.end() || name.empty() ? nullptr : &graph.nodes[at->second];
}

const ConstantData* GraphEdit::constant(const std::string& name) const {
  const auto at = constants_.find(name);
  if (at == constants_.end() || inputs_.contains(name)) return nullptr;
  return &graph.initialisers[at->second];
}

bool GraphEdit::redirect(const std::string& from, const std::string& to) {
  if (is_captured(from)) return false;
  if (!is_output(from)) {
    for (Node& n : graph.nodes) std::ranges::replace(n.inputs, from, to);
    uses_[to] += uses_[from];
    uses_[from] = 0;
    return true;
  }
  // What makes `to` gets the output's name instead.
  Node* maker = producer(to);
  if (!maker || is_output(to) || is_captured(to)) return false;
  if (Node* old = producer(from)) std::ranges::replace(old->outputs, from, std::string());
  std::ranges::replace(maker->outputs, to, from);
  for (Node& n : graph.nodes) std::ranges::replace(n.inputs, to, from);
  return true;
}

void GraphEdit::add_constant(const std::string& name, ElementType type, HostArray array) {
  ConstantData data;
  data.name = name;
  data.type = type;
  data.shape = array.shape;
  data.array = std::move(array);
  constants_[name] = graph.initialisers.size();
  graph.initialisers.push_back(std::move(data));
}

std::string GraphEdit::fresh(const std::string& name) const {
  for (size_t i = 0;; ++i) {
    std::string tried = i == 0 ? name : strformat("{}_{}", name, i);
    if (!producers_.contains(tried) && !constants_.contains(tried) && !inputs_.contains(tried))
      return tried;
  }
}

}  // namespace weft::onnx
