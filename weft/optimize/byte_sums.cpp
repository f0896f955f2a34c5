#include "weft/optimize/byte_sums.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "weft/dtype/dtype.h"
#include "weft/target/target.h"

namespace weft::optimize {
namespace {

// Beside sums of so many rows there are registers for the words of a part, before and after they
// are taken apart.
constexpr int64_t kRows = 8;
// Where words lie in memory as vectors of columns, two of these by so many rows have a register for
// each sum and for each part's, and load less often than they multiply.
constexpr int64_t kRowsOfVectors = 6;
constexpr int kRegisters = 32;
// Six sums side by side are summed in another order than fewer are (kEnoughAccumulators of
// lower/unroll.cpp), and words that are scaled one by one have no other that is kept.
constexpr int64_t kRowsOfWords = 5;
constexpr int64_t kMostWords = 16;  // of a part
constexpr int64_t kCopies = 4;      // of vectors of words

/// Ranges along which packed words lie: those of the left operands.
RangeMask packed_ranges(const KernelInfo& info) {
  RangeMask all = 0;
  for (NodeRef n : info.order)
    if (n->op == Op::Dot4) all |= info.deps(n->src(0));
  return all;
}

/// As few tiles as there can be, of about as many rows each.
int64_t rows_of_tile(int64_t rows, int64_t most) {
  const int64_t tiles = (rows + most - 1) / most;
  return (rows + tiles - 1) / tiles;
}

/// Whether words lie side by side along it.
bool is_side_by_side(const KernelInfo& info, size_t r) {
  return std::ranges::any_of(info.accesses, [&](const Access& a) {
    return !a.is_store() && a.node->dtype == DType::U32 && (a.opaque & bit(r)) == 0 &&
           a.stride[r] == a.unit();
  });
}

/// The range of the columns: the one along which packed words were put side by side, else the
/// longest that bytes are read along.
size_t columns_of(const KernelInfo& info, RangeMask packed, int64_t lanes) {
  size_t best = info.ranges.size();
  each(packed, [&](size_t r) {
    if (!info.ranges[r].parallel || cut_of(info, r, lanes) == Cut::No) return;
    const auto value = [&](size_t range) {
      return std::pair(is_side_by_side(info, range), info.ranges[range].extent);
    };
    if (best == info.ranges.size() || value(r) > value(best)) best = r;
  });
  return best;
}

}  // namespace

bool scales_sums(const KernelInfo& info) {
  return std::ranges::any_of(info.reduces, [](NodeRef n) { return is_float(n->dtype); }) &&
         std::ranges::any_of(info.order, [](NodeRef n) { return n->op == Op::Dot4; });
}

RangeMask scaled_words(const KernelInfo& info, int64_t lanes) {
  const auto is_float_sum = [](NodeRef n) { return is_float(n->dtype); };
  if (!scales_sums(info) || !std::ranges::all_of(info.reduces, is_float_sum)) return 0;
  RangeMask all = 0;
  each(packed_ranges(info), [&](size_t r) {
    const RangeInfo& range = info.ranges[r];
    if (!range.parallel && range.constant && range.extent % lanes == 0) all |= bit(r);
  });
  return all;
}

namespace {

/// Tiles of rows, innermost: they share what is decoded.
void cut_rows(const KernelInfo& info, RangeMask packed, int64_t most, ByteSums& out) {
  for (size_t r = 0; r < info.ranges.size(); ++r) {
    const RangeInfo& range = info.ranges[r];
    if (!range.parallel || (packed & bit(r)) != 0) continue;
    const int64_t rows = rows_of_tile(range.extent, most);
    if (cut_of(info, r, rows) == Cut::No) continue;
    out.tiling.set(r, 1, rows);
    out.innermost = static_cast<int>(r);
  }
}

/// Lanes along words, with copies of as much as lies side by side around them.
void cut_words(const KernelInfo& info, RangeMask words, int64_t lanes, ByteSums& out) {
  const auto vector = static_cast<size_t>(std::bit_width(words)) - 1;
  out.tiling.set(vector, lanes, 1);
  int64_t copies = kCopies;
  for (size_t r = vector; r-- > 0;) {
    const RangeInfo& range = info.ranges[r];
    if (range.parallel || !range.constant || range.extent > copies) return;
    out.tiling.set(r, 1, range.extent);
    copies /= range.extent;
  }
}

/// Lanes along columns: what a part sums stays in its lane. The range of them; none where a part is
/// long, or where no range can be cut so.
std::optional<size_t> cut_columns(const KernelInfo& info, RangeMask packed, int64_t lanes,
                                  ByteSums& out) {
  for (NodeRef n : info.reduces) {
    if (is_float(n->dtype)) continue;
    bool few = true;
    each(info.reduced_by(n), [&](size_t r) {
      few = few && info.ranges[r].constant && info.ranges[r].extent <= kMostWords;
      out.tiling.set(r, 1, info.ranges[r].extent);
    });
    if (!few) return std::nullopt;
  }
  const size_t columns = columns_of(info, packed, lanes);
  if (columns == info.ranges.size()) return std::nullopt;
  out.tiling.set(columns, lanes, 1);
  return columns;
}

/// Two vectors of columns at a time.
void cut_vectors(const KernelInfo& info, RangeMask packed, size_t columns, ByteSums& out) {
  each(packed, [&](size_t r) {
    if (r != columns && info.ranges[r].parallel && cut_of(info, r, 2) != Cut::No)
      out.tiling.set(r, 1, 2);
  });
}

}  // namespace

std::optional<ByteSums> tile_byte_sums(const KernelInfo& info, const Target& target) {
  const int64_t lanes = target.lanes(DType::F32);
  if (target.canonical || lanes == 1 || !scales_sums(info)) return std::nullopt;
  ByteSums out;
  out.tiling.ranges.resize(info.ranges.size(), Tiling::Of{});
  const RangeMask packed = packed_ranges(info);
  if (const RangeMask words = scaled_words(info, lanes); words != 0) {
    cut_words(info, words, lanes, out);
    cut_rows(info, packed, kRowsOfWords, out);
    return out;
  }
  const auto columns = cut_columns(info, packed, lanes, out);
  if (!columns) return std::nullopt;
  const bool vectors = is_side_by_side(info, *columns),
             many = target.vector_registers >= kRegisters;
  if (!vectors && !target.permutes_pairs(DType::U32)) return std::nullopt;
  if (vectors && many) cut_vectors(info, packed, *columns, out);
  cut_rows(info, packed, !vectors ? kRows : many ? kRowsOfVectors : kRowsOfVectors / 2, out);
  return out;
}

}  // namespace weft::optimize
