#include "weft/optimize/groups.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "weft/base/error.h"
#include "weft/graph/fold.h"
#include "weft/graph/index_algebra.h"

namespace weft::optimize {
namespace {

int64_t element_bits(DType dtype, const WorkGroups& groups) {
  return std::max<int64_t>(bits(dtype), groups.least_local_bits);
}

bool one_at_a_time(const KernelInfo& info) {
  return info.has_loops ||
         std::ranges::any_of(info.ranges, [](const RangeInfo& r) { return !r.free(); });
}

size_t longest(const KernelInfo& info, RangeMask ranges) {
  size_t best = static_cast<size_t>(std::countr_zero(ranges));
  for (RangeMask m = ranges; m != 0; m &= m - 1) {
    const auto r = static_cast<size_t>(std::countr_zero(m));
    if (info.ranges[r].extent > info.ranges[best].extent) best = r;
  }
  return best;
}

/// Of these ranges, the one whose neighbours are neighbours in what `n` reads; else the longest.
size_t contiguous(const KernelInfo& info, NodeRef n, RangeMask ranges) {
  for (const Access& a : info.accesses) {
    if (a.is_store()) continue;
    const Toposort inside(n);
    if (std::ranges::find(inside.nodes(), a.node) == inside.nodes().end()) continue;
    for (RangeMask m = ranges & a.deps; m != 0; m &= m - 1)
      if (const auto r = static_cast<size_t>(std::countr_zero(m)); std::abs(a.stride[r]) == 1)
        return r;
  }
  return longest(info, ranges);
}

// ---- rows

/// The reduction range along which neighbours in a load are neighbours in memory, when no parallel
/// range has that; -1 where there is none.
int row_of(const KernelInfo& info, NodeRef reduce) {
  const RangeMask own = info.reduced_by(reduce);
  const Toposort inside(reduce);
  int found = -1;
  for (const Access& a : info.accesses) {
    if (a.is_store() || (a.deps & own) == 0) continue;
    if (std::ranges::find(inside.nodes(), a.node) == inside.nodes().end()) continue;
    for (size_t r = 0; r < info.ranges.size(); ++r) {
      if ((a.deps & bit(r)) == 0 || std::abs(a.stride[r]) != 1) continue;
      if (info.ranges[r].parallel) return -1;
      if ((own & bit(r)) != 0) found = static_cast<int>(r);
    }
  }
  return found >= 0 && info.ranges[static_cast<size_t>(found)].extent >= kShortRow ? found : -1;
}

/// The parallel range of each store that goes along the row, as no reduction does. False where one
/// does in another way than element by element.
bool find_columns(const KernelInfo& info, GroupPlan& plan) {
  for (const Access& a : info.accesses) {
    if (!a.is_store()) continue;
    const RangeMask along = a.deps & ~info.common;
    if (along == 0) continue;
    const size_t c = longest(info, along);
    if (a.stride[c] != 1 || info.ranges[c].extent < kShortRow) return false;
    if (std::ranges::find(plan.columns, c) == plan.columns.end()) plan.columns.push_back(c);
  }
  return true;
}

bool meet(const KernelInfo& info, RangeMask ranges) {
  return std::ranges::any_of(info.order, [&](NodeRef n) {
    return n->op != Op::Sink && std::popcount(info.deps(n) & ranges) > 1;
  });
}

GroupPlan fold_plan(const KernelInfo& info, const WorkGroups& groups) {
  GroupPlan plan;
  RangeMask chosen = 0;
  int64_t shortest = INT64_MAX;
  for (NodeRef n : info.reduces) {
    const int row = row_of(info, n);
    if (row < 0 || is_float8(n->dtype)) return {};
    const auto r = static_cast<size_t>(row);
    if (std::ranges::find(plan.folded, r) == plan.folded.end()) plan.folded.push_back(r);
    chosen |= bit(r);
    shortest = std::min(shortest, info.ranges[r].extent);
  }
  if (plan.folded.empty() || !find_columns(info, plan)) return {};
  for (size_t c : plan.columns) chosen |= bit(c);
  if (meet(info, chosen)) return {};
  plan.items = choose_fold_items(shortest, groups);
  if (plan.items < 2) return {};
  plan.kind = GroupPlan::Kind::Fold;
  return plan;
}

}  // namespace

std::optional<Product> find_product(const KernelInfo& info) {
  if (info.reduces.size() != 1) return std::nullopt;
  NodeRef n = info.reduces[0], value = n->src(0);
  if (fold_of(n) != Fold::Add || value->op != Op::Mul || is_float8(n->dtype)) return std::nullopt;
  NodeRef left = value->src(0), right = value->src(1);
  const RangeMask own = info.reduced_by(n), both = info.deps(left) & info.deps(right) & own;
  const RangeMask rows = info.deps(left) & ~info.deps(right) & ~own & info.common;
  const RangeMask columns = info.deps(right) & ~info.deps(left) & ~own & info.common;
  if (both == 0 || rows == 0 || columns == 0) return std::nullopt;
  // Neighbours of a group are neighbours in what is stored.
  for (const Access& a : info.accesses)
    if (a.is_store())
      for (RangeMask m = rows; m != 0; m &= m - 1)
        if (a.stride[static_cast<size_t>(std::countr_zero(m))] == 1)
          return Product{n,
                         right,
                         left,
                         contiguous(info, right, columns),
                         contiguous(info, left, rows),
                         contiguous(info, left, both)};
  return Product{n,
                 left,
                 right,
                 longest(info, rows),
                 contiguous(info, right, columns),
                 contiguous(info, left, both)};
}

GroupPlan choose_groups(const KernelInfo& info, const Target& target) {
  if (!target.groups.exist() || !target.groups.local_is_near) return {};
  if (target.canonical || one_at_a_time(info)) return {};
  if (const auto product = find_product(info)) {
    const auto extent = [&](size_t r) { return info.ranges[r].extent; };
    ProductSize size{extent(product->m), extent(product->n), extent(product->k),
                     element_bits(product->reduce->dtype, target.groups) / 8};
    for (size_t r = 0; r < info.ranges.size(); ++r)
      if (info.ranges[r].parallel && r != product->m && r != product->n)
        size.around *= static_cast<double>(extent(r));
    const ProductTile tile = choose_product_tile(size, target.groups, target.enough_items);
    if (tile.items() > 1) return {GroupPlan::Kind::Tile, tile};
  }
  // Emulated, a group is one thread's work: its items fold a row no faster than one item does.
  return target.groups.emulated ? GroupPlan() : fold_plan(info, target.groups);
}

NodeRef pad_reduction(Graph& g, const KernelInfo& info, size_t range, int64_t multiple,
                      const Product* product) {
  NodeRef whole = info.ranges[range].node, size = whole->src(0);
  if (divisor_of(size) % multiple == 0) return info.sink;
  NodeRef blocks = g.idiv(g.add(size, g.index(multiple - 1)), g.index(multiple));
  NodeRef longer = g.range(g.mul(blocks, g.index(multiple)), range_id(whole));
  NodeRef inside = g.lt(longer, size);
  const auto masked = [&](NodeRef value, Value outside) {
    return g.where(inside, value, g.constant(outside));
  };
  NodeMap<NodeRef> done(info.order.size());
  for (NodeRef n : info.order) {
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src()) src.push_back(done.at(s));
    if (n == whole) {
      done.set(n, longer);
      continue;
    }
    if (n->op == Op::Load && (info.deps(n) & bit(range)) != 0) {
      if (src.size() > 2)
        src[2] = g.logical_and(src[2], inside);
      else
        src.push_back(inside);
    }
    if (n->op == Op::Reduce && (info.reduced_by(n) & bit(range)) != 0 && !product)
      src[0] = masked(src[0], fold_identity(fold_of(n), n->dtype));
    if (product && n == product->reduce)
      src[0] = g.mul(masked(done.at(product->left), Value::of(n->dtype, 0)),
                     masked(done.at(product->right), Value::of(n->dtype, 0)));
    done.set(n, g.with_sources(n, src));
  }
  return done.at(info.sink);
}

bool bind_grid(LoopNest& nest, std::vector<LoopNest::Axis> loops, const WorkGroups& groups) {
  constexpr size_t kAxes = 3;
  while (loops.size() > kAxes) {
    loops[1] = nest.fuse(loops[0], loops[1]);
    loops.erase(loops.begin());
  }
  size_t axis = 0;
  for (size_t i = loops.size(); i-- > 0; ++axis) {
    LoopNest::Axis loop = loops[i];
    for (; axis < kAxes && nest.extent(loop) > groups.most_groups[axis]; ++axis) {
      const LoopNest::Parts parts = nest.split(loop, groups.most_groups[axis], Tail::Mask);
      nest.bind(parts.inner, Binding::Grid, axis);
      loop = parts.outer;
    }
    if (axis + i >= kAxes) return false;
    nest.bind(loop, Binding::Grid, axis);
  }
  return true;
}

namespace {

/// Parallel loops that every reduction needs, and no group shares.
std::vector<LoopNest::Axis> outer_loops(const LoopNest& nest, const KernelInfo& info) {
  std::vector<LoopNest::Axis> loops;
  for (LoopNest::Axis a : nest.loops()) {
    const RangeMask parts = nest.parts_of(a);
    bool parallel = nest.binding(a) == Binding::Loop && (parts & ~info.common) == 0;
    for (RangeMask m = parts; m != 0; m &= m - 1)
      parallel = parallel && info.ranges[static_cast<size_t>(std::countr_zero(m))].parallel;
    if (parallel) loops.push_back(a);
  }
  return loops;
}

/// A range in tiles: a loop over them, and of each what one item computes, in steps of the items
/// along an axis, so that neighbours of the group are neighbours in memory.
struct Tiled {
  LoopNest::Axis tiles, each, items;
};
Tiled tile_range(LoopNest& nest, size_t range, int64_t size, int64_t each, size_t axis) {
  const LoopNest::Parts outer = nest.split(range, size, Tail::Mask);
  const LoopNest::Parts inner = nest.split(outer.inner, size / each, Tail::Exact);
  nest.bind(inner.outer, Binding::Unroll);
  nest.bind(inner.inner, Binding::Group, axis);
  return {outer.outer, inner.outer, inner.inner};
}

/// Whether k steps through memory by one in what `operand` reads.
bool runs_along(const KernelInfo& info, NodeRef operand, size_t range) {
  return contiguous(info, operand, bit(range) | info.deps(operand)) == range;
}

void stage_operand(LoopNest& nest, const KernelInfo& info, NodeRef operand, const Tiled& rows,
                   size_t k, LoopNest::Axis block, const WorkGroups& groups, int64_t buffers) {
  const int64_t depth = nest.extent(block), items = nest.extent(rows.items),
                size = nest.extent(rows.each) * items;
  if (!runs_along(info, operand, k))
    return nest.stage(operand, {block, rows.each, rows.items}, {size, items, 1}, buffers);
  // Neighbours of the group read rows: an odd number of words apart, they are in different banks.
  const bool collides = std::gcd(depth, groups.banks) > 1;
  const int64_t row = depth + collides;
  nest.stage(operand, {rows.each, rows.items, block}, {row * items, row, 1}, buffers);
}

void bind_tile(LoopNest& nest, const KernelInfo& info, const ProductTile& tile,
               const WorkGroups& groups) {
  const std::optional<Product> p = find_product(info);
  WEFT_CHECK(p, "a product is none any more");
  const Tiled rows = tile_range(nest, p->m, tile.rows, tile.rows_each, 1);
  const Tiled columns = tile_range(nest, p->n, tile.columns, tile.columns_each, 0);
  const LoopNest::Parts depth = nest.split(p->k, tile.depth, Tail::Exact);
  if (tile.depth * tile.rows_each * tile.columns_each <= kMostSpeltOut)
    nest.bind(depth.inner, Binding::Unroll);
  else
    nest.move_after(depth.inner, nest.loops().back());
  std::vector<LoopNest::Axis> loops = outer_loops(nest, info);
  std::erase(loops, rows.tiles);
  std::erase(loops, columns.tiles);
  loops.insert(loops.end(), {rows.tiles, columns.tiles});
  WEFT_CHECK(bind_grid(nest, std::move(loops), groups), "a kernel larger than the grid");
  stage_operand(nest, info, p->left, rows, p->k, depth.inner, groups, tile.buffers);
  stage_operand(nest, info, p->right, columns, p->k, depth.inner, groups, tile.buffers);
}

void bind_fold(LoopNest& nest, const KernelInfo& info, const GroupPlan& plan,
               const WorkGroups& groups) {
  const auto share = [&](size_t r, Tail tail) {
    const LoopNest::Parts parts = nest.split(r, plan.items, tail);
    nest.bind(parts.inner, Binding::Group);
    const bool constant = nest.size(parts.outer)->op == Op::Const;
    if (constant && nest.extent(parts.outer) <= kMostRounds)
      nest.bind(parts.outer, Binding::Unroll);
  };
  for (size_t r : plan.folded) share(r, Tail::Exact);
  for (size_t c : plan.columns) share(c, Tail::Mask);
  WEFT_CHECK(bind_grid(nest, outer_loops(nest, info), groups), "a kernel larger than the grid");
}

}  // namespace

void bind_groups(LoopNest& nest, const KernelInfo& info, const GroupPlan& plan,
                 const WorkGroups& groups) {
  if (plan.kind == GroupPlan::Kind::Tile) return bind_tile(nest, info, plan.tile, groups);
  if (plan.kind == GroupPlan::Kind::Fold) return bind_fold(nest, info, plan, groups);
}

}  // namespace weft::optimize
