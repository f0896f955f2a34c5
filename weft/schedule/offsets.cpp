// Kernels that differ only in which part of a buffer they write, or read, as one: the constant of
// each buffer's indices becomes a variable with a value in every step.
#include <algorithm>

#include "weft/base/format.h"
#include "weft/graph/index_algebra.h"
#include "weft/rewrite/driver.h"
#include "weft/schedule/build.h"

namespace weft {
namespace {

// Fewer parts than this are compiled as they are: constants make the better kernel.
constexpr int64_t kManyParts = 8;

/// What all indices of one buffer have in common.
struct Reach {
  int64_t begin = INT64_MAX;  // the smallest constant
  int64_t end = 0;            // the largest index
};

bool is_access(NodeRef n) { return n->op == Op::Load || n->op == Op::Store; }

NodeMap<Reach> reaches(Graph& g, NodeRef sink) {
  NodeMap<Reach> of;
  for (NodeRef n : Toposort(sink)) {
    if (!is_access(n)) continue;
    Reach& r = of[n->src(0)];
    r.begin = std::min(r.begin, split_offset(g, n->src(1)).constant);
    r.end = std::max(r.end, n->src(1)->vmax);
  }
  return of;
}

}  // namespace

bool has_many_parts(const Planner& plan) {
  return std::ranges::count_if(plan.kernels, [](const KernelPlan& k) {
           return k.root->op == Op::Assign;
         }) >= kManyParts;
}

NodeRef lift_offsets(Graph& g, NodeRef sink, std::vector<ScheduleStep::Fixed>& fixed) {
  const NodeMap<Reach> of = reaches(g, sink);
  NodeMap<NodeRef> variables;
  for (NodeRef n : Toposort(sink)) {
    const Reach* r = n->op == Op::Param ? of.find(n) : nullptr;
    if (!r || r->begin <= 0 || n->src(0)->op != Op::Const || r->end >= n->src(0)->vmin) continue;
    const std::string name = strformat("@part{}", param_slot(n));
    const int64_t last = n->src(0)->vmin - 1 - (r->end - r->begin);
    variables[n] = g.variable(name, 0, last);
    fixed.push_back({name, r->begin});
  }
  if (fixed.empty()) return sink;
  return rebuild(sink, [&](NodeRef n, std::span<const NodeRef> sources) {
    std::vector<NodeRef> src(sources.begin(), sources.end());
    if (is_access(n))
      if (const NodeRef* v = variables.find(n->src(0)))
        src[1] = g.add(g.sub(src[1], g.index(of.at(n->src(0)).begin)), *v);
    return g.with_sources(n, src);
  });
}

}  // namespace weft
