#include "weft/optimize/byte_sums.h"

#include <algorithm>

#include "weft/dtype/dtype.h"
#include "weft/target/target.h"

namespace weft::optimize {
namespace {

// Beside sums of so many rows there are registers for the words of a part, before and after they
// are taken apart.
constexpr int64_t kRows = 8;
constexpr int64_t kMostWords = 16;  // of a part

/// Ranges along which packed words lie: those of the left operands.
RangeMask packed_ranges(const KernelInfo& info) {
  RangeMask all = 0;
  for (NodeRef n : info.order)
    if (n->op == Op::Dot4) all |= info.deps(n->src(0));
  return all;
}

/// As few tiles as there can be, of about as many rows each.
int64_t rows_of_tile(int64_t rows) {
  const int64_t tiles = (rows + kRows - 1) / kRows;
  return (rows + tiles - 1) / tiles;
}

/// The range of the columns: the longest that bytes are read along.
size_t columns_of(const KernelInfo& info, RangeMask packed, int64_t lanes) {
  size_t best = info.ranges.size();
  each(packed, [&](size_t r) {
    if (!info.ranges[r].parallel || cut_of(info, r, lanes) == Cut::No) return;
    if (best == info.ranges.size() || info.ranges[r].extent > info.ranges[best].extent) best = r;
  });
  return best;
}

}  // namespace

bool scales_sums(const KernelInfo& info) {
  return std::ranges::any_of(info.reduces, [](NodeRef n) { return is_float(n->dtype); }) &&
         std::ranges::any_of(info.order, [](NodeRef n) { return n->op == Op::Dot4; });
}

std::optional<ByteSums> tile_byte_sums(const KernelInfo& info, const Target& target) {
  if (target.canonical || !target.permutes_pairs(DType::U32) || !scales_sums(info))
    return std::nullopt;
  ByteSums out;
  out.tiling.ranges.resize(info.ranges.size(), Tiling::Of{});
  for (NodeRef n : info.reduces) {
    if (is_float(n->dtype)) continue;
    bool few = true;
    each(info.reduced_by(n), [&](size_t r) {
      few = few && info.ranges[r].constant && info.ranges[r].extent <= kMostWords;
      out.tiling.set(r, 1, info.ranges[r].extent);
    });
    if (!few) return std::nullopt;
  }
  const RangeMask packed = packed_ranges(info);
  const int64_t lanes = target.lanes(DType::F32);
  const size_t columns = columns_of(info, packed, lanes);
  if (columns == info.ranges.size()) return std::nullopt;
  out.tiling.set(columns, lanes, 1);
  for (size_t r = 0; r < info.ranges.size(); ++r) {
    const RangeInfo& range = info.ranges[r];
    if (!range.parallel || (packed & bit(r)) != 0) continue;
    const int64_t rows = rows_of_tile(range.extent);
    if (cut_of(info, r, rows) == Cut::No) continue;
    out.tiling.set(r, 1, rows);
    out.innermost = static_cast<int>(r);
  }
  return out;
}

}  // namespace weft::optimize
