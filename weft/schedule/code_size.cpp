// How large the code of a kernel becomes: indices that views make longer and longer, values that
// are wanted at more and more places. Both take time to compile long before they take time to run.
#include <algorithm>

#include "weft/schedule/plan.h"

namespace weft {
namespace {

constexpr size_t kMaxIndexSize = 96;  // nodes of an index and its mask: past it, memory is read
constexpr size_t kMostAccesses = 16;  // places of one kernel at which a value is computed again

/// Whether a looked-up index was in range takes a load and two comparisons.
uint32_t leaf_size(NodeRef n) { return n->op == Op::Elem ? 8 : 1; }

/// How often the kernel that wants a value most wants it.
size_t most_accesses(std::span<const Use> wanted) {
  if (wanted.size() <= kMostAccesses) return wanted.size();
  std::vector<int> kernels;
  for (const Use& d : wanted) kernels.push_back(d.kernel);
  std::ranges::sort(kernels);
  size_t most = 0, run = 0;
  for (size_t i = 0; i < kernels.size(); ++i) {
    run = i > 0 && kernels[i] == kernels[i - 1] ? run + 1 : 1;
    most = std::max(most, run);
  }
  return most;
}

}  // namespace

/// What targets do not have is spelt out.
int code_size(Op op) {
  switch (op) {
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
    case Op::Rem: return 40;
    case Op::Exp2:
    case Op::Log2: return 20;
    case Op::IDiv:
    case Op::Mod: return 16;
    default: return 1;
  }
}

bool is_wanted_all_over(std::span<const Use> wanted) {
  return most_accesses(wanted) > kMostAccesses;
}

/// Views that do not merge make an index longer with each of them. Where it is about to take longer
/// than reading memory, the value goes there, and begins with a plain index of its own.
bool Planner::is_far(NodeRef n, const std::vector<Use>& wanted) {
  if (n->nsrc == 0 || n->op == Op::Iota || is_tuple(n->op) || n->dtype == DType::Index)
    return false;
  return std::any_of(wanted.begin(), wanted.end(),
                     [this](const Use& d) { return size_of_access(d.access) > kMaxIndexSize; });
}

size_t Planner::size_of_access(const Access& access) {
  uint32_t as_trees = tree_size(access.valid);
  for (NodeRef i : access.index) as_trees += tree_size(i);
  if (as_trees <= kMaxIndexSize) return as_trees;
  std::vector<NodeRef> roots = access.index;
  roots.push_back(access.valid);
  size_t size = 0;
  for (NodeRef n : Toposort(roots)) size += n->nsrc == 0 ? leaf_size(n) : 1;
  return size;
}

/// Saturating, so that what is shared often does not overflow.
uint32_t Planner::tree_size(NodeRef root) {
  if (root->nsrc == 0) return leaf_size(root);
  if (const uint32_t* known = index_size_.find(root)) return *known;
  for (NodeRef n : Toposort(root)) {
    if (n->nsrc == 0 || index_size_.contains(n)) continue;
    uint32_t size = 1;
    for (NodeRef s : n->src()) size += s->nsrc == 0 ? leaf_size(s) : index_size_.at(s);
    index_size_[n] = std::min<uint32_t>(size, 1 << 20);
  }
  return index_size_.at(root);
}

}  // namespace weft
