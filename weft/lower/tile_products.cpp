// Sums of products of words by tiles: a Reduce whose rows, columns and steps a matrix unit covers
// becomes products of whole tiles, and what is computed from its elements reads them out of memory
// of the item's own. Its columns are the lanes of a vector, its rows and steps ranges bound to
// Tile.
#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/loops.h"
#include "weft/lower/steps.h"
#include "weft/lower/vector_nodes.h"
#include "weft/rewrite/op_rules.h"
#include "weft/target/target.h"

namespace weft::lower {
namespace {

bool is_tiled(NodeRef n) { return n->op == Op::Range && range_binding(n) == Binding::Tile; }

class TileProducts : public OpStep {
 public:
  TileProducts(Graph& g, const NumberedOrder& order, const Target& target)
      : OpStep(g, order), target_(target) {}

  using Make = NodeRef (TileProducts::*)(NodeRef);

  NodeRef range(NodeRef n) { return is_tiled(n) ? as_loop(n) : kept(n); }
  NodeRef reduce(NodeRef n) {
    NodeRef sum = by_tiles(n);
    return sum ? sum : kept(n);
  }
  NodeRef other(NodeRef n) { return kept(n); }

 private:
  /// Where `range` is left after an index walks it by a number of elements; null where it walks it
  /// otherwise.
  NodeRef without(NodeRef index, NodeRef range, int64_t& stride) {
    Stride s{};
    if (!split_stride(g_, index, range, s)) return nullptr;
    stride = s.coefficient;
    return s.base;
  }

  NodeRef as_loop(NodeRef range) { return g_.range(range->src(0), range_id(range)); }

  NodeRef tile_of(NodeRef load, NodeRef index, int64_t stride, const MatrixUnit& unit) {
    const NodeRef src[] = {load->src(0), index, g_.index(stride)};
    const int64_t rows[] = {unit.tile};
    return g_.intern({Op::TileLoad, load->dtype, src, rows, {}, lanes(unit)});
  }
  static uint16_t lanes(const MatrixUnit& unit) {
    return static_cast<uint16_t>(unit.tile * unit.tile);
  }

  /// The tile range that this index walks beside `k`; null where there is none or several.
  static NodeRef rows_of(NodeRef index, NodeRef k) {
    NodeRef found = nullptr;
    for (NodeRef n : Toposort(index)) {
      if (!is_tiled(n) || n == k) continue;
      if (found) return nullptr;
      found = n;
    }
    return found;
  }

  /// Tiles that are summed over all ranges of `n` but the one inside of them.
  struct Sum {
    NodeRef tile = nullptr, rows = nullptr;
  };
  Sum summed(NodeRef n, NodeRef k, bool swapped) {
    NodeRef value = n->src(0), left = value->src(swapped ? 1 : 0), right = value->src(!swapped);
    const MatrixUnit* unit = target_.tile_unit(value->op, swapped);
    if (!unit || left->op != Op::Splat || right->op != Op::Load || right->nsrc != 2) return {};
    left = left->src(0);
    if (left->op != Op::Load || left->nsrc != 2) return {};
    NodeRef m = rows_of(left->src(1), k);
    if (!m || !fits(*unit, n->lanes, m, k)) return {};
    int64_t down = 0, along = 0, down_right = 0;
    NodeRef a = without(left->src(1), m, down), b = without(right->src(1), k, down_right);
    if (a) a = without(a, k, along);
    if (!a || !b || along != 1) return {};
    NodeRef zero = splat(g_, g_.constant(Value::of(unit->sum, 0)), lanes(*unit));
    const NodeRef operands[] = {tile_of(left, a, down, *unit), tile_of(right, b, down_right, *unit),
                                zero};
    NodeRef product = g_.intern({unit->op, unit->sum, operands, {}, {}, lanes(*unit)});
    return {reduced(n, k, product), m};
  }

  static bool fits(const MatrixUnit& unit, int64_t columns, NodeRef m, NodeRef k) {
    return columns == unit.tile && is_int_const(m->src(0), unit.tile) &&
           is_int_const(k->src(0), unit.tile);
  }

  NodeRef reduced(NodeRef n, NodeRef k, NodeRef product) {
    SmallVector<NodeRef, 4> src{product};
    for (NodeRef r : loop_parts(n).ranges)
      if (r != k) src.push_back(r);
    return src.size() == 1 ? product
                           : g_.intern({Op::Reduce, n->dtype, src, n->ints(), {}, product->lanes});
  }

  /// The sum's columns in the rows that the loop over them is in; null where it is none of tiles.
  NodeRef by_tiles(NodeRef n) {
    const LoopParts parts = loop_parts(n);
    const auto k = std::ranges::find_if(parts.ranges, is_tiled);
    if (k == parts.ranges.end() || !has_trait(n->src(0)->op, kWords)) return nullptr;
    Sum sum = summed(n, *k, false);
    if (!sum.tile) sum = summed(n, *k, true);
    if (!sum.tile) return nullptr;
    NodeRef at = g_.mul(as_loop(sum.rows), g_.index(n->lanes));
    const NodeRef src[] = {in_memory(sum.tile), at};
    return g_.intern({Op::Load, n->dtype, src, {}, {}, n->lanes});
  }

  /// Memory that holds the tile, after that was stored.
  NodeRef in_memory(NodeRef tile) {
    const NodeRef size[] = {g_.index(tile->lanes)};
    const int64_t id[] = {next_, 0}, barrier[] = {next_, 1, 1};
    ++next_;
    NodeRef memory = g_.intern({Op::Local, tile->dtype, size, id});
    const NodeRef to[] = {memory, g_.index(0), tile};
    const int64_t set[] = {static_cast<int64_t>(Fold::Set), 1};
    const NodeRef stored[] = {memory,
                              g_.intern({Op::Store, DType::Void, to, set, {}, tile->lanes})};
    return g_.intern({Op::Barrier, memory->dtype, stored, barrier});
  }

  const Target& target_;
  int64_t next_ = 0;  // memory and barriers: a tile has one of each
};

constexpr OpRule<TileProducts::Make> kRules[] = {
    on(Op::Range, "range.tiled", &TileProducts::range),
    on(Op::Reduce, "reduce.tiled", &TileProducts::reduce),
    otherwise("any.tiled", &TileProducts::other),
};
constexpr OpRules kTileRules("tile products",
                             "Lowering: sums over tile ranges are products of tiles, or loops.",
                             kRules);

}  // namespace

NodeRef tile_products(Graph& g, Analysis& of, const Target& target) {
  if (std::ranges::none_of(of.order().nodes(), is_tiled)) return of.sink();
  return TileProducts(g, of.order(), target).run(kTileRules);
}

RuleSetRow tile_rules() { return kTileRules.row(); }

}  // namespace weft::lower
