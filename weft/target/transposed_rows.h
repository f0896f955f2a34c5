// How many columns of rows may be transposed in registers, for who plans it and who does it.
#pragma once
#include <algorithm>

#include "weft/target/target.h"

namespace weft {

// Of registers: pieces of rows are no shorter, so that one joins at most four; and no more of them
// wait for the others.
constexpr int kLeastPieceBits = 128;
constexpr int64_t kMostColumns = 16;
// Vectors whose elements go into memory in turns: each of as many stores takes one permutation less
// than there are vectors.
constexpr int64_t kMostInterleaved = 4;

/// Whether vectors of so many lanes down the columns of rows are worth loading the rows for: whole
/// registers, of bytes and halves also parts of one, as they lie beside wider numbers. Bools are
/// moved as bytes.
inline bool turns_rows(const Target& target, DType dtype, int64_t lanes) {
  if (!target.permutes_pairs(is_bool(dtype) ? DType::U8 : dtype)) return false;
  return bits(dtype) >= 32 ? lanes == target.lanes(dtype) : lanes * bits(dtype) >= kLeastPieceBits;
}

/// Columns side by side that are worth it, and that are transposed together.
inline int64_t fewest_columns(DType dtype) { return kLeastPieceBits / bits(dtype); }
inline int64_t most_columns(int64_t lanes) { return std::min(lanes, kMostColumns); }

}  // namespace weft
