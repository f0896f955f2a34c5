#include "weft/lower/range_deps.h"

namespace weft::lower {

RangeSet RangeDeps::bound_to(Binding binding) const {
  RangeSet set;
  for (size_t i = 0; i < ranges().size(); ++i)
    if (range_binding(ranges()[i]) == binding) set.insert(i);
  return set;
}

}  // namespace weft::lower
