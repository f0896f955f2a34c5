// Passing a demand on to the sources of a node: the ranges' way through the graph.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/graph/tuple.h"
#include "weft/schedule/plan.h"

namespace weft {

int Planner::want(NodeRef n, const Demand& from, Place place, int linear_in,
                  std::span<const NodeRef> extra) {
  std::vector<Demand>& list = demands[n];
  const bool same_everywhere = n->op == Op::Const || n->op == Op::Variable;
  if (same_everywhere && !list.empty()) return 0;
  for (size_t i = 0; i < list.size(); ++i) {
    Demand& d = list[i];
    if (d.kernel != from.kernel || d.place.valid != place.valid || d.place.index != place.index)
      continue;
    // One value, wanted in two loops: it lives in the loops they share.
    std::erase_if(d.scope,
                  [&](NodeRef r) { return !contains(from.scope, r) && !contains(extra, r); });
    if (d.linear_in != linear_in) d.linear_in = -1;
    return static_cast<int>(i);
  }
  Demand d{from.kernel, std::move(place), from.scope, linear_in};
  d.scope.insert(d.scope.end(), extra.begin(), extra.end());
  list.push_back(std::move(d));
  kernels[static_cast<size_t>(from.kernel)].size += code_size(n->op);
  return static_cast<int>(list.size()) - 1;
}

void Planner::push_sources(NodeRef n, size_t demand) {
  const Demand d = demands.at(n)[demand];  // a copy: want() may add to other nodes' lists only, but
                                           // n may be its own source's user
  std::vector<int> source(n->nsrc, -1);
  switch (n->op) {
    case Op::Reduce:
    case Op::Scan:
    case Op::Loop: return push_reduced(n, demand);
    case Op::Gather: return push_gather(n, demand);
    case Op::Assign:
    case Op::Scatter:
    case Op::CumCount: return push_update(n, demand);
    case Op::Repeat:
    case Op::Custom: return push_inputs(n, demand);
    case Op::Const:
    case Op::Iota:
    case Op::Variable:
    case Op::Elem:
    case Op::Carry: break;
    case Op::Detach:
    case Op::Bind:
    case Op::Get:
    case Op::Contiguous:
    case Op::Copy:
      // Between devices whole buffers are copied, so the source has one.
      if (crosses_devices(n)) forced_[n->src(0)] = true;
      source[0] = want(n->src(0), d, d.place, d.linear_in);
      break;
    default:
      if (is_movement(n->op))
        source[0] = want(n->src(0), d, map_place(g, n, d.place), d.linear_in);
      else if (!is_alu(n->op))
        internal_error("schedule", "{} cannot be scheduled", info(n->op).mnemonic);
      else
        for (size_t i = 0; i < n->nsrc; ++i)
          source[i] =
              want(n->src(i), d, n->src(i)->rank() == 0 ? Place{{}, d.place.valid} : d.place, -1);
  }
  demands[n][demand].source = std::move(source);
}

/// Reduce and Loop close new ranges over their axes; Scan runs along the range its own axis already
/// has.
void Planner::push_reduced(NodeRef n, size_t demand) {
  Demand d = demands.at(n)[demand];
  // A reduction runs only inside the loops it depends on.
  Surroundings around = surroundings(n, d);
  d.scope = std::move(around.ranges);
  if (!around.valid) d.place.valid = g.boolean(true);
  KernelPlan& k = kernels[static_cast<size_t>(d.kernel)];
  NodeRef x = n->src(0);
  const bool stacked = n->op == Op::Scan || (n->op == Op::Loop && n->int_arg(3) != 0);
  const auto axes = n->op == Op::Loop ? n->ints().subspan(4) : n->ints().subspan(1);
  Place place{{}, d.place.valid};
  std::vector<NodeRef> closed;
  size_t next = 0;
  for (size_t a = 0; a < x->rank(); ++a) {
    const bool along = std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) != axes.end();
    if (stacked || !along) {
      place.index.push_back(d.place.index[next++]);
      if (along && place.index.back()->op == Op::Range) closed.push_back(place.index.back());
    } else if (is_int_const(x->dim(a), 1)) {
      place.index.push_back(g.index(0));
    } else {
      closed.push_back(g.range(x->dim(a), k.next_range++));
      place.index.push_back(closed.back());
    }
  }
  if (stacked) run_innermost(k, closed);
  std::vector<int> source(n->nsrc, -1);
  const size_t elements = n->op == Op::Loop ? static_cast<size_t>(n->int_arg(1)) : 1;
  const int linear = n->op == Op::Reduce ? static_cast<int>(fold_of(n)) : -1;
  for (size_t i = 0; i < elements; ++i)
    source[i] = want(n->src(i), d, place, linear,
                     stacked ? std::span<const NodeRef>{} : std::span<const NodeRef>(closed));
  const size_t carries = n->op == Op::Loop ? static_cast<size_t>(n->int_arg(2)) : 0;
  for (size_t i = 0; i < carries; ++i)
    source[elements + i] = want(n->src(elements + i), d, {{}, d.place.valid}, -1);
  Demand& mine = demands[n][demand];
  mine.source = std::move(source);
  mine.reduced = std::move(closed);
}

/// The looked-up index is not known yet: a variable stands for it, and a bool for "it is in range",
/// until the kernel is built.
void Planner::push_gather(NodeRef n, size_t demand) {
  const Demand d = demands.at(n)[demand];
  NodeRef x = n->src(0);
  const auto axis = static_cast<size_t>(n->int_arg(0));
  const int id = placeholders_++;
  NodeRef position =
      g.variable(strformat("%lookup{}", id), 0, std::max<int64_t>(0, x->dim(axis)->vmax - 1));
  NodeRef found = g.make(Op::Elem, DType::Bool, {}, {0, id});
  Place place = d.place;
  place.index[axis] = position;
  place.valid = g.logical_and(place.valid, found);
  // What the lookup varies with is what the index varies with: tell the planner by wanting the
  // index here too.
  std::vector<int> source(n->nsrc, -1);
  source[0] = want(x, d, std::move(place), -1);
  source[1] = want(n->src(1), d, d.place, -1);
  Demand& mine = demands[n][demand];
  mine.source = std::move(source);
  mine.placeholder = position;
  mine.found = found;
}

/// Assign and scatter iterate over what is written, cumcount over what it counts; the old contents
/// are already in the buffer.
void Planner::push_update(NodeRef n, size_t demand) {
  const Demand d = demands.at(n)[demand];
  std::vector<int> source(n->nsrc, -1);
  if (n->op != Op::Assign) source[1] = want(n->src(1), d, d.place, -1);
  if (n->op != Op::CumCount) source[2] = want(n->src(2), d, d.place, -1);
  forced_[n->src(0)] = true;
  updated_by_[n->src(0)] = d.kernel;
  demands[n][demand].source = std::move(source);
}

/// A step reads whole buffers, in their standard layout.
void Planner::push_inputs(NodeRef n, size_t demand) {
  const Demand d = demands.at(n)[demand];
  std::vector<int> source(n->nsrc, -1);
  for (size_t i = 0; i < evaluated_sources(n); ++i) {
    forced_[n->src(i)] = true;
    source[i] = want(n->src(i), d, first_place(n->src(i)), -1);
  }
  demands[n][demand].source = std::move(source);
}

}  // namespace weft
