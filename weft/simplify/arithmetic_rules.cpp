// Data numbers. Floats only where the result is the same bit for bit, signed zeros included.
#include <cmath>
#include <limits>

#include "weft/simplify/rule_tables.h"

namespace weft {
namespace {
using namespace weft::pat;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Domain kNumbers = kBits | kFloat;

/// x / c = x * (1/c) for a power of two: both round the same real number.
NodeRef multiply_by_reciprocal(const Match& m) {
  int exponent;
  const double c = const_value(m[c0]).as_double();
  if (std::fabs(std::frexp(c, &exponent)) != 0.5) return nullptr;
  const Value reciprocal = Value::of(m[x]->dtype, 1 / c);
  const bool exact_here = reciprocal.as_double() * c == 1;
  return exact_here ? m.graph.mul(m[x], m.graph.constant(reciprocal)) : nullptr;
}

// clang-format off
constexpr Rule kSumRules[] = {
    rule("add.zero", x + 0, x, kBits),
    rule("add.minus_zero", x + -0.0, x, kFloat),
    rule("add.opposite", x + -x, 0, kBits),
    rule("add.consts", (x + c0) + c1, x + (c0 + c1), kBits),
    rule("add.same_factor", x * c0 + x * c1, x * (c0 + c1), kBits),
    rule("add.one_more", x * c0 + x, x * (c0 + 1), kBits),
    rule("add.and_or", (x & y) + (x | y), x + y, kBits),
    rule("neg.neg", -(-x), x, kNumbers),
    rule("neg.product", -(x * c0), x * -c0, kNumbers),
};

constexpr Rule kProductRules[] = {
    rule("mul.one", x * 1, x, kNumbers),
    rule("mul.minus_one", x * -1, -x, kNumbers),
    rule("mul.zero", x * 0, 0, kBits),
    rule("mul.consts", (x * c0) * c1, x * (c0 * c1), kBits),
    rule("mul.neg_const", -x * c0, x * -c0, kNumbers),
    rule("mul.neg_neg", -x * -y, x * y, kNumbers),
    rule("mulacc.one_right", mulacc(x, 1, y), x + y, kNumbers),
    rule("mulacc.one_left", mulacc(1, x, y), x + y, kNumbers),
    rule("mulacc.plus_minus_zero", mulacc(x, y, -0.0), x * y, kFloat),
    rule("mulacc.plus_zero", mulacc(x, y, 0), x * y, kBits),
    rule("mulacc.zero_right", mulacc(x, 0, y), y, kBits),
    rule("mulacc.zero_left", mulacc(0, x, y), y, kBits),
};

constexpr Rule kQuotientRules[] = {
    rule("fdiv.one", fdiv(x, 1), x, kFloat),
    rule("fdiv.minus_one", fdiv(x, -1), -x, kFloat),
    rule("fdiv.neg_neg", fdiv(-x, -y), fdiv(x, y), kFloat),
    rule("div.one", x / 1, x, kBits),
    rule("div.minus_one", x / -1, -x, is_signed(x), kBits),
    rule("div.of_zero", Pat(0) / x, 0, kBits),
    rule("div.of_div", (x / c0) / c1, x / (c0 * c1),
         c0 > 0 && c1 > 0 && c0 * c1 < Pat(1) << (bits(x) - 1), kBits),
    rule("mod.one", x % 1, 0, kBits),
    rule("mod.minus_one", x % -1, 0, is_signed(x), kBits),
    rule("mod.of_zero", Pat(0) % x, 0, kBits),
    rule("mod.self", x % x, 0, kBits),
    rule("mod.small", x % c0, x, vmin(x) >= 0 && vmax(x) < c0, kBits),
    rule("mod.of_mod", (x % c0) % c1, x % c1, c1 > 0 && c0 > 0 && c0 % c1 == 0, kBits),
    rule("trunc.trunc", trunc(trunc(x)), trunc(x), kFloat),
    rule("trunc.of_int", trunc(y(cast(x))), y, !is_float(x), kBits | kBool | kFloat),
};
constexpr NativeRule<NoContext> kReciprocalRules[] = {
    native("fdiv.by_power", fdiv(x, c0), multiply_by_reciprocal, kFloat),
};

constexpr Rule kExtremeRules[] = {
    rule("max.same", max(x, x), x),
    rule("min.same", min(x, x), x),
    rule("max.again", max(max(x, y), y), max(x, y)),
    rule("min.again", min(min(x, y), y), min(x, y)),
    rule("max.consts", max(max(x, c0), c1), max(x, max(c0, c1))),
    rule("min.consts", min(min(x, c0), c1), min(x, min(c0, c1))),
    rule("max.of_min", max(x, min(x, y)), x, kIntegers),
    rule("min.of_max", min(x, max(x, y)), x, kIntegers),
    rule("max.min_inf", max(x, -kInf), x, kFloat),
    rule("min.inf", min(x, kInf), x, kFloat),
    rule("max.above", max(x, y), x, vmin(x) >= vmax(y), kBits),
    rule("min.below", min(x, y), x, vmax(x) <= vmin(y), kBits),
};

// The size of a float is its pattern without the sign; a NaN's sign says nothing.
constexpr Pat size_by(DType pattern, const Pat& largest) {
  return bitcast(bitcast(x, pattern) & largest);
}
constexpr Rule kSizeRules[] = {
    rule("abs.half", max(x, -x) + 0.0, size_by(DType::U16, INT16_MAX), bits(x) == 16, kFloat),
    rule("abs.f32", max(x, -x) + 0.0, size_by(DType::U32, INT32_MAX), bits(x) == 32, kFloat),
    rule("abs.f64", max(x, -x) + 0.0, size_by(DType::U64, INT64_MAX), bits(x) == 64, kFloat),
};

constexpr Rule kShiftRules[] = {
    rule("shl.none", x << 0, x, kBits),
    rule("shr.none", x >> 0, x, kBits),
    rule("shl.of_zero", Pat(0) << x, 0, kBits),
    rule("shr.of_zero", Pat(0) >> x, 0, kBits),
    rule("shl.consts", (x << c0) << c1, x << (c0 + c1), c0 >= 0 && c1 >= 0 && c0 + c1 < bits(x),
         kBits),
    rule("shr.consts", (x >> c0) >> c1, x >> (c0 + c1), c0 >= 0 && c1 >= 0 && c0 + c1 < bits(x),
         kBits),
    rule("shl.of_shr", (x >> c0) << c0, x&(Pat(-1) << c0), c0 >= 0 && c0 < bits(x), kBits),
    // Bits that are moved down, taken and moved up again: once, by the difference.
    rule("shl.of_taken", ((x >> c0) & c1) << c2, (x << (c2 - c0)) & (c1 << c2),
         c0 >= 0 && c0 <= c2 && c2 < bits(x), kBits),
    rule("shl.of_taken_above", ((x >> c0) & c1) << c2, (x >> (c0 - c2)) & (c1 << c2),
         c2 >= 0 && c2 < c0 && c0 < bits(x), kBits),
};
// clang-format on

}  // namespace

RuleList<> arithmetic_rules() {
  return rules(kSumRules, kProductRules, kQuotientRules, kReciprocalRules, kExtremeRules,
               kSizeRules, kShiftRules);
}

}  // namespace weft
