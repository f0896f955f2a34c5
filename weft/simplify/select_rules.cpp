// where(condition, a, b).
#include "weft/simplify/rule_tables.h"

namespace weft {
namespace {
using namespace weft::pat;

// clang-format off
constexpr Rule kSelectRules[] = {
    rule("where.not", where(~p, x, y), where(p, y, x)),
    rule("where.same_then", where(p, where(p, x, y), z), where(p, x, z)),
    rule("where.same_else", where(p, x, where(p, y, z)), where(p, x, z)),
    rule("where.and", where(p, where(q, x, y), y), where(p & q, x, y)),
    rule("where.or", where(p, x, where(q, x, y)), where(p | q, x, y)),
    rule("where.and_not", where(p, where(q, x, y), x), where(p & ~q, y, x)).as_move(),
    rule("where.bool_then", where(p, 1, q), p | q),
    rule("where.bool_else", where(p, q, 0), p & q),
    rule("where.bool_not_then", where(p, 0, q), q & ~p).as_move(),
    rule("where.bool_not_else", where(p, q, 1), q | ~p).as_move(),
    rule("where.min", where(x < y, x, y), min(x, y), kIntegers),
    rule("where.max", where(x < y, y, x), max(x, y), kIntegers),
    rule("where.min_le", where(x <= y, x, y), min(x, y), kIntegers),
    rule("where.max_le", where(x <= y, y, x), max(x, y), kIntegers),
    rule("where.eq", where(x == y, x, y), y, kIntegers),
    rule("where.ne", where(x != y, x, y), x, kIntegers),
};
// clang-format on

}  // namespace

RuleList<> select_rules() { return rules(kSelectRules); }

}  // namespace weft
