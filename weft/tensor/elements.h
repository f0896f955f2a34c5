// C++ numbers as elements of tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "weft/base/call_site.h"
#include "weft/dtype/dtype.h"
#include "weft/tensor/dim.h"

namespace weft {

/// The dtype whose elements are the bytes of a T.
template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_arithmetic_v<T>, "elements are C++ numbers");
  if constexpr (std::is_same_v<T, bool>) return DType::Bool;
  if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::F32 : DType::F64;
  constexpr DType kSigned[] = {DType::I8, DType::I16, DType::I32, DType::I64};
  constexpr DType kUnsigned[] = {DType::U8, DType::U16, DType::U32, DType::U64};
  constexpr int log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
  return std::is_signed_v<T> ? kSigned[log2] : kUnsigned[log2];
}

/// An Error unless the row has the length of the first one.
void check_row_length(size_t row, size_t length, size_t first, CallSite at);

/// (rows, length of the first one).
Dims rows_shape(const auto& rows) {
  return {rows.size(), rows.size() == 0 ? 0 : rows.begin()->size()};
}

/// The rows one after another; an Error where they are of several lengths.
template <class T>
std::vector<T> joined_rows(const auto& rows, CallSite at) {
  std::vector<T> all;
  size_t row = 0;
  for (const auto& r : rows) {
    check_row_length(row++, r.size(), rows.begin()->size(), at);
    all.insert(all.end(), r.begin(), r.end());
  }
  return all;
}

}  // namespace weft
