#include "weft/base/checked.h"

#include "weft/base/error.h"

namespace weft {

int64_t add_or_fail(std::string_view tag, int64_t a, int64_t b) {
  if (auto sum = checked_add(a, b)) return *sum;
  fail(tag, "{} + {} does not fit in 64 bits; use smaller sizes", a, b);
}

int64_t mul_or_fail(std::string_view tag, int64_t a, int64_t b) {
  if (auto product = checked_mul(a, b)) return *product;
  fail(tag, "{} * {} does not fit in 64 bits; use smaller sizes", a, b);
}

}  // namespace weft
