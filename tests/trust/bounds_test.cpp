// Every access of kernels, as lowering guards it, is in range: Z3 says so.
#include <gtest/gtest.h>

#include "tests/trust/bounds_support.h"
#include "weft/base/context.h"
#include "weft/graph/parse.h"
#include "weft/graph/print.h"
#include "weft/target/target.h"
#include "weft/trust/fuzz.h"

namespace weft {
namespace {

test::Bounds bounds_of(const std::string& kernel) {
  Graph g;
  return test::prove_bounds(parse_graph(g, kernel).front());
}

void expect_in_range(const char* device, uint64_t first, uint64_t count) {
  if (!test::can_prove_bounds()) GTEST_SKIP() << "libz3 is not here (Debian: libz3-dev)";
  Context context;
  const ContextScope scope(context);
  const Target target = make_target(device, CpuFeatures(), 2);
  int64_t proved = 0, unknown = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    Graph g;
    const RandomGraph program = trust::fuzz_program(g, seed);
    test::each_guarded_kernel(program.roots, target, [&](const std::string& name, NodeRef sink) {
      const test::Bounds bounds = test::prove_bounds(sink);
      EXPECT_EQ(bounds.refuted, "") << "seed " << seed << ", " << name << "\n" << print_graph(sink);
      proved += bounds.proved;
      unknown += bounds.unknown;
    });
  }
  EXPECT_GT(proved, static_cast<int64_t>(count));
  // Products of variables are beyond what is decidable.
  EXPECT_LE(unknown * 20, proved);
  ::testing::Test::RecordProperty("proved", static_cast<int>(proved));
  ::testing::Test::RecordProperty("unknown", static_cast<int>(unknown));
}

TEST(Bounds, OfRandomKernelsAreProved) { expect_in_range("x86", 0, 4); }
/// What they share, too.
TEST(Bounds, OfRandomKernelsOfGroupsAreProved) { expect_in_range("cuda", 4, 4); }
TEST(Bounds, SlowOfManyRandomKernels) { expect_in_range("x86", 1000, 400); }
TEST(Bounds, SlowOfManyRandomKernelsOfGroups) { expect_in_range("cuda", 2000, 400); }

TEST(Bounds, PlantedAccessesOutsideAreSeen) {
  if (!test::can_prove_bounds()) GTEST_SKIP() << "libz3 is not here (Debian: libz3-dev)";
  const std::string kernel =
      "%0 = param f32 8 slot=0\n%1 = range index 3 id=0 binding=loop\n%2 = mul index %1 MORE\n"
      "%3 = param f32 8 slot=1\n%4 = load f32 %3 %2\n"
      "%5 = store void %0 %1 %4 combine=set unique=1\n%6 = sink void %5\n";
  const auto with = [&](const std::string& factor) {
    std::string text = kernel;
    return bounds_of(text.replace(text.find("MORE"), 4, factor));
  };
  EXPECT_EQ(with("3").refuted, "");
  EXPECT_EQ(with("3").proved, 2);
  EXPECT_EQ(with("4").refuted, "load of 8 elements at r0*4, if always");
}

}  // namespace
}  // namespace weft
