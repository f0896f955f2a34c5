// The cost model of work groups: what tiles of products and folded rows cost on a machine whose
// items share local memory.
#pragma once
#include <cstdint>

#include "weft/target/work_groups.h"

namespace weft::optimize {

/// A tile of a product that the items of a group compute together, from blocks of `depth` of both
/// operands, which they stage; each item has a part of `rows_each` by `columns_each` in registers.
struct ProductTile {
  int64_t rows = 1, columns = 1, depth = 1;
  int64_t rows_each = 1, columns_each = 1;
  int64_t buffers = 1;  ///< of each operand's blocks: with two, items wait once a block
  int64_t items() const { return rows / rows_each * (columns / columns_each); }
  int64_t local_bytes(int64_t element) const {
    return (rows + columns) * (depth + 1) * element * buffers;
  }
};
/// `around` products [m, k] by [k, n] of elements of so many bytes.
struct ProductSize {
  int64_t m, n, k, bytes;
  double around = 1;
};
/// The best tile; one of one item where groups do not pay. `enough_items` is the target's.
ProductTile choose_product_tile(const ProductSize& product, const WorkGroups& groups,
                                int64_t enough_items);

/// Items of a group that folds rows of so many elements; under 2 where groups do not pay.
int64_t choose_fold_items(int64_t elements, const WorkGroups& groups);

constexpr int64_t kShortRow = 32;  ///< with fewer elements, one item folds a row itself
constexpr int64_t kMostSpeltOut =
    256;                             ///< multiply-adds of a block that one item's code spells out
constexpr int64_t kMostRounds = 16;  ///< and rounds of a row

}  // namespace weft::optimize
