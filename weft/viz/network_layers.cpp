#include "weft/viz/network_layers.h"

#include <unordered_map>

namespace weft::viz {
namespace {

class LayerFinder {
 public:
  explicit LayerFinder(GraphData& graph)
      : graph_(graph), of_parameter_(graph.size(), kNoLayer), begun_(0) {}

  void find(FunctionRef<std::string_view(size_t)> name) {
    graph_.layers.assign(graph_.size(), kNoLayer);
    for (size_t i = 0; i < graph_.size(); ++i) {
      const std::string_view parameter = name(i);
      const size_t dot = parameter.rfind('.');
      if (dot != std::string_view::npos)
        of_parameter_[i] = graph_.layers[i] = number(parameter.substr(0, dot));
      else
        graph_.layers[i] = layer_of(i);
    }
    if (graph_.layer_names.empty()) graph_.layers.clear();
  }

 private:
  uint32_t number(std::string_view name) {
    const auto [at, fresh] =
        numbers_.try_emplace(std::string(name), static_cast<uint32_t>(numbers_.size()));
    if (fresh) graph_.layer_names.emplace_back(name), order_.push_back(0);
    return at->second;
  }

  uint32_t layer_of(size_t i) {
    uint32_t last = kNoLayer;
    for (uint32_t s = graph_.begins[i]; s < graph_.begins[i + 1]; ++s) {
      const uint32_t source = graph_.sources[s];
      if (source >= i) continue;  // of a loop
      if (const uint32_t own = of_parameter_[source]; own != kNoLayer) {
        if (order_[own] == 0) order_[own] = ++begun_;
        return own;
      }
      const uint32_t theirs = graph_.layers[source];
      if (theirs != kNoLayer && (last == kNoLayer || order_[theirs] > order_[last])) last = theirs;
    }
    return last;
  }

  GraphData& graph_;
  std::vector<uint32_t> of_parameter_;
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<uint32_t> order_;  // in which layers were begun, from 1
  uint32_t begun_;
};

}  // namespace

void find_layers(GraphData& graph, FunctionRef<std::string_view(size_t)> name) {
  LayerFinder(graph).find(name);
}

}  // namespace weft::viz
