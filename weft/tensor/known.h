// Values that are at hand while graphs are built: positions and class numbers are checked by them.
#pragma once

#include <optional>
#include <utility>

#include "weft/tensor/tensor.h"

namespace weft {

/// An element of integers x that is not in [low, high) and not `exempt`, as text. Nothing where
/// there is none, and where x is not at hand: it has to be what some view shows of memory that the
/// host can read, and no function may be traced or captured, which replay with other values.
std::optional<std::string> known_outside(const Tensor& x, int64_t low, int64_t high,
                                         std::optional<int64_t> exempt = {});
/// Whether x is at hand, so that known_outside() has the last word on it.
bool is_known(const Tensor& x);
/// Whether integers x are at hand, and all in [0, n).
bool known_inside(const Tensor& x, int64_t n);
/// The least and the greatest of integers x, where it is at hand, has any, and they fit i64.
std::optional<std::pair<int64_t, int64_t>> known_bounds(const Tensor& x);
/// How many elements of a row along the last axis are above 0, counted up to `enough`, in the row
/// with the fewest, where x is at hand.
std::optional<int64_t> known_least_positive(const Tensor& x, int64_t enough);

/// An IndexError for a position along x's axis that is known to be outside of [-n, n).
void require_known_inside(const char* tag, const Tensor& positions, int64_t axis, const Tensor& x);

}  // namespace weft
