#include "weft/onnx/link.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "weft/base/error.h"
#include "weft/onnx/evaluator.h"

namespace weft::onnx {

namespace {

/// How many nodes functions stand for, each counted as often as it would run.
class FunctionSizes {
 public:
  explicit FunctionSizes(const std::vector<LinkedNodes>& lists) {
    for (const LinkedNodes& list : lists)
      if (list.function) lists_[list.function].push_back(&list);  // with the graphs inside it
  }

  int64_t of(const Function* f, int depth = 0) {
    constexpr int kDeepest = 100;
    const auto [entry, added] = sizes_.emplace(f, kInProgress);
    if (!added && entry->second != kInProgress) return entry->second;
    if (!added || depth > kDeepest)
      fail_runtime("onnx.depth", "the function {} calls itself", quoted_name(f->name));
    int64_t size = 0;
    for (const LinkedNodes* list : lists_[f])
      for (const LinkedNode& n : list->nodes)
        size = std::min(LinkedModel::kMostNodes + 1,
                        size + (n.function ? of(n.function, depth + 1) : 1));
    if (size > LinkedModel::kMostNodes)
      fail_runtime("onnx.depth", "the function {} stands for more than {} nodes",
                   quoted_name(f->name), LinkedModel::kMostNodes);
    return sizes_[f] = size;
  }

 private:
  static constexpr int64_t kInProgress = -1;
  std::unordered_map<const Function*, std::vector<const LinkedNodes*>> lists_;
  std::unordered_map<const Function*, int64_t> sizes_;
};

int64_t opset_of(const std::map<std::string, int64_t>& opsets, const std::string& domain) {
  const auto found = opsets.find(domain);
  return found == opsets.end() ? 1 : found->second;
}

std::vector<std::string> missing(const LinkedModel& model) {
  struct Need {
    std::string first;
    int64_t count = 0;
  };
  std::map<std::string, Need> needs;
  for (const LinkedNodes& list : model.lists())
    for (const LinkedNode& n : list.nodes) {
      if (n.op || n.function) continue;
      Need& need = needs[strformat("{} ({}, opset {})", n.node->op,
                                   n.node->domain.empty() ? "ai.onnx" : n.node->domain, n.opset)];
      if (need.count++ < 3) need.first += (need.count > 1 ? ", " : "") + n.node->label();
    }
  std::vector<std::string> texts;
  for (const auto& [what, need] : needs)
    texts.push_back(strformat("{}: {}{}", what, need.first,
                              need.count > 3 ? strformat(" and {} more", need.count - 3) : ""));
  return texts;
}

}  // namespace

LinkedModel::LinkedModel(const Model& model) {
  for (const Function& f : model.functions)
    functions_.emplace(std::tuple(f.domain, f.name, f.overload), &f);
  add(model.graph.nodes, &model.graph, nullptr, model.opsets);
  for (const Function& f : model.functions) add(f.nodes, nullptr, &f, f.opsets);
  FunctionSizes sizes(lists_);
  for (const Function& f : model.functions) sizes.of(&f);
}

const Function* LinkedModel::find_function(const Node& node) const {
  const auto found = functions_.find({node.domain, node.op, node.overload});
  return found == functions_.end() ? nullptr : found->second;
}

void LinkedModel::add(const std::vector<Node>& nodes, const Graph* graph, const Function* function,
                      const std::map<std::string, int64_t>& opsets) {
  LinkedNodes list{graph, function, {}};
  for (const Node& node : nodes) {
    const int64_t opset = opset_of(opsets, node.domain);
    const Function* callee = find_function(node);
    list.nodes.push_back(
        {&node, opset, callee ? nullptr : find_operator(node.domain, node.op, opset), callee});
    for (const Attribute& a : node.attributes)
      for (const auto& inner : a.graphs) add(inner->nodes, inner.get(), function, opsets);
  }
  lists_.push_back(std::move(list));
}

std::vector<std::string> unsupported_operators(const Model& model) {
  return missing(LinkedModel(model));
}

void require_supported(const LinkedModel& model) {
  const std::vector<std::string> texts = missing(model);
  if (texts.empty()) return;
  std::string all;
  for (const std::string& text : texts) all += "\n  " + text;
  fail("onnx.unsupported",
       "the model needs {} that weft lacks; docs/onnx.md lists what there is:{}",
       texts.size() == 1 ? "an operator" : strformat("{} operators", texts.size()), all);
}

}  // namespace weft::onnx
