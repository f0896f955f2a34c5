#include "weft/optimize/bodies.h"

#include <algorithm>

#include "weft/dtype/dtype.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/walks.h"

namespace weft::optimize {
namespace {

/// where(mask, x, 0): as a reduction's value, something lower/ may skip whole loops for.
bool is_masked(NodeRef value) { return value->op == Op::Where && value->src(2)->op == Op::Const; }

/// What multiplies and adds in one operation.
bool is_product(NodeRef n) { return is_product(n->op) && (n->op != Op::Mul || is_float(n->dtype)); }

/// A number of times a range, or what no range changes.
bool takes_even_steps(NodeRef term) {
  if (term->op == Op::Mul && term->src(1)->op == Op::Const) term = term->src(0);
  return term->op == Op::Range || term->nsrc == 0;
}

bool steps_evenly(NodeRef index) {
  return std::ranges::all_of(operands_of(index, Op::Add), takes_even_steps);
}

/// Places as numbers, of which a vector is the first one and steps from it.
bool are_even_places(NodeRef n) {
  return n->op == Op::Cast && is_index(n->src(0)->dtype) && steps_evenly(n->src(0));
}

/// Such places compared with others, to choose between data: as vectors, too.
bool compares_even_places(NodeRef n) {
  return has_trait(n->op, kBoolResult) && n->nsrc == 2 && is_index(n->src(0)->dtype) &&
         steps_evenly(n->src(0)) && steps_evenly(n->src(1));
}

/// Every condition of an access that must not happen where it does not hold: each lane is tested.
NodeMap<bool> tested_conditions(const KernelInfo& info) {
  NodeMap<bool> seen;
  std::vector<NodeRef> stack;
  for (const Access& a : info.accesses)
    if (a.masked != 0 && (a.is_store() || !is_inside_anyway(a.node)))
      stack.push_back(a.node->src(a.is_store() ? 3 : 2));
  while (!stack.empty()) {
    NodeRef n = stack.back();
    stack.pop_back();
    if (n->dtype != DType::Bool || seen.contains(n)) continue;
    seen[n] = true;
    stack.insert(stack.end(), n->src().begin(), n->src().end());
  }
  return seen;
}

/// Adds what runs in the innermost loop to compute `roots`: for reductions what depends on the
/// ranges they close, for stores everything outside reductions.
void collect(const KernelInfo& info, Body& body, std::span<const NodeRef> roots) {
  const NodeMap<bool> tested = body.own == 0 ? tested_conditions(info) : NodeMap<bool>();
  NodeMap<bool> seen;
  std::vector<NodeRef> stack(roots.begin(), roots.end());
  for (NodeRef r : roots) seen[r] = true;
  while (!stack.empty()) {
    NodeRef n = stack.back();
    stack.pop_back();
    const bool root = contains(roots, n);
    const bool is_access = n->op == Op::Load || n->op == Op::Store;
    const bool may_be_skipped = is_masked(n) && body.own != 0 && info.deps(n) == body.deps;
    const RangeMask deps = root && n->op == Op::Reduce ? body.deps : info.deps(n);
    if (root && n->op == Op::Reduce) {
      body.add_work(deps, body.products ? 0.5 : op_cycles(fold_op(fold_of(n)), n->dtype), false);
    } else if (is_access) {
      for (uint32_t i = 0; i < info.accesses.size(); ++i)
        if (info.accesses[i].node == n) body.accesses.push_back(i);
    } else if (is_alu(n->op) && !is_index(n->dtype) && !may_be_skipped) {
      // In reductions all places have the price of masks: for it rows go side by side, whose sums
      // wait for one another otherwise (argmax down columns of 256 x 4096: 109 us, and 156).
      const bool even =
          body.own == 0 && (are_even_places(n) || (compares_even_places(n) && !tested.contains(n)));
      body.add_work(deps, op_cycles(n->op, n->dtype), is_index(n->src(0)->dtype) && !even);
    }
    for (NodeRef s : n->src()) {
      const bool inside = body.own == 0 || (info.deps(s) & body.own) != 0;
      if (!inside || info.deps(s) == 0 || seen.contains(s)) continue;
      seen[s] = true;
      if (s->op != Op::Reduce) stack.push_back(s);
    }
  }
  // A product that is summed costs no operation of its own.
  if (body.products)
    for (Body::Work& w : body.work)
      if (w.deps == body.deps && !w.per_lane) w.cycles = std::max(0.5F, w.cycles - 0.5F);
}

std::vector<Body> reductions(const KernelInfo& info) {
  std::vector<std::pair<Body, std::vector<NodeRef>>> groups;
  for (NodeRef n : info.reduces) {
    const RangeMask own = info.reduced_by(n), deps = info.deps(n) | own;
    auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& g) {
      return g.first.own == own && g.first.deps == deps;
    });
    if (same == groups.end()) {
      Body b;
      b.deps = deps;
      b.own = own;
      same = groups.insert(same, {b, {}});
    }
    ++same->first.results;
    NodeRef value = n->src(0);
    if (is_masked(value)) {
      same->first.masked |= info.deps(value->src(0));
      value = value->src(1);
    }
    same->first.products = same->first.products || (fold_of(n) == Fold::Add && is_product(value));
    same->second.push_back(n);
  }
  std::vector<Body> bodies;
  for (auto& [body, roots] : groups) {
    collect(info, body, roots);
    bodies.push_back(std::move(body));
  }
  return bodies;
}

/// One for all stores whose loops are the same or lie within each other; those of borders, say,
/// have loops side by side.
std::vector<Body> outside_reductions(const KernelInfo& info) {
  std::vector<std::pair<Body, std::vector<NodeRef>>> groups;
  for (NodeRef n : info.order) {
    if (n->op != Op::Store) continue;
    Body body;
    body.deps = info.deps(n);
    std::vector<NodeRef> stores{n};
    for (size_t i = 0; i < groups.size();) {
      const RangeMask both = groups[i].first.deps & body.deps;
      if (both != groups[i].first.deps && both != body.deps) {
        ++i;
        continue;
      }
      body.deps |= groups[i].first.deps;
      stores.insert(stores.begin(), groups[i].second.begin(), groups[i].second.end());
      groups.erase(groups.begin() + static_cast<ptrdiff_t>(i));
    }
    groups.emplace_back(body, stores);
  }
  std::vector<Body> bodies;
  for (auto& [body, stores] : groups) {
    collect(info, body, stores);
    bodies.push_back(std::move(body));
  }
  return bodies;
}

}  // namespace

double op_cycles(Op op, DType dtype) {
  switch (op) {
    case Op::Exp2:
    case Op::Log2: return 12;
    case Op::Sin:
    case Op::Cos:
    case Op::Tan: return 30;
    case Op::Div:
    case Op::Sqrt: return 6;
    case Op::IDiv:
    case Op::Mod:
    case Op::Rem: return 20;
    case Op::Max:
    case Op::Min: return is_float(dtype) ? 1.5 : 0.5;  // NaN has to come through
    case Op::Bitcast: return 0;
    default: return 0.5;
  }
}

void Body::add_work(RangeMask in, double cycles, bool per_lane) {
  if (cycles == 0) return;
  for (Work& w : work)
    if (w.deps == in && w.per_lane == per_lane) {
      w.cycles += static_cast<float>(cycles);
      return;
    }
  work.push_back({in, static_cast<float>(cycles), per_lane});
}

std::vector<Body> find_bodies(const KernelInfo& info) {
  std::vector<Body> bodies = reductions(info);
  for (Body& body : outside_reductions(info)) bodies.push_back(std::move(body));
  return bodies;
}

}  // namespace weft::optimize
