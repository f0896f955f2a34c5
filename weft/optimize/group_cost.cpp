#include "weft/optimize/group_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace weft::optimize {
namespace {

// In multiply-adds of one item; only ratios matter.
constexpr double kLocalRead = 1;      // a word of local memory, in every item
constexpr double kStaged = 8;         // an element copied there from global memory, by one item
constexpr double kAcrossBarrier = 2;  // of emulated groups: an accumulator stored and loaded
constexpr double kBarriers = 40;      // the two around a block, and what waiting costs; or the one
constexpr double kFewGroups = 16;     // so many keep a small machine busy,
constexpr double kItemsOfGroup = 4096;     // larger ones one for so many items that do it alone
constexpr int64_t kMostAccumulators = 64;  // of one item, in registers
constexpr int64_t kMinProducts = 64 * 64;  // below, a product is no work for groups
constexpr int64_t kMostItems = 256;        // of a group that folds: more only lengthen its tree
constexpr int64_t kElementsEach = 4;       // that an item folds before the group does

constexpr int64_t kSides[] = {16, 32, 64, 128};
constexpr int64_t kDepths[] = {8, 16, 32};
constexpr int64_t kEach[] = {1, 2, 4, 8, 16};
constexpr int64_t kBuffers[] = {1, 2};

// Emulated items become lanes where they lie in one row, neighbours compute neighbours, and their
// code has no loop between barriers nor buffers that change: measured on PoCL,
// docs/measurements.md.
bool becomes_lanes(const ProductTile& t) {
  return t.columns_each == 1 && t.rows == t.rows_each && t.buffers == 1 &&
         t.rows_each * t.depth <= kMostSpeltOut;
}

bool fits(const ProductTile& t, int64_t bytes, const WorkGroups& groups) {
  return (!groups.emulated || becomes_lanes(t)) && t.items() <= groups.items &&
         t.items() >= groups.wave && t.columns / t.columns_each <= groups.most_items[0] &&
         t.rows / t.rows_each <= groups.most_items[1] &&
         t.rows_each * t.columns_each <= kMostAccumulators &&
         t.local_bytes(bytes) <= groups.local_bytes;
}

double ceil_div(int64_t a, int64_t b) { return static_cast<double>((a + b - 1) / b); }

double cost(const ProductTile& t, const ProductSize& p, const WorkGroups& groups,
            double enough_groups) {
  const double tiles = p.around * ceil_div(p.m, t.rows) * ceil_div(p.n, t.columns);
  const auto mine = static_cast<double>(t.rows_each * t.columns_each),
             reads = static_cast<double>(t.rows_each + t.columns_each),
             depth = static_cast<double>(t.depth), items = static_cast<double>(t.items()),
             buffers = static_cast<double>(t.buffers),
             copied = static_cast<double>(t.rows + t.columns) * depth / items;
  const double block = depth * (mine + kLocalRead * reads) + kStaged * copied +
                       kBarriers / buffers + (groups.emulated ? kAcrossBarrier * mine : 0);
  const double waves = std::max(1.0, enough_groups / tiles);  // groups that have nothing to do
  return tiles * ceil_div(p.k, t.depth) * block * items * waves;
}

}  // namespace

ProductTile choose_product_tile(const ProductSize& product, const WorkGroups& groups,
                                int64_t enough_items) {
  ProductTile best;
  if (product.m * product.n < kMinProducts) return best;
  const double enough_groups =
      std::max(kFewGroups, static_cast<double>(enough_items) / kItemsOfGroup);
  double least = INFINITY;
  for (int64_t rows : kSides)
    for (int64_t columns : kSides)
      for (int64_t depth : kDepths)
        for (int64_t rows_each : kEach)
          for (int64_t columns_each : kEach)
            for (int64_t buffers : kBuffers) {
              const ProductTile t{rows, columns, depth, rows_each, columns_each, buffers};
              if (!fits(t, product.bytes, groups)) continue;
              const double c = cost(t, product, groups, enough_groups);
              if (c >= least) continue;
              least = c;
              best = t;
            }
  return best;
}

int64_t choose_fold_items(int64_t elements, const WorkGroups& groups) {
  const int64_t wanted = std::max(groups.wave, elements / kElementsEach);
  const int64_t most = std::min({kMostItems, groups.items, groups.most_items[0]});
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::min(wanted, most))));
}

}  // namespace weft::optimize
