// Bits and bools: and, or, xor, not, comparisons.
#include "weft/simplify/rule_tables.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace {
using namespace weft::pat;

constexpr Domain kLogic = kBits | kBool;

// clang-format off
constexpr Rule kLogicRules[] = {
    rule("and.zero", x & 0, 0, kBits),
    rule("and.ones", x & -1, x, kBits),
    rule("and.same", x & x, x, kBits),
    rule("and.again", (x & y) & y, x & y, kLogic),
    rule("and.not_self", x & ~x, 0, kLogic),
    rule("and.consts", (x & c0) & c1, x&(c0 & c1), kBits),
    rule("and.absorb", x&(x | y), x, kLogic),
    rule("and.nots", ~x & ~y, ~(x | y), kLogic),
    rule("or.zero", x | 0, x, kBits),
    rule("or.ones", x | -1, -1, kBits),
    rule("or.same", x | x, x, kBits),
    rule("or.again", (x | y) | y, x | y, kLogic),
    rule("or.not_self", x | ~x, -1, kLogic),
    rule("or.consts", (x | c0) | c1, x | (c0 | c1), kBits),
    rule("or.absorb", x | (x & y), x, kLogic),
    rule("or.nots", ~x | ~y, ~(x & y), kLogic),
    rule("or.both_cases", (x & y) | (x & ~y), x, kLogic),
    rule("xor.zero", x ^ 0, x, kLogic),
    rule("xor.ones", x ^ -1, ~x, kLogic),
    rule("xor.same", x ^ x, 0, kLogic),
    rule("xor.again", (x ^ y) ^ y, x, kLogic),
    rule("xor.consts", (x ^ c0) ^ c1, x ^ (c0 ^ c1), kLogic),
    rule("xor.nots", ~x ^ ~y, x ^ y, kLogic),
    rule("not.not", ~~x, x, kBits),
};

// Arithmetic of bools is logic.
constexpr Rule kBoolArithmeticRules[] = {
    rule("add.bools", x + y, x | y, kBool).as_move(),
    rule("mul.bools", (x * y), (x & y), kBool).as_move(),
    rule("max.bools", max(x, y), x | y, kBool).as_move(),
    rule("min.bools", min(x, y), (x & y), kBool).as_move(),
    rule("neg.bool", -x, x, kBool),
    rule("mulacc.bools", mulacc(x, y, z), (x & y) | z, kBool).as_move(),
    rule("eq.true", x == 1, x, kBool),
    rule("eq.false", x == 0, ~x, kBool),
    rule("ne.true", x != 1, ~x, kBool),
    rule("ne.false", x != 0, x, kBool),
    rule("ne.bools", x != y, x ^ y, kBool).as_move(),
    rule("eq.bools", x == y, ~(x ^ y), kBool).as_move(),
    rule("lt.bools", x < y, (~x & y), kBool).as_move(),
    rule("le.bools", x <= y, ~x | y, kBool).as_move(),
};

constexpr Rule kCompareRules[] = {
    rule("eq.same", x == x, 1, kBits),
    rule("ne.same", x != x, 0, kBits),
    rule("lt.same", x < x, 0, kBits | kFloat),
    rule("le.same", x <= x, 1, kBits),
    rule("not.lt", ~(x < y), y <= x, kIntegers),
    rule("not.le", ~(x <= y), y < x, kIntegers),
    rule("not.eq", ~(x == y), x != y),
    rule("not.ne", ~(x != y), x == y),
    rule("eq.casts", z(cast(x)) == cast(y), x == y, same_dtype(x, y) && exact(x, z)),
    rule("ne.casts", z(cast(x)) != cast(y), x != y, same_dtype(x, y) && exact(x, z)),
    rule("lt.casts", z(cast(x)) < cast(y), x < y, same_dtype(x, y) && exact(x, z)),
    rule("le.casts", z(cast(x)) <= cast(y), x <= y, same_dtype(x, y) && exact(x, z)),
    rule("eq.cast_bool_one", cast(p) == 1, p),
    rule("eq.cast_bool_zero", cast(p) == 0, ~p),
    rule("ne.cast_bool_one", cast(p) != 1, ~p),
    rule("ne.cast_bool_zero", cast(p) != 0, p),
    rule("eq.pick_first", where(p, c0, c1) == c2, p, c0 == c2 && c1 != c2, kIntegers),
    rule("eq.pick_second", where(p, c0, c1) == c2, ~p, c0 != c2 && c1 == c2, kIntegers),
    rule("ne.pick_first", where(p, c0, c1) != c2, ~p, c0 == c2 && c1 != c2, kIntegers),
    rule("ne.pick_second", where(p, c0, c1) != c2, p, c0 != c2 && c1 == c2, kIntegers),
};
// clang-format on

}  // namespace

RuleList<> bool_arithmetic_rules() { return rules(kBoolArithmeticRules); }
RuleList<> bool_rules() { return rules(kLogicRules, kBoolArithmeticRules, kCompareRules); }

}  // namespace weft
