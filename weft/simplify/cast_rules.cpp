// Conversions. Casts between integers keep low bits, float to integer saturates: see ops.def.
#include "weft/simplify/rule_tables.h"

namespace weft {
namespace {
using namespace weft::pat;

// clang-format off
constexpr Rule kCastRules[] = {
    rule("cast.of_bool", cast(cast(p)), cast(p)),
    rule("cast.same_kind", cast(y(cast(x))), cast(x), exact(x, y) && is_float(x) == is_float(y),
         kBits | kBool | kFloat),
    rule("cast.through_float", z(cast(y(cast(x)))), cast(x), exact(x, y) && is_float(z), kAny),
    rule("cast.narrower", z(cast(y(cast(x)))), cast(x),
         is_int(y) && is_int(z) && bits(z) <= bits(y), kBits),
    rule("cast.where_consts", cast(where(p, c0, c1)), where(p, cast(c0), cast(c1))).as_move(),
    rule("bitcast.none", z(bitcast(x)), x, same_dtype(x, z), kBits | kFloat),
    rule("bitcast.bitcast", bitcast(y(bitcast(x))), bitcast(x), is_int(y), kBits | kFloat),
};
// clang-format on

}  // namespace

RuleList<> cast_rules() { return rules(kCastRules); }

}  // namespace weft
