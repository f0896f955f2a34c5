#include "weft/tensor/argument_sizes.h"

#include <algorithm>

#include "weft/graph/node_map.h"
#include "weft/rewrite/driver.h"
#include "weft/run/replay_plan.h"

namespace weft {

NodeRef without_values(Graph& g, NodeRef root) {
  if (root->op == Op::Bind) return root->src(0);  // what most sizes are
  return rebuild(root, [&g](NodeRef n, std::span<const NodeRef> src) {
    return n->op == Op::Bind ? src[0] : g.with_sources(n, src);
  });
}

namespace {

ReplayVariable variable_of(NodeRef bind) { return {bind->src(0), bind->src(1)->vmin}; }

/// The value that each Bind of `from` has where it stands in `to`.
class Values {
 public:
  explicit Values(std::span<const ReplayVariable> from) : from_(from), to_(from.size()) {}

  /// Whether each has one value so far.
  bool take(NodeRef from, NodeRef to) {
    NodeMap<bool> met;
    std::vector<std::pair<NodeRef, NodeRef>> stack{{from, to}};
    while (!stack.empty()) {
      const auto [a, b] = stack.back();
      stack.pop_back();
      if (met.contains(a)) continue;
      met[a] = true;
      if (a->op != b->op || a->nsrc != b->nsrc) return false;
      if (a->op == Op::Bind && !take_bind(a, b)) return false;
      for (size_t i = 0; i < a->nsrc && a->op != Op::Bind; ++i)
        stack.emplace_back(a->src(i), b->src(i));
    }
    return true;
  }

  /// Those that were not met stay.
  std::vector<int64_t> all() const {
    std::vector<int64_t> out;
    for (size_t i = 0; i < from_.size(); ++i) out.push_back(to_[i].value_or(from_[i].value));
    return out;
  }

 private:
  bool take_bind(NodeRef from, NodeRef to) {
    const auto at = std::ranges::find(from_, variable_of(from));
    std::optional<int64_t>& known = to_[static_cast<size_t>(at - from_.begin())];
    const int64_t value = to->src(1)->vmin;
    if (known && *known != value) return false;
    known = value;
    return true;
  }

  std::span<const ReplayVariable> from_;
  std::vector<std::optional<int64_t>> to_;
};

}  // namespace

void ArgumentSizes::add(NodeRef expression) {
  expressions_.emplace_back(expression);
  has_sizes_.push_back(false);
  if (!expression) return;
  const auto met = [this](NodeRef bind) {
    has_sizes_.back() = true;
    if (!contains(variables_, variable_of(bind))) variables_.push_back(variable_of(bind));
  };
  if (expression->op == Op::Bind) return met(expression);
  for (NodeRef n : Toposort(expression))
    if (n->op == Op::Bind) met(n);
}

std::optional<ArgumentSizes::Variables> ArgumentSizes::in(Graph& g,
                                                          const ArgumentSizes& call) const {
  if (variables_.empty()) return Variables();
  std::vector<std::pair<NodeRef, NodeRef>> pairs;
  for (size_t i = 0; i < std::min(expressions_.size(), call.expressions_.size()); ++i) {
    NodeRef a = expressions_[i].get(), b = call.expressions_[i].get();
    if (has_sizes_[i] && b && without_values(g, a) == without_values(g, b))
      pairs.emplace_back(a, b);
  }
  Values values(variables_);
  for (const auto& [a, b] : pairs)
    if (!values.take(a, b)) return std::nullopt;
  const std::vector<int64_t> now = values.all();
  // Sums are written in an order that depends on the values.
  for (const auto& [a, b] : pairs)
    if (a->op != Op::Bind && rebound(g, a, variables_, now) != b) return std::nullopt;
  Variables out = variables_;
  for (size_t i = 0; i < out.size(); ++i) out[i].value = now[i];
  return out;
}

}  // namespace weft
