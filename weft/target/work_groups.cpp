#include "weft/target/work_groups.h"

#include "weft/base/hash.h"

namespace weft {

uint64_t WorkGroups::key() const {
  uint64_t h = 0;
  for (const auto& axes : {most_groups, most_items})
    for (int64_t most : axes) h = hash_combine(h, static_cast<uint64_t>(most));
  for (int64_t part : {items, wave, local_bytes, banks, bank_bytes, least_local_bits,
                       int64_t{shuffled}, int64_t{emulated}, int64_t{local_is_near}})
    h = hash_combine(h, static_cast<uint64_t>(part));
  return h;
}

}  // namespace weft
