#include "tests/trust/planted_rules.h"

// This program has a function of its own in the place of arithmetic_rules(), which is the first of
// the compiler's tables; production code has no way in.
#define arithmetic_rules compilers_arithmetic_rules
#include "weft/simplify/arithmetic_rules.cpp"
#undef arithmetic_rules

#include <optional>

#include "weft/base/format.h"

namespace weft {
namespace {

using namespace weft::pat;

const Rule* planted = nullptr;
std::optional<test::PlantedPass> planted_pass;

/// %3 and %4 are i32 terms, %9 is to be one.
struct Row {
  Rule rule;
  const char* lines;
};

// clang-format off
constexpr Row kRows[] = {
    {rule("planted.wrong_constant", x + x, x * 3, kBits),
     "%9 = add i32 %3 %3"},
    {rule("planted.shift_for_product", x * c0, x << c0, c0 > 1, kBits),
     "%9 = mul i32 %3 3:i32"},
    {rule("planted.sum_of_divisors", (x / c0) / c1, x / (c0 + c1), c0 > 0 && c1 > 0, kBits),
     "%8 = idiv i32 %3 2:i32\n%9 = idiv i32 %8 3:i32"},
    {rule("planted.forgotten_bound", x % c0, x, vmin(x) >= 0, kBits),
     "%7 = cast u8 %3\n%8 = mod u8 %7 3:u8\n%9 = cast i32 %8"},
    {rule("planted.first_of_max", max(x, y), x, kBits),
     "%9 = max i32 %3 %4"},
    {rule("planted.max_for_min", min(x, y), max(x, y), kBits),
     "%9 = min i32 %3 %4"},
    {rule("planted.off_by_one", x <= y, x < y, kBits | kFloat),
     "%8 = le bool %0 %1\n%9 = where i32 %8 %3 %4"},
    {rule("planted.wrong_comparison", x == y, x <= y, kBits),
     "%8 = eq bool %3 %4\n%9 = where i32 %8 %3 %4"},
    {rule("planted.other_branch", where(p, x, y), y, kBits | kFloat),
     "%8 = lt bool %0 %1\n%9 = where i32 %8 %3 %2"},
    {rule("planted.lost_sign", -x, x, kBits),
     "%8 = neg i32 %3\n%9 = max i32 %8 %4"},
    {rule("planted.or_for_and", x & y, x | y, kBits),
     "%9 = and i32 %3 %4"},
    {rule("planted.and_for_xor", x ^ y, (x & y), kBits),
     "%9 = xor i32 %3 %4"},
    {rule("planted.lost_shift", (x << c0) << c1, x << c0, kBits),
     "%8 = shl i32 %3 1:i32\n%9 = shl i32 %8 2:i32"},
    {rule("planted.other_direction", x >> c0, x << c0, kBits),
     "%9 = shr i32 %3 1:i32"},
    {rule("planted.minus_for_not", ~x, -x, kBits),
     "%9 = not i32 %3"},
    {rule("planted.product_for_quotient", fdiv(x, c0), x * c0, kFloat),
     "%7 = cast f32 %3\n%8 = div f32 %7 4:f32\n%9 = cast i32 %8"},
    {rule("planted.signed_zero", x + 0.0, x, kFloat),
     "%6 = cast f32 %3\n%7 = neg f32 %6\n%8 = add f32 %7 0:f32\n%9 = bitcast i32 %8"},
    {rule("planted.minus_times_zero", x * 0.0, 0, kFloat),
     "%7 = cast f32 %3\n%8 = mul f32 %7 0:f32\n%9 = bitcast i32 %8"},
    {rule("planted.no_rounding", trunc(x), x, kFloat),
     "%5 = cast f32 %3\n%6 = mul f32 %5 0.25:f32\n%7 = trunc f32 %6\n%8 = mul f32 %7 4:f32\n"
     "%9 = cast i32 %8"},
    {rule("planted.lost_addend", mulacc(x, y, z), x * y, kBits),
     "%9 = mulacc i32 %3 %0 %4"},
    {rule("planted.lost_cast", cast(y(cast(x))), cast(x), is_int(x), kBits),
     "%7 = mul i32 %3 100:i32\n%8 = cast i8 %7\n%9 = cast i32 %8"},
    {rule("planted.lost_remainder", x % c0, x, kIndex),
     "%7 = reshape i32 %3 6 8\n%8 = permute i32 %7 axes=1,0\n%9 = reshape i32 %8 48"},
    {rule("planted.lost_quotient", x / c0, 0, kIndex),
     "%7 = reshape i32 %3 6 8\n%8 = permute i32 %7 axes=1,0\n%9 = reshape i32 %8 48"},
    {rule("planted.half_an_or", x | y, ~(~x & y), kBits),
     "%9 = or i32 %3 %4"},
};
// clang-format on

}  // namespace

RuleList<> arithmetic_rules() {
  RuleList<> out;
  if (planted) out += RuleList<>(*reinterpret_cast<const Rule(*)[1]>(planted));
  return out + compilers_arithmetic_rules();
}

namespace test {
bool is_planted(PlantedPass pass) { return planted_pass == pass; }
std::vector<PlantedRule> planted_rules() {
  std::vector<PlantedRule> out;
  for (const Row& row : kRows)
    out.push_back({&row.rule, strformat("weft-repro 1\noption WEFT_DEV=CPU:INTERP\nseed 3\ngraph\n"
                                        "%0 = param i32 48 slot=0\n%1 = param i32 48 slot=1\n"
                                        "%2 = param i32 48 slot=2\n%3 = mul i32 %0 %2\n"
                                        "%4 = add i32 %1 %2\n{}\n%10 = add i32 %9 %0\n"
                                        "%11 = reshape i32 %10 6 8\n"
                                        "%12 = reduce.add i32 %11 axes=1\n"
                                        "%13 = mul i32 %12 %12\n"
                                        "%14 = reduce.max i32 %11 axes=0\nreturn %13 %14 %9\n",
                                        row.lines)});
  return out;
}
Planted::Planted(const Rule& rule) { planted = &rule; }
Planted::Planted(PlantedPass pass) { planted_pass = pass; }
Planted::~Planted() {
  planted = nullptr;
  planted_pass.reset();
}
}  // namespace test

}  // namespace weft
