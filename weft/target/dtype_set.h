// DTypeSet: dtypes of which something is true, one bit each.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "weft/dtype/dtype.h"

namespace weft {

using DTypeSet = uint32_t;
constexpr DTypeSet dtype_bit(DType d) { return DTypeSet{1} << static_cast<int>(d); }
constexpr DTypeSet dtype_set(std::initializer_list<DType> list) {
  DTypeSet set = 0;
  for (DType d : list) set |= dtype_bit(d);
  return set;
}

}  // namespace weft
