// One form for equal kernels: ranges numbered by nest order, slots by first use, independent
// reductions in shared loops.
#include <algorithm>
#include <bit>
#include <iterator>
#include <map>

#include "weft/base/format.h"
#include "weft/base/hash.h"
#include "weft/graph/loops.h"
#include "weft/rewrite/driver.h"
#include "weft/schedule/build.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace {

/// For each reduction that depends on some of these ranges only, on which: a bit for each; the
/// fewest first. None where there are more ranges than bits.
std::vector<uint64_t> around_reductions(std::span<const NodeRef> order,
                                        std::span<const NodeRef> all) {
  std::vector<uint64_t> sets;
  if (all.size() < 2 || all.size() > 64) return sets;
  std::vector<std::vector<uint64_t>> by_size(all.size());
  NodeMap<uint64_t> around(order.size());
  for (size_t i = 0; i < all.size(); ++i) around[all[i]] = uint64_t{1} << i;
  for (NodeRef n : order) {
    uint64_t mine = around[n];
    for (NodeRef s : n->src()) mine |= around.at(s);
    around[n] = mine;
    const auto size = static_cast<size_t>(std::popcount(mine));
    if (n->op == Op::Reduce && size < all.size()) by_size[size].push_back(mine);
  }
  for (const auto& same : by_size) sets.insert(sets.end(), same.begin(), same.end());
  return sets;
}

/// Output ranges from outermost to innermost: what hoisted reductions depend on first, then what
/// others do, the rest in memory order of the result.
std::vector<NodeRef> nest_order(const Planner& plan, const KernelPlan& k,
                                std::span<const NodeRef> order) {
  std::vector<NodeRef> memory;
  const int* buffer = plan.buffer_of.find(k.root);
  const bool elementwise = k.root->op != Op::Assign && k.root->op != Op::Scatter;
  if (buffer && elementwise && !plan.buffers[static_cast<size_t>(*buffer)].order.empty()) {
    for (size_t axis : plan.buffers[static_cast<size_t>(*buffer)].order)
      memory.push_back(k.ranges[axis]);
  } else {
    memory = k.ranges;
  }
  std::erase_if(memory, [](NodeRef r) { return r->op != Op::Range; });
  std::vector<NodeRef> nest;
  auto add = [&nest](NodeRef r) {
    if (!contains(nest, r)) nest.push_back(r);
  };
  for (const auto& set : k.hoisted)
    for (NodeRef r : memory)
      if (contains(set, r)) add(r);
  for (const uint64_t set : around_reductions(order, memory))
    for (size_t i = 0; i < memory.size(); ++i)
      if ((set >> i & 1) != 0) add(memory[i]);
  for (NodeRef r : memory) add(r);
  return nest;
}

bool closes_ranges(NodeRef n) { return is_loop_op(n->op) && !is_running(n); }

/// Ranges that reductions close, those of inner reductions first: the order of operands, which
/// depends on what params are called, does not tell equal kernels apart.
std::vector<NodeRef> all_reduction_ranges(std::span<const NodeRef> order) {
  NodeMap<size_t> level(order.size());
  std::vector<std::vector<NodeRef>> found;  // by level
  for (NodeRef n : order) {
    size_t inside = 0;
    for (NodeRef s : n->src()) inside = std::max(inside, level.at(s));
    level[n] = inside + closes_ranges(n);
    if (!closes_ranges(n)) continue;
    found.resize(std::max(found.size(), inside + 1));
    for (NodeRef r : reduction_ranges(n)) found[inside].push_back(r);
  }
  std::vector<NodeRef> ranges;
  for (const auto& same : found) ranges.insert(ranges.end(), same.begin(), same.end());
  return ranges;
}

struct Nesting {
  int level;                   // how many reductions, one inside the other's value, lie below
  std::vector<NodeRef> outer;  // ranges it depends on from outside, by id
};

/// Levels and outer ranges of every node, sources first.
NodeMap<Nesting> nestings(std::span<const NodeRef> order) {
  NodeMap<Nesting> of(order.size());
  for (NodeRef n : order) {
    Nesting mine{0, {}};
    if (n->op == Op::Range) mine.outer.push_back(n);
    for (NodeRef s : n->src()) {
      const Nesting& theirs = of.at(s);
      mine.level = std::max(mine.level, theirs.level);
      for (NodeRef r : theirs.outer)
        if (!contains(mine.outer, r)) mine.outer.push_back(r);
    }
    if (closes_ranges(n)) {
      ++mine.level;
      for (NodeRef r : reduction_ranges(n)) std::erase(mine.outer, r);
    }
    std::sort(mine.outer.begin(), mine.outer.end(),
              [](NodeRef a, NodeRef b) { return range_id(a) < range_id(b); });
    of[n] = std::move(mine);
  }
  return of;
}

/// Reductions over equal extents at the same point, none inside another, get the same ranges and so
/// one loop.
NodeRef share_loops(Graph& g, NodeRef sink) {
  struct Group {
    int level;
    std::vector<NodeRef> outer, extents, ranges;
  };
  const Toposort order(sink);
  if (std::ranges::count_if(order, closes_ranges) < 2) return sink;
  const NodeMap<Nesting> of = nestings(order.nodes());
  std::vector<Group> groups;
  NodeMap<NodeRef> replace;
  for (NodeRef n : order) {
    if (!closes_ranges(n)) continue;
    const Nesting& mine = of.at(n);
    const std::span<const NodeRef> ranges = reduction_ranges(n);
    std::vector<NodeRef> extents;
    for (NodeRef r : ranges) extents.push_back(r->src(0));
    auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.level == mine.level && group.outer == mine.outer && group.extents == extents;
    });
    if (same == groups.end()) {
      groups.push_back({mine.level, mine.outer, extents, {ranges.begin(), ranges.end()}});
      continue;
    }
    for (size_t i = 0; i < ranges.size(); ++i)
      if (ranges[i] != same->ranges[i]) replace[ranges[i]] = same->ranges[i];
  }
  return replace.size() == 0 ? sink : substitute(g, sink, replace);
}

/// Folds see their elements in the order of their ranges, which is that of the ids: row-major,
/// whatever way the graph is walked. Otherwise the bits of a sum would depend on hashes, and those
/// on which device its operands are.
void keep_order_of_loops(Graph& g, std::span<const NodeRef> order, NodeMap<NodeRef>& renamed) {
  for (NodeRef n : order) {
    if (!closes_ranges(n)) continue;
    const std::span<const NodeRef> ranges = reduction_ranges(n);
    std::vector<int64_t> ids;
    for (NodeRef r : ranges) ids.push_back(range_id(renamed.at(r)));
    std::sort(ids.begin(), ids.end());
    for (size_t i = 0; i < ids.size(); ++i) renamed[ranges[i]] = g.range(ranges[i]->src(0), ids[i]);
  }
}

/// Params renamed to slots in order of first use; `slots` gets what each was called before.
void number_slots(Graph& g, NodeRef sink, std::span<const NodeRef> order, NodeMap<NodeRef>& replace,
                  std::vector<int>& slots) {
  const auto ints_of = [&](NodeRef n) -> std::span<const int64_t> {  // ranges by their last names
    if (n->op == Op::Param) return {};
    const NodeRef* last = replace.find(n);
    return (last ? *last : n)->ints();
  };
  const auto is_param = [](NodeRef n) { return n->op == Op::Param; };
  for (NodeRef n : leaves_met(sink, nameless_hashes(order, ints_of), is_param)) {
    replace[n] = g.param(static_cast<int64_t>(slots.size()), n->dtype, n->src());
    slots.push_back(static_cast<int>(param_slot(n)));
  }
}

}  // namespace

NodeMap<uint64_t> nameless_hashes(std::span<const NodeRef> order, IntsOf ints_of) {
  NodeMap<uint64_t> of(order.size());
  for (NodeRef n : order) {
    uint64_t hash = hash_combine(static_cast<uint64_t>(n->op), static_cast<uint64_t>(n->dtype));
    hash = hash_text(n->text(), hash);
    for (const int64_t i : ints_of(n)) hash = hash_combine(hash, static_cast<uint64_t>(i));
    uint64_t in_any_order = 0;
    for (NodeRef s : n->src()) {
      if (has_trait(n->op, kCommutative))
        in_any_order += of.at(s);
      else
        hash = hash_combine(hash, of.at(s));
    }
    of[n] = hash_combine(hash, in_any_order);
  }
  return of;
}

std::vector<NodeRef> leaves_met(NodeRef sink, const NodeMap<uint64_t>& hashes,
                                FunctionRef<bool(NodeRef)> is_leaf) {
  std::vector<NodeRef> met, stack{sink};
  NodeSet seen;
  while (!stack.empty()) {
    NodeRef n = stack.back();
    stack.pop_back();
    if (!seen.insert(n)) continue;
    if (is_leaf(n)) {
      met.push_back(n);
      continue;
    }
    SmallVector<NodeRef, 8> src(n->src());
    if (has_trait(n->op, kCommutative) && hashes.at(src[1]) < hashes.at(src[0]))
      std::swap(src[0], src[1]);
    stack.insert(stack.end(), std::reverse_iterator(src.end()), std::reverse_iterator(src.begin()));
  }
  return met;
}

NodeRef number_kernel(const Planner& plan, const KernelPlan& kernel, NodeRef sink,
                      std::vector<int>& slots) {
  Graph& g = plan.g;
  const Toposort order(sink);
  NodeMap<NodeRef> replace;
  int64_t next = 0;
  for (NodeRef r : nest_order(plan, kernel, order.nodes())) replace[r] = g.range(r->src(0), next++);
  auto number = [&](NodeRef n) {
    if (n->op == Op::Range && !replace.contains(n)) replace[n] = g.range(n->src(0), next++);
  };
  for (NodeRef r : all_reduction_ranges(order.nodes())) number(r);
  for (NodeRef n : order) number(n);
  keep_order_of_loops(g, order.nodes(), replace);
  number_slots(g, sink, order.nodes(), replace, slots);
  return substitute(g, sink, replace);
}

NodeRef simplify_kernel(Graph& g, NodeRef sink, std::vector<int>& slots) {
  sink = share_loops(g, simplify_masks(g, simplify(g, sink)));
  NodeMap<NodeRef> replace;
  number_slots(g, sink, Toposort(sink).nodes(), replace, slots);
  return substitute(g, sink, replace);
}

std::string kernel_name(NodeRef sink) {
  std::map<int64_t, int64_t> sizes, reduced;
  bool scatter = false, scan = false;
  for (NodeRef n : Toposort(sink)) {
    if (n->op == Op::Range) sizes[range_id(n)] = n->src(0)->vmax;
    if (closes_ranges(n))
      for (NodeRef r : reduction_ranges(n)) reduced[range_id(r)] = r->src(0)->vmax;
    scan = scan || n->op == Op::Scan;
    scatter = scatter || (n->op == Op::Store && n->int_arg(0) != 0);
  }
  std::string name = scatter ? "scatter" : scan ? "scan" : reduced.empty() ? "each" : "reduce";
  for (auto [id, size] : sizes)
    if (!reduced.contains(id)) name += strformat("_{}", size);
  if (!reduced.empty()) name += "_over";
  for (auto [id, size] : reduced) name += strformat("_{}", size);
  return name;
}

}  // namespace weft
