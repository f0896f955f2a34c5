#include "weft/optimize/kernel_info.h"

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/loops.h"
#include "weft/graph/walks.h"
#include "weft/target/machine.h"

namespace weft::optimize {
namespace {

/// (r + s + ..) / n
bool is_quotient(NodeRef n) {
  return n->op == Op::IDiv && n->src(1)->op == Op::Const &&
         std::ranges::all_of(operands_of(n->src(0), Op::Add), [](NodeRef t) {
           if (t->op == Op::Mul && t->src(1)->op == Op::Const) t = t->src(0);
           return t->op == Op::Range || t->op == Op::Const;
         });
}

/// Adds the coefficients of `index`, a normal sum, to the access's strides.
void add_strides(const KernelInfo& info, NodeRef index, Access& out) {
  for (NodeRef t : operands_of(index, Op::Add)) {
    int64_t coefficient = 1;
    if (t->op == Op::Mul && t->src(1)->op == Op::Const) {
      coefficient = t->src(1)->vmin;
      t = t->src(0);
    }
    if (t->op == Op::Range) {
      out.stride[info.position(t)] += coefficient;
      continue;
    }
    out.opaque |= info.deps(t);
    if (is_quotient(t))
      out.quotients.push_back({info.deps(t), std::abs(coefficient), t->vmax - t->vmin + 1});
    out.rest = std::gcd(out.rest, t->op == Op::Const ? t->vmin : coefficient);
  }
}

/// True where two values of the range never give the same index: the rest of the sum is made of
/// multiples of what is at least what the range spans, and of less than one step of it, whatever
/// that depends on.
bool hits_distinct(NodeRef index, NodeRef range, const Access& access, size_t position,
                   int64_t extent) {
  const int64_t step = std::abs(access.stride[position]);
  if (step == 0) return false;
  int64_t low = 0, row = 0;
  for (NodeRef n : operands_of(index, Op::Add)) {
    const bool scaled = n->op == Op::Mul && n->src(1)->op == Op::Const;
    const int64_t by = scaled ? std::abs(n->src(1)->vmin) : 1;
    NodeRef term = scaled ? n->src(0) : n;
    if (term == range || term->op == Op::Const) continue;
    if (by >= step * extent) {
      row = std::gcd(row, by);
      if (row < step * extent) return false;
      continue;
    }
    if (term->vmin == INT64_MIN || term->vmax == INT64_MAX) return false;
    low += by * (term->vmax - term->vmin);
    if (low >= step) return false;
  }
  return true;
}

std::vector<NodeRef> sources_first(NodeRef root) {
  const Toposort sorted(root);
  return {sorted.begin(), sorted.end()};
}

}  // namespace

int64_t Access::granule(size_t range) const {
  int64_t divisor = rest;
  for (size_t r = 0; r < stride.size(); ++r)
    if (r != range) divisor = std::gcd(divisor, stride[r]);
  return divisor;
}

KernelInfo::KernelInfo(NodeRef root)
    : sink(root),
      order(sources_first(root)),
      index_(positions_in(order)),
      dependence_(order, [this](NodeRef n) { return index_.at(n); }) {
  describe_ranges();
  frozen = frozen || ranges.size() > kMaxRanges;
  if (frozen) return;
  for (size_t i = 0; i < order.size(); ++i) masks_.push_back(dependence_.at(i).word(0));
  // Bounds that depend on outer ranges (triangles) would have to move with them.
  for (const RangeInfo& r : ranges) frozen = frozen || deps(r.node->src(0)) != 0;
  describe_uses();
  describe_accesses();
  order_stores();
  check_aliasing();
}

void KernelInfo::describe_ranges() {
  for (NodeRef r : dependence_.ranges()) {
    RangeInfo info{r};
    info.extent = std::max<int64_t>(1, r->src(0)->vmax);
    info.constant = r->src(0)->op == Op::Const && r->src(0)->vmin > 0;
    ranges.push_back(info);
    frozen = frozen || range_binding(r) != Binding::Loop;
  }
}

bool KernelInfo::in_a_line(size_t range) const {
  bool read = false;
  for (const Access& a : accesses) {
    if (a.is_store() || (a.deps & bit(range)) == 0) continue;
    const int64_t run = std::abs(a.stride[range]) * ranges[range].extent;
    if ((a.opaque & bit(range)) != 0 || run == 0 ||
        run * bits(a.node->src(0)->dtype) / 8 > Machine::kLine)
      return false;
    for (size_t r = 0; r < ranges.size(); ++r)
      if (r != range && a.stride[r] % run != 0) return false;
    read = true;
  }
  return read;
}

bool KernelInfo::has_folds() const {
  return !reduces.empty() || std::ranges::any_of(ranges, &RangeInfo::sequential);
}

RangeMask KernelInfo::reduced_by(NodeRef reduce) const {
  RangeMask mask = 0;
  for (NodeRef r : listed_ranges(reduce)) mask |= deps(r);
  return mask;
}

void KernelInfo::describe_uses() {
  for (NodeRef n : order) {
    if (n->op == Op::Reduce) reduces.push_back(n);
    has_loops = has_loops || n->op == Op::Loop;
    if (const RangeMask reduced = is_running(n) ? 0 : reduced_by(n); reduced != 0)
      common &= deps(n) | reduced;
    if (n->op == Op::Scan || n->op == Op::Loop)
      for (NodeRef r : listed_ranges(n))
        if (r->op == Op::Range) ranges[position(r)].sequential = true;
    if (n->op == Op::Store)
      for (size_t r = 0; r < ranges.size(); ++r)
        if (deps(n) & bit(r)) ranges[r].parallel = true;
    if (is_index(n->dtype) || n->op == Op::Load || n->op == Op::Store || !is_alu(n->op)) continue;
    for (NodeRef s : n->src())
      if (is_index(s->dtype)) data_use |= deps(s);
  }
}

void KernelInfo::describe_accesses() {
  for (NodeRef n : order) {
    if (n->op != Op::Load && n->op != Op::Store) continue;
    Access a{n};
    a.deps = deps(n);
    a.stride.resize(ranges.size(), 0);
    add_strides(*this, n->src(1), a);
    const size_t valid = n->op == Op::Load ? 2 : 3;
    if (n->nsrc > valid) a.masked = deps(n->src(valid));
    accesses.push_back(std::move(a));
  }
}

/// Marks the ranges in which a store must happen in order: docs/design/ir.md section 2.
void KernelInfo::order_stores() {
  for (const Access& a : accesses) {
    if (!a.is_store()) continue;
    const bool folds = static_cast<Fold>(a.node->int_arg(0)) != Fold::Set;
    // Also where the index depends on no data: along an axis of size 1 only the mask does.
    const bool unique = a.node->int_arg(1) != 0;
    if (!folds && unique) continue;
    repeatable = false;
    for (size_t r = 0; r < ranges.size(); ++r)
      if ((a.deps & bit(r)) != 0 &&
          !hits_distinct(a.node->src(1), ranges[r].node, a, r, ranges[r].extent))
        ranges[r].in_order = true;
  }
}

/// A buffer that is loaded and stored: harmless where every load reads the element its iteration
/// stores. Stores to different elements never harm.
void KernelInfo::check_aliasing() {
  for (const Access& s : accesses) {
    if (!s.is_store()) continue;
    for (const Access& other : accesses) {
      if (other.node == s.node || other.node->src(0) != s.node->src(0)) continue;
      NodeRef here = s.node->src(1), there = other.node->src(1);
      if (other.is_store() && never_meet(here, there)) continue;
      repeatable = false;
      const bool apart = here->vmin > there->vmax || there->vmin > here->vmax;
      if (!apart && (other.is_store() || there != here)) frozen = true;
    }
  }
}

}  // namespace weft::optimize
