#include "tests/trust/planted_rules.h"

// This program has a function of its own in the place of arithmetic_rules(), which is the first of
// the compiler's tables; production code has no way in.
#define arithmetic_rules compilers_arithmetic_rules
#include "weft/simplify/arithmetic_rules.cpp"
#undef arithmetic_rules

namespace weft {
namespace {

using namespace weft::pat;

const Rule* planted = nullptr;

// clang-format off
constexpr Rule kWrong[] = {
    rule("planted.wrong_constant", x + x, x * 3, kBits),
    rule("planted.shift_for_product", x * c0, x << c0, c0 > 1, kBits),
    rule("planted.sum_of_divisors", (x / c0) / c1, x / (c0 + c1), c0 > 0 && c1 > 0, kBits),
    rule("planted.forgotten_bound", x % c0, x, vmin(x) >= 0, kBits),
    rule("planted.first_of_max", max(x, y), x, kBits),
    rule("planted.max_for_min", min(x, y), max(x, y), kBits),
    rule("planted.off_by_one", x <= y, x < y, kBits | kFloat),
    rule("planted.wrong_comparison", x == y, x <= y, kBits),
    rule("planted.other_branch", where(p, x, y), y, kBits | kFloat),
    rule("planted.lost_sign", -x, x, kBits),
    rule("planted.or_for_and", x & y, x | y, kBits),
    rule("planted.and_for_xor", x ^ y, (x & y), kBits),
    rule("planted.lost_shift", (x << c0) << c1, x << c0, kBits),
    rule("planted.other_direction", x >> c0, x << c0, kBits),
    rule("planted.minus_for_not", ~x, -x, kBits),
    rule("planted.product_for_quotient", fdiv(x, c0), x * c0, kFloat),
    rule("planted.signed_zero", x + 0.0, x, kFloat),
    rule("planted.nan_times_zero", x * 0.0, 0, kFloat),
    rule("planted.no_rounding", trunc(x), x, kFloat),
    rule("planted.lost_addend", mulacc(x, y, z), x * y, kBits),
    rule("planted.lost_cast", cast(y(cast(x))), cast(x), is_int(x), kBits),
    rule("planted.mask_of_either", (x < c0) & (x < c1), x < max(c0, c1), kIndex),
    rule("planted.lost_remainder", x % c0, x, kIndex),
    rule("planted.no_end", x | y, ~(~x & y), kBits),
};
// clang-format on

}  // namespace

RuleList<> arithmetic_rules() {
  RuleList<> out;
  if (planted) out += RuleList<>(*reinterpret_cast<const Rule(*)[1]>(planted));
  return out + compilers_arithmetic_rules();
}

namespace test {
std::span<const Rule> planted_rules() { return kWrong; }
Planted::Planted(const Rule& rule) { planted = &rule; }
Planted::~Planted() { planted = nullptr; }
}  // namespace test

}  // namespace weft
