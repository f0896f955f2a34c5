// Every step of the compiler, on small programs, leaves what computes the same: Z3 says so.
#include <gtest/gtest.h>

#include <cstdio>

#include "tests/trust/planted_rules.h"
#include "tests/trust/validate_support.h"
#include "weft/base/context.h"
#include "weft/graph/parse.h"
#include "weft/graph/print.h"
#include "weft/run/passes.h"
#include "weft/target/target.h"
#include "weft/trust/fuzz.h"

namespace weft {
namespace {

using test::Validated;
using Verdict = Validated::Verdict;

#define SKIP_WITHOUT_PROVER() \
  if (!test::can_validate()) GTEST_SKIP() << "libz3 is not here (Debian: libz3-dev)"

struct Row {
  const char* name;
  const char* graph;
};

// Integers: every step has to be proved.
constexpr Row kIntegers[] = {
    {"sum of products",
     "%0 = param i32 6 slot=0\n%1 = param i32 6 slot=1\n%2 = mul i32 %0 %1\n"
     "%3 = add i32 %2 %0\n%4 = reduce.add i32 %3 axes=0\n"},
    {"more than a vector",
     "%0 = param i32 21 slot=0\n%1 = param i32 21 slot=1\n%2 = mulacc i32 %0 %1 %0\n"
     "%3 = max i32 %2 %1\n"},
    {"transposed",
     "%0 = param i32 3 5 slot=0\n%1 = permute i32 %0 axes=1,0\n%2 = add i32 %1 1:i32\n"},
    {"product of matrices",
     "%0 = param i32 3 4 slot=0\n%1 = param i32 4 5 slot=1\n%2 = reshape i32 %0 3 4 1\n"
     "%3 = expand i32 %2 3 4 5\n%4 = reshape i32 %1 1 4 5\n%5 = expand i32 %4 3 4 5\n"
     "%6 = mul i32 %3 %5\n%7 = reduce.add i32 %6 axes=1\n"},
    {"division by numbers",
     "%0 = param i8 8 slot=0\n%1 = idiv i8 %0 3:i8\n%2 = mod i8 %0 5:i8\n%3 = add i8 %1 %2\n"},
    {"one division by data",
     "%0 = param u8 1 slot=0\n%1 = param u8 1 slot=1\n%2 = idiv u8 %0 %1\n%3 = mod u8 %0 %1\n"
     "%4 = xor u8 %2 %3\n"},
    {"shifts",
     "%0 = param i16 5 slot=0\n%1 = param i16 5 slot=1\n%2 = shl i16 %0 %1\n%3 = shr i16 %2 3:i16\n"
     "%4 = not i16 %3\n"},
    {"casts",
     "%0 = param i32 9 slot=0\n%1 = cast u8 %0\n%2 = cast i64 %1\n%3 = cast i8 %2\n"
     "%4 = cast bool %3\n%5 = cast i32 %4\n%6 = add i32 %5 %0\n"},
    {"bits of bools",
     "%0 = param bool 3 4 slot=0\n%1 = param bool 3 4 slot=1\n%2 = xor bool %0 %1\n"
     "%3 = bitcast u8 %2\n%4 = neg u8 %3\n%5 = reduce.mul u8 %4 axes=0,1\n"},
    {"choices",
     "%0 = param u32 7 slot=0\n%1 = param u32 7 slot=1\n%2 = lt bool %0 %1\n"
     "%3 = where u32 %2 %0 %1\n%4 = min u32 %3 100:u32\n"},
    {"borders",
     "%0 = param i32 4 slot=0\n%1 = pad i32 %0 2 3 interior=0\n"
     "%2 = window i32 %1 axis=0 size=3 stride=2 dilation=1\n%3 = reduce.max i32 %2 axes=1\n"},
    {"digits of positions",
     "%0 = param i32 24 slot=0\n%1 = reshape i32 %0 4 6\n%2 = permute i32 %1 axes=1,0\n"
     "%3 = reshape i32 %2 24\n%4 = add i32 %3 %0\n"},
    {"looked up",
     "%0 = param i32 5 slot=0\n%1 = param i8 4 slot=1\n%2 = gather i32 %0 %1 axis=0\n"
     "%3 = mul i32 %2 3:i32\n"},
    {"running sum", "%0 = param i32 2 5 slot=0\n%1 = scan.add i32 %0 axis=1\n"},
    {"joined",
     "%0 = param i32 3 slot=0\n%1 = param i32 4 slot=1\n%2 = cat i32 %0 %1 axis=0\n"
     "%3 = flip i32 %2 axes=0\n"},
    {"two results",
     "%0 = param i32 2 9 slot=0\n%1 = reduce.add i32 %0 axes=1\n%2 = reduce.max i32 %0 axes=0\n"
     "return %1 %2\n"},
    {"a masked sum",
     "%0 = param i32 6 6 slot=0\n%1 = iota i32 6 6 axis=0\n%2 = iota i32 6 6 axis=1\n"
     "%3 = le bool %2 %1\n%4 = where i32 %3 %0 0:i32\n%5 = reduce.add i32 %4 axes=1\n"},
    {"sizes that vary",
     "%0 = variable index \"n\" min=1 max=8 multiple=1\n%1 = param i32 %0 slot=0\n%2 = add i32 %1 "
     "%1\n"
     "%3 = reduce.add i32 %2 axes=0\n"},
};

// In vectors the processor divides integers as floats.
constexpr Row kQuotients[] = {
    {"division by data",
     "%0 = param u8 3 slot=0\n%1 = param u8 3 slot=1\n%2 = idiv u8 %0 %1\n%3 = mod u8 %0 %1\n"
     "%4 = xor u8 %2 %3\n"},
};

// Floats: nothing may be refuted, and what is only moved or chosen has to be proved.
constexpr Row kFloats[] = {
    {"a sum and a product",
     "%0 = param f32 20 slot=0\n%1 = param f32 20 slot=1\n%2 = mul f32 %0 %1\n%3 = add f32 %2 "
     "%0\n"},
    {"signs and choices",
     "%0 = param f32 9 slot=0\n%1 = param f32 9 slot=1\n%2 = neg f32 %0\n%3 = max f32 %2 %1\n"
     "%4 = min f32 %3 0.5:f32\n%5 = lt bool %4 %0\n%6 = where f32 %5 %4 %1\n"},
    {"moved",
     "%0 = param f64 2 3 slot=0\n%1 = permute f64 %0 axes=1,0\n%2 = pad f64 %1 1 0 1 0 "
     "interior=0,1\n"},
    {"halves", "%0 = param bf16 5 slot=0\n%1 = param bf16 5 slot=1\n%2 = add bf16 %0 %1\n"},
    {"a sum of floats",
     "%0 = param f32 3 4 slot=0\n%1 = reduce.add f32 %0 axes=1\n%2 = sqrt f32 %1\n"},
    {"functions", "%0 = param f32 4 slot=0\n%1 = exp2 f32 %0\n%2 = div f32 %1 %0\n"},
};

struct Tally {
  int proved = 0, unknown = 0;
};

/// Steps of compiling the row for `target`; those that are refuted fail.
std::vector<Validated> validated(const Row& row, const Target& target) {
  Graph g;
  const std::vector<NodeRef> roots = parse_graph(g, row.graph, row.name);
  return test::validate(roots, {{"n", 5}}, target);
}

void expect_sound(std::span<const Row> rows, const char* device, bool all_proved, Tally& tally) {
  Context context;
  const ContextScope scope(context);
  const Target target = make_target(device, CpuFeatures(), 2);
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    for (const Validated& v : validated(row, target)) {
      EXPECT_NE(v.verdict, Verdict::Refuted) << v.text();
      if (all_proved) {
        EXPECT_EQ(v.verdict, Verdict::Proved) << v.text();
      }
      ++(v.verdict == Verdict::Proved ? tally.proved : tally.unknown);
    }
  }
}

TEST(Validate, IntegersForTheProcessor) {
  SKIP_WITHOUT_PROVER();
  Tally tally;
  expect_sound(kIntegers, "x86", true, tally);
  EXPECT_GT(tally.proved, static_cast<int>(std::size(kIntegers)) * 3);
}

TEST(Validate, IntegersForGroups) {
  SKIP_WITHOUT_PROVER();
  Tally tally;
  expect_sound(kIntegers, "cuda", true, tally);
}

TEST(Validate, Quotients) {
  SKIP_WITHOUT_PROVER();
  Tally tally;
  for (const char* device : {"cuda", "c"}) expect_sound(kQuotients, device, true, tally);
  expect_sound(kQuotients, "x86", false, tally);
}

TEST(Validate, Floats) {
  SKIP_WITHOUT_PROVER();
  Tally tally;
  for (const char* device : {"x86", "c"}) expect_sound(kFloats, device, false, tally);
  EXPECT_GT(tally.proved, tally.unknown) << "too little is known of floats";
}

TEST(Validate, PlantedPassesAreFound) {
  SKIP_WITHOUT_PROVER();
  Context context;
  const ContextScope scope(context);
  const Target target = make_target("x86", CpuFeatures(), 2);
  const std::pair<test::PlantedPass, std::string> passes[] = {
      {test::PlantedPass::SkipMasked, "lower.skip_masked"},
      {test::PlantedPass::Unroll, "lower.unroll"}};
  for (const auto& [pass, name] : passes) {
    const test::Planted planted(pass);
    std::vector<std::string> refuted;
    std::string why;
    for (const Validated& v : validated(kIntegers[0], target))
      if (v.verdict == Verdict::Refuted) refuted.push_back(v.step), why = v.why;
    EXPECT_EQ(refuted, std::vector<std::string>{name});
    EXPECT_NE(why.find(" before and "), std::string::npos) << why;
    EXPECT_NE(why.find("with p0 = "), std::string::npos) << why;
  }
}

/// A rule that is wrong shows in the first step that simplifies with it.
TEST(Validate, PlantedRulesAreFound) {
  SKIP_WITHOUT_PROVER();
  const test::PlantedRule wrong = test::planted_rules()[0];
  const test::Planted planted(*wrong.rule);
  Context context;
  const ContextScope scope(context);
  const Target target = make_target("interp", CpuFeatures(), 2);
  const Row twice{"x + x", "%0 = param i32 4 slot=0\n%1 = mul i32 %0 %0\n%2 = add i32 %1 %1\n"};
  bool refuted = false;
  for (const Validated& v : validated(twice, target)) refuted |= v.verdict == Verdict::Refuted;
  EXPECT_TRUE(refuted);
}

/// Bounded by counts alone: of programs, of their sizes, of what a question may take. What is not
/// proved within them is unknown, which is no failure; what is refuted is.
TEST(Validate, SlowRandomPrograms) {
  SKIP_WITHOUT_PROVER();
  constexpr uint64_t kPrograms = 300;
  constexpr test::ValidateLimits kLimits{.resources = 100'000, .steps = 20'000};
  Tally tally;
  for (uint64_t seed = 0; seed < kPrograms; ++seed) {
    Context context;
    const ContextScope scope(context);
    Graph g;
    RandomGraphOptions options;
    options.steps = 4;
    options.largest = 12;
    options.exact = true;
    options.dtypes = {DType::I32, DType::U8, DType::I16, DType::Bool, DType::F32};
    const RandomGraph program = random_graph(g, seed, options);
    const Target target = make_target(seed % 2 ? "x86" : "cuda", CpuFeatures(), 2);
    for (const Validated& v :
         test::validate(program.roots, program.bindings[0].variables, target, kLimits)) {
      EXPECT_NE(v.verdict, Verdict::Refuted) << "seed " << seed << "\n" << v.text();
      ++(v.verdict == Verdict::Proved ? tally.proved : tally.unknown);
    }
  }
  std::printf("%d steps proved, %d unknown\n", tally.proved, tally.unknown);
  EXPECT_GT(tally.proved, 10 * tally.unknown);
}

}  // namespace
}  // namespace weft
