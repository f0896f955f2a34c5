#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/error.h"
#include "weft/onnx/read_parts.h"

namespace weft::onnx {

namespace {

/// Calls f for each name that a node, or a graph inside it, reads.
void each_needed(const Node& node, const std::function<void(const std::string&)>& f) {
  for (const std::string& name : node.inputs)
    if (!name.empty()) f(name);
  for (const Attribute& a : node.attributes)
    for (const auto& graph : a.graphs)
      for (const std::string& name : graph->captures) f(name);
}

/// Who makes what, and who has to wait for whom.
class NodeOrder {
 public:
  NodeOrder(const std::vector<Node>& nodes, const std::vector<std::string_view>& names,
            std::string_view what)
      : nodes_(nodes), what_(what), given_(names.begin(), names.end()) {
    for (size_t i = 0; i < nodes.size(); ++i)
      for (const std::string& name : nodes[i].outputs)
        if (!name.empty()) add_maker(name, i);
  }

  /// Names from around, each once; in the order of their use.
  std::vector<std::string> captures() {
    std::vector<std::string> from_around;
    std::unordered_set<std::string_view> seen;
    for (size_t i = 0; i < nodes_.size(); ++i)
      each_needed(nodes_[i], [&](const std::string& name) {
        const auto made = makers_.find(name);
        if (made != makers_.end())
          ordered_ = ordered_ && made->second < i;
        else if (!given_.count(name) && seen.insert(name).second)
          from_around.push_back(name);
      });
    return from_around;
  }
  bool ordered() const { return ordered_; }

  /// Kahn (1962); of nodes that could come next, the first of the file.
  std::vector<size_t> sorted() const {
    std::vector<size_t> missing(nodes_.size()), order;
    std::vector<std::vector<size_t>> users(nodes_.size());
    for (size_t i = 0; i < nodes_.size(); ++i)
      each_needed(nodes_[i], [&](const std::string& name) {
        const auto made = makers_.find(name);
        if (made == makers_.end()) return;
        users[made->second].push_back(i);
        ++missing[i];
      });
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (missing[i] == 0) ready.push(i);
    while (!ready.empty()) {
      const size_t next = ready.top();
      ready.pop();
      order.push_back(next);
      for (const size_t user : users[next])
        if (--missing[user] == 0) ready.push(user);
    }
    if (order.size() < nodes_.size()) refuse_cycle(missing);
    return order;
  }

 private:
  void add_maker(const std::string& name, size_t i) {
    if (given_.count(name))
      fail_runtime("onnx.graph", "{}: the {} makes {}, which is an input or a constant already",
                   what_, nodes_[i].label(), quoted_name(name));
    const auto [old, added] = makers_.emplace(name, i);
    if (!added)
      fail_runtime("onnx.graph", "{}: {} is made twice: by the {} and by the {}", what_,
                   quoted_name(name), nodes_[old->second].label(), nodes_[i].label());
  }
  [[noreturn]] void refuse_cycle(const std::vector<size_t>& missing) const {
    const auto stuck = std::ranges::find_if(missing, [](size_t n) { return n > 0; });
    fail_runtime("onnx.graph", "{}: the {} waits for its own result: the graph has a cycle", what_,
                 nodes_[static_cast<size_t>(stuck - missing.begin())].label());
  }

  const std::vector<Node>& nodes_;
  std::string_view what_;
  std::unordered_set<std::string_view> given_;
  std::unordered_map<std::string_view, size_t> makers_;
  bool ordered_ = true;
};

void move_into(std::vector<Node>& nodes, const std::vector<size_t>& order) {
  std::vector<Node> sorted;
  sorted.reserve(nodes.size());
  for (const size_t i : order) sorted.push_back(std::move(nodes[i]));
  nodes = std::move(sorted);
}

}  // namespace

std::vector<std::string> order_nodes(std::vector<Node>& nodes, std::vector<std::string_view> names,
                                     std::string_view what) {
  NodeOrder order(nodes, names, what);
  std::vector<std::string> captures = order.captures();
  if (!order.ordered()) move_into(nodes, order.sorted());
  return captures;
}

void order_graph(Graph& graph, std::string_view what) {
  std::vector<std::string_view> names;
  for (const DeclaredValue& v : graph.inputs) names.push_back(v.name);
  for (const ConstantData& t : graph.initialisers) names.push_back(t.name);
  for (const auto& [name, sparse] : graph.sparse_initialisers) names.push_back(name);
  graph.captures = order_nodes(graph.nodes, names, what);
  std::unordered_set<std::string_view> known(names.begin(), names.end());
  for (const Node& node : graph.nodes) known.insert(node.outputs.begin(), node.outputs.end());
  known.insert(graph.captures.begin(), graph.captures.end());
  std::vector<std::string> passed;  // what is from around it may be a result as it is
  for (const DeclaredValue& v : graph.outputs)
    if (!known.count(v.name)) passed.push_back(v.name);
  std::ranges::move(passed, std::back_inserter(graph.captures));  // what `known` points into, last
}

void require_closed(const std::vector<Node>& nodes, const std::vector<std::string>& captures,
                    std::string_view what) {
  if (captures.empty()) return;
  for (const Node& node : nodes) {
    bool here = false;
    each_needed(node, [&](const std::string& name) { here = here || name == captures[0]; });
    if (here)
      fail_runtime("onnx.graph", "{}: the {} reads {}, which nothing makes", what, node.label(),
                   quoted_name(captures[0]));
  }
  fail_runtime("onnx.graph", "{}: {} is an output, and nothing makes it", what,
               quoted_name(captures[0]));
}

}  // namespace weft::onnx
