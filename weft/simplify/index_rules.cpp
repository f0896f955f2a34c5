// Index arithmetic beyond the affine normal form that Graph::make gives by itself.
#include "weft/simplify/rule_tables.h"

namespace weft {
namespace {
using namespace weft::pat;

// clang-format off
constexpr Rule kIndexRules[] = {
    rule("lt.of_div", x / c0 < c1, x < c0 * c1, c0 > 0, kIndex),
    rule("lt.of_neg_div", x / c0 * -1 < c1, x * -1 < c0 * (c1 - 1) + 1, c0 > 0, kIndex),
    rule("and.below_both", (x < c0) & (x < c1), x < min(c0, c1), kIndex),
    rule("or.below_either", (x < c0) | (x < c1), x < max(c0, c1), kIndex),
    rule("and.below_both_of", (p & (x < c0)) & (x < c1), p&(x < min(c0, c1)), kIndex),
    rule("and.empty", (x * -1 < c0) & (x < c1), 0, c0 + c1 <= 1, kIndex),
    rule("or.all", (x * -1 < c0) | (x < c1), 1, c0 + c1 >= 1, kIndex),
    rule("and.equal_below", (x == c0) & (x < c1), x == c0, c0 < c1, kIndex),
    rule("and.equal_not_below", (x == c0) & (x < c1), 0, c0 >= c1, kIndex),
    rule("and.equal_twice", (x == c0) & (x == c1), 0, c0 != c1, kIndex),
};
// clang-format on

}  // namespace

RuleList<> index_rules() { return rules(kIndexRules); }

}  // namespace weft
