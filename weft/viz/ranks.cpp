#include <algorithm>
#include <numeric>

#include "weft/base/error.h"
#include "weft/viz/layers.h"

namespace weft::viz {

Neighbours users_of(size_t nodes, std::span<const Edge> edges) {
  Neighbours users;
  users.begin.assign(nodes + 1, 0);
  for (const Edge& edge : edges) ++users.begin[edge.from + 1];
  for (size_t i = 0; i < nodes; ++i) users.begin[i + 1] += users.begin[i];
  users.ids.resize(edges.size());
  std::vector<uint32_t> next(users.begin.begin(), users.begin.end() - 1);
  for (const Edge& edge : edges) users.ids[next[edge.from]++] = edge.to;
  return users;
}

namespace {

// Sources before users; the order of indices where that leaves a choice.
std::vector<uint32_t> sorted_nodes(const Neighbours& users, const std::vector<uint32_t>& sources) {
  std::vector<uint32_t> missing = sources, sorted;
  sorted.reserve(missing.size());
  for (uint32_t node = 0; node < missing.size(); ++node)
    if (missing[node] == 0) sorted.push_back(node);
  for (size_t i = 0; i < sorted.size(); ++i)
    for (const uint32_t user : users.of(sorted[i]))
      if (--missing[user] == 0) sorted.push_back(user);
  if (sorted.size() < missing.size()) {
    const auto on_cycle =
        std::find_if(missing.begin(), missing.end(), [](uint32_t m) { return m > 0; });
    fail("viz.graph",
         "the graph has a cycle, through node {} or above it; only graphs without cycles have "
         "layers",
         on_cycle - missing.begin());
  }
  return sorted;
}

}  // namespace

std::vector<uint32_t> layer_ranks(size_t nodes, std::span<const Edge> edges) {
  const Neighbours users = users_of(nodes, edges);
  std::vector<uint32_t> sources(nodes, 0), ranks(nodes, 0);
  for (const Edge& edge : edges) ++sources[edge.to];
  const bool in_order = std::ranges::all_of(edges, [](const Edge& e) { return e.from < e.to; });
  std::vector<uint32_t> sorted(in_order ? nodes : 0);
  std::iota(sorted.begin(), sorted.end(), 0);
  if (!in_order) sorted = sorted_nodes(users, sources);
  for (const uint32_t node : sorted)
    for (const uint32_t user : users.of(node)) ranks[user] = std::max(ranks[user], ranks[node] + 1);
  for (auto node = sorted.rbegin(); node != sorted.rend(); ++node) {
    const auto below = users.of(*node);
    if (below.size() <= sources[*node]) continue;
    uint32_t first = UINT32_MAX;
    for (const uint32_t user : below) first = std::min(first, ranks[user]);
    ranks[*node] = first - 1;
  }
  return ranks;
}

}  // namespace weft::viz
