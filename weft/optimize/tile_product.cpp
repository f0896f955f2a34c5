#include "weft/optimize/tile_product.h"

#include <bit>

#include "weft/base/error.h"
#include "weft/optimize/cost.h"
#include "weft/optimize/tiling.h"

namespace weft::optimize {
namespace {

const Access* access_of(const KernelInfo& info, NodeRef load) {
  for (const Access& a : info.accesses)
    if (a.node == load && a.masked == 0 && a.opaque == 0 && load->nsrc == 2) return &a;
  return nullptr;
}

bool is_zero(NodeRef n) { return n->op == Op::Const && const_value(n).raw_bits() == 0; }

/// A parallel range that `in` walks by `stride` (0: by any), and `other` not at all; the one of the
/// shortest steps. As many as there are ranges where there is none.
size_t walked_by(const KernelInfo& info, const Access& in, const Access& other, int64_t stride) {
  size_t best = info.ranges.size();
  for (size_t r = 0; r < info.ranges.size(); ++r) {
    const bool walks = info.ranges[r].parallel && in.stride[r] > 0 && (other.deps & bit(r)) == 0 &&
                       (stride == 0 || in.stride[r] == stride);
    if (walks && (best == info.ranges.size() || in.stride[r] < in.stride[best])) best = r;
  }
  return best;
}

class TileSearch {
 public:
  TileSearch(const KernelInfo& info, const MatrixUnit& unit, size_t k)
      : info_(info), unit_(unit), k_(k) {}

  std::optional<TileProduct> run(const Access& rows, const Access& columns) const {
    if (rows.stride[k_] != 1 || columns.stride[k_] <= 0) return std::nullopt;
    const size_t none = info_.ranges.size();
    const size_t m = walked_by(info_, rows, columns, 0), n = walked_by(info_, columns, rows, 1);
    if (m == none || n == none || !cuts(m, 1) || !cuts(n, 1)) return std::nullopt;
    TileProduct p{m, n, k_, n, unit_.tile, tiles_together(unit_)};
    // Columns that lie in blocks of a tile's width have their blocks walked by another range.
    if (info_.ranges[n].extent == unit_.tile) p.around_n = next_block(columns, rows);
    if (p.around_n == none) p.around_n = n;
    const int64_t width = info_.ranges[n].extent;
    p.all_columns = p.around_n == n && width < p.tile * p.each && width > p.tile * (p.each - 1);
    if (!cuts(m, p.each) || (!p.all_columns && !cuts_around(p))) p.each = 1, p.all_columns = false;
    return p;
  }

 private:
  bool cuts(size_t r, int64_t tiles) const {
    return cut_of(info_, r, unit_.tile * tiles) != Cut::No;
  }
  bool cuts_around(const TileProduct& p) const {
    return cut_of(info_, p.around_n, p.each * (p.around_n == p.n ? p.tile : 1)) != Cut::No;
  }

  size_t next_block(const Access& columns, const Access& rows) const {
    size_t best = info_.ranges.size();
    for (size_t r = 0; r < info_.ranges.size(); ++r)
      if (columns.stride[r] > 1 && info_.ranges[r].parallel && (rows.deps & bit(r)) == 0 &&
          (best == info_.ranges.size() || columns.stride[r] < columns.stride[best]))
        best = r;
    return best;
  }

  const KernelInfo& info_;
  const MatrixUnit& unit_;
  const size_t k_;
};

LoopNest::Axis cut(LoopNest& nest, const KernelInfo& info, size_t range, int64_t size) {
  const Tail tail = cut_of(info, range, size) == Cut::Exact ? Tail::Exact : Tail::Overlap;
  return nest.split(range, size, tail).inner;
}

}  // namespace

std::optional<TileProduct> find_tile_product(const KernelInfo& info, const Target& target) {
  if (info.reduces.size() != 1 || info.has_loops) return std::nullopt;
  NodeRef sum = info.reduces[0], value = sum->src(0);
  const RangeMask own = info.reduced_by(sum);
  if (fold_of(sum) != Fold::Add || !has_trait(value->op, kWords) || !is_zero(value->src(2)) ||
      own == 0)
    return std::nullopt;
  for (const RangeInfo& r : info.ranges)
    if (!r.free() || !r.constant) return std::nullopt;
  for (const bool swapped : {false, true}) {
    const MatrixUnit* unit = target.tile_unit(value->op, swapped);
    const Access *rows = access_of(info, value->src(swapped ? 1 : 0)),
                 *columns = access_of(info, value->src(swapped ? 0 : 1));
    if (!unit || !rows || !columns) continue;
    for (size_t k = 0; k < info.ranges.size(); ++k) {
      if (!(own & bit(k)) || info.ranges[k].extent % unit->tile != 0) continue;
      if (const auto found = TileSearch(info, *unit, k).run(*rows, *columns)) return found;
    }
  }
  return std::nullopt;
}

void cut_tiles(LoopNest& nest, const KernelInfo& info, const TileProduct& p) {
  const LoopNest::Axis rows = cut(nest, info, p.m, p.tile * p.each);
  const LoopNest::Parts each_row = nest.split(rows, p.tile, Tail::Exact);
  nest.bind(each_row.outer, Binding::Unroll);
  if (p.all_columns) {
    const LoopNest::Parts columns = nest.split(p.n, p.tile, Tail::Overlap);
    nest.bind(columns.outer, Binding::Unroll);
    nest.bind(columns.inner, Binding::Vector);
  } else if (p.around_n == p.n) {
    const LoopNest::Axis columns = cut(nest, info, p.n, p.tile * p.each);
    const LoopNest::Parts each_column = nest.vectorise(columns, p.tile, Tail::Exact);
    nest.bind(each_column.outer, Binding::Unroll);
  } else {
    nest.bind(cut(nest, info, p.around_n, p.each), Binding::Unroll);
    nest.bind(p.n, Binding::Vector);
  }
  nest.bind(each_row.inner, Binding::Tile);
  nest.bind(cut(nest, info, p.k, p.tile), Binding::Tile);
}

}  // namespace weft::optimize
