// Passing a use on to the sources of a node: the ranges' way through the graph.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/graph/loops.h"
#include "weft/graph/tuple.h"
#include "weft/schedule/plan.h"

namespace weft {

/// The use of `n` by this kernel at this access; -1 where there is none yet. A value that very
/// many kernels want is not looked for among all of theirs.
int Planner::find_use(NodeRef n, int kernel, const Access& access) {
  constexpr size_t kFew = 16;
  const std::vector<Use>& list = uses.at(n);
  const auto is_it = [&](int i) {
    const Use& d = list[static_cast<size_t>(i)];
    return d.kernel == kernel && d.access.valid == access.valid && d.access.index == access.index;
  };
  if (list.size() <= kFew) {
    for (int i = 0; i < static_cast<int>(list.size()); ++i)
      if (is_it(i)) return i;
    return -1;
  }
  UseIndex& index = use_index_[n];
  for (auto i = static_cast<int>(index.before.size()); i < static_cast<int>(list.size()); ++i) {
    const int64_t key = list[static_cast<size_t>(i)].kernel + int64_t{1};
    const int* last = index.last.find(key);
    index.before.push_back(last ? *last : -1);
    index.last.set(key, i);
  }
  const int* last = index.last.find(kernel + int64_t{1});
  int i = last ? *last : -1;
  while (i >= 0 && !is_it(i)) i = index.before[static_cast<size_t>(i)];
  return i;
}

int Planner::want(NodeRef n, const Use& from, Access access, int linear_in,
                  std::span<const NodeRef> extra) {
  std::vector<Use>& list = uses[n];
  const bool same_everywhere = n->op == Op::Const || n->op == Op::Variable;
  if (same_everywhere && !list.empty()) return 0;
  if (const int i = find_use(n, from.kernel, access); i >= 0) {
    // One value, wanted in two loops: it lives in the loops they share.
    Use& d = list[static_cast<size_t>(i)];
    std::erase_if(d.scope,
                  [&](NodeRef r) { return !contains(from.scope, r) && !contains(extra, r); });
    if (d.linear_in != linear_in) d.linear_in = -1;
    return i;
  }
  if (binds_few() && may_be_read(n) && !is_wanted_by(list, from.kernel))
    ++kernels[static_cast<size_t>(from.kernel)].buffers;
  Use d{from.kernel, std::move(access), from.scope, linear_in};
  d.scope.insert(d.scope.end(), extra.begin(), extra.end());
  list.push_back(std::move(d));
  kernels[static_cast<size_t>(from.kernel)].size += code_size(n->op);
  return static_cast<int>(list.size()) - 1;
}

void Planner::push_sources(NodeRef n, size_t use) {
  const Use d = uses.at(n)[use];  // a copy: want() may add to other nodes' lists only, but
                                  // n may be its own source's user
  std::vector<int> source(n->nsrc, -1);
  switch (n->op) {
    case Op::Reduce:
    case Op::Scan:
    case Op::Loop: return push_reduced(n, use);
    case Op::Gather: return push_gather(n, use);
    case Op::Assign:
    case Op::Scatter:
    case Op::CumCount: return push_update(n, use);
    case Op::Repeat:
    case Op::Custom: return push_inputs(n, use);
    case Op::Const:
    case Op::Iota:
    case Op::Variable:
    case Op::Elem:
    case Op::Carry: break;
    case Op::Detach:
    case Op::Bind:
    case Op::Get:
    case Op::Contiguous:
    case Op::Copy: source[0] = want(n->src(0), d, d.access, d.linear_in); break;
    default:
      if (is_movement(n->op))
        source[0] = want(n->src(0), d, map_access(g, n, d.access), d.linear_in);
      else if (!is_alu(n->op))
        internal_error("schedule", "{} cannot be scheduled", info(n->op).mnemonic);
      else
        for (size_t i = 0; i < n->nsrc; ++i)
          source[i] = want(n->src(i), d,
                           n->src(i)->rank() == 0 ? Access{{}, d.access.valid} : d.access, -1);
  }
  uses[n][use].source = std::move(source);
}

/// Reduce and Loop close new ranges over their axes; Scan runs along the range its own axis already
/// has.
void Planner::push_reduced(NodeRef n, size_t use) {
  Use d = uses.at(n)[use];
  // A reduction runs only inside the loops it depends on.
  Surroundings around = surroundings(n, d);
  d.scope = std::move(around.ranges);
  if (!around.valid) d.access.valid = g.boolean(true);
  KernelPlan& k = kernels[static_cast<size_t>(d.kernel)];
  NodeRef x = n->src(0);
  const bool stacked = is_running(n);
  if (is_reduction(n) && !in_reduce(d)) {
    k.crowding += crowding(n);
    for (NodeRef stream : streams_of(n)) k.streams.push_back(stream);
  }
  const auto axes = loop_axes(n);
  Access access{{}, d.access.valid};
  std::vector<NodeRef> reduced;
  size_t next = 0;
  for (size_t a = 0; a < x->rank(); ++a) {
    const bool along = std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) != axes.end();
    if (stacked || !along) {
      access.index.push_back(d.access.index[next++]);
      if (along && access.index.back()->op == Op::Range) reduced.push_back(access.index.back());
    } else if (is_int_const(x->dim(a), 1)) {
      access.index.push_back(g.index(0));
    } else {
      reduced.push_back(g.range(x->dim(a), k.next_range++));
      access.index.push_back(reduced.back());
    }
  }
  if (stacked) run_innermost(k, reduced);
  std::vector<int> source(n->nsrc, -1);
  const LoopParts loop =
      n->op == Op::Loop ? loop_parts(n) : LoopParts{n->src().first(1), {}, {}, {}};
  const size_t elements = loop.elements.size();
  const int linear = n->op == Op::Reduce ? static_cast<int>(fold_of(n)) : -1;
  for (size_t i = 0; i < elements; ++i)
    source[i] = want(n->src(i), d, access, linear,
                     stacked ? std::span<const NodeRef>{} : std::span<const NodeRef>(reduced));
  for (size_t i = 0; i < loop.inits.size(); ++i)
    source[elements + i] = want(n->src(elements + i), d, {{}, d.access.valid}, -1);
  Use& mine = uses[n][use];
  mine.source = std::move(source);
  mine.reduced = std::move(reduced);
}

/// The looked-up index is not known yet: a variable stands for it, and a bool for "it is in range",
/// until the kernel is built.
void Planner::push_gather(NodeRef n, size_t use) {
  const Use d = uses.at(n)[use];
  NodeRef x = n->src(0);
  const auto axis = static_cast<size_t>(n->int_arg(0));
  const int id = placeholders_++;
  NodeRef position =
      g.variable(strformat("%lookup{}", id), 0, std::max<int64_t>(0, x->dim(axis)->vmax - 1));
  NodeRef found = g.make(Op::Elem, DType::Bool, {}, {0, id});
  Access access = d.access;
  access.index[axis] = position;
  access.valid = g.logical_and(access.valid, found);
  // What the lookup varies with is what the index varies with: tell the planner by wanting the
  // index here too.
  std::vector<int> source(n->nsrc, -1);
  source[0] = want(x, d, std::move(access), -1);
  source[1] = want(n->src(1), d, d.access, -1);
  Use& mine = uses[n][use];
  mine.source = std::move(source);
  mine.placeholder = position;
  mine.found = found;
}

/// Assign and scatter iterate over what is written, cumcount over what it counts; the old contents
/// are already in the buffer.
void Planner::push_update(NodeRef n, size_t use) {
  const Use d = uses.at(n)[use];
  std::vector<int> source(n->nsrc, -1);
  if (n->op != Op::Assign) source[1] = want(n->src(1), d, d.access, -1);
  if (n->op != Op::CumCount) source[2] = want(n->src(2), d, d.access, -1);
  uses[n][use].source = std::move(source);
}

/// A step reads whole buffers, in their standard layout.
void Planner::push_inputs(NodeRef n, size_t use) {
  const Use d = uses.at(n)[use];
  std::vector<int> source(n->nsrc, -1);
  for (size_t i = 0; i < evaluated_sources(n); ++i)
    source[i] = want(n->src(i), d, first_access(n->src(i)), -1);
  uses[n][use].source = std::move(source);
}

}  // namespace weft
