#include "weft/onnx/tree_ensemble.h"

#include <algorithm>
#include <cmath>

namespace weft::onnx {
namespace {

bool goes_left(const TreeEnsemble& trees, const TreeNode& n, double x) {
  if (std::isnan(x)) return n.missing_is_true;
  switch (n.branch) {
    case Branch::LessEqual: return x <= n.split;
    case Branch::Less: return x < n.split;
    case Branch::GreaterEqual: return x >= n.split;
    case Branch::Greater: return x > n.split;
    case Branch::Equal: return x == n.split;
    case Branch::NotEqual: return x != n.split;
    default: {
      const auto& set = trees.sets[static_cast<size_t>(n.split)];
      return std::binary_search(set.begin(), set.end(), x);
    }
  }
}

// Whether some walk never ends: a depth-first search with a stack of its own.
bool has_cycle(const TreeEnsemble& trees) {
  enum : uint8_t { New, Open, Done };
  std::vector<uint8_t> state(trees.nodes.size(), New);
  std::vector<uint32_t> stack(trees.roots.begin(), trees.roots.end());
  while (!stack.empty()) {
    const uint32_t i = stack.back();
    const TreeNode& n = trees.nodes[i];
    if (state[i] != New || n.branch == Branch::Leaf) {
      state[i] = Done;
      stack.pop_back();
      continue;
    }
    state[i] = Open;
    for (const uint32_t next : {n.yes, n.no}) {
      if (state[next] == Open) return true;
      if (state[next] == New) stack.push_back(next);
    }
  }
  return false;
}

}  // namespace

int64_t TreeEnsemble::features_used() const {
  int64_t most = 0;
  for (const TreeNode& n : nodes)
    if (n.branch != Branch::Leaf && n.feature >= most) most = n.feature + 1;
  return most;
}

const char* TreeEnsemble::problem() const {
  if (roots.empty() && !nodes.empty()) return "every node is the branch of another, none a root";
  for (const uint32_t root : roots)
    if (root >= nodes.size()) return "a root is no node";
  for (const TreeNode& n : nodes) {
    if (n.branch == Branch::Leaf) continue;
    if (n.yes >= nodes.size() || n.no >= nodes.size()) return "a branch leads to no node";
    if (n.feature < 0 || n.feature > (int64_t{1} << 40))
      return "a node asks for a feature that is none";
    if (n.branch == Branch::Member && n.split >= static_cast<double>(sets.size()))
      return "a node has no set of members";
  }
  for (const Vote& v : votes)
    if (v.target < 0 || v.target >= targets) return "a leaf votes for a target that is none";
  return has_cycle(*this) ? "a branch leads back to where it comes from" : nullptr;
}

void TreeEnsemble::walk(std::span<const double> row, std::span<double> scores,
                        std::span<uint8_t> voted) const {
  for (const uint32_t root : roots) {
    const TreeNode* n = &nodes[root];
    while (n->branch != Branch::Leaf)
      n = &nodes[goes_left(*this, *n, row[static_cast<size_t>(n->feature)]) ? n->yes : n->no];
    for (uint32_t v = n->votes; v < n->votes_end; ++v) {
      const auto t = static_cast<size_t>(votes[v].target);
      const double w = votes[v].weight;
      if (aggregate == Aggregate::Min || aggregate == Aggregate::Max) {
        const bool better = aggregate == Aggregate::Min ? w < scores[t] : w > scores[t];
        if (!voted[t] || better) scores[t] = w;
      } else {
        scores[t] += w;
      }
      voted[t] = 1;
    }
  }
  if (aggregate == Aggregate::Average)
    for (double& s : scores) s /= static_cast<double>(roots.size());
}

}  // namespace weft::onnx
