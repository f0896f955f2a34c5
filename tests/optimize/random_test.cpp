// Random kernels keep their values when optimised, and lowered after that.
#include "tests/lower/random_kernel.h"
#include "tests/optimize/kernels.h"
#include "weft/graph/parse.h"

namespace weft::test {
namespace {

void expect_lowered(const Kernel& kernel, const Buffers& buffers, int bits) {
  const Kernel better = expect_kept(kernel, buffers, bits);
  const LinearProgram program = lower_kernel(better, target_with_bits(bits));
  EXPECT_EQ(run_kernel(kernel.sink, buffers), run_program(program, buffers));
}

void run_seeds(uint32_t first, uint32_t last) {
  for (uint32_t seed = first; seed < last && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomKernel k(seed, false);
    try {
      expect_lowered(k.kernel(), k.buffers(), 128 << (seed % 3));
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what() << "\n" << print_graph(k.stores);
    }
  }
}

// Each broke something when random kernels first met the optimiser.
constexpr const char* kOnceFailed[] = {
    // A reduction whose value does not depend on the vector range it closes.
    "%0 = param i32 2 slot=0\n%1 = range index 2 id=0 binding=loop\n%2 = param i32 2 slot=1\n"
    "%3 = load i32 %2 %1\n%4 = mod i32 %3 0:i32\n%5 = store void %0 %1 %4 combine=set unique=1\n"
    "%6 = load i32 %2 %1\n%7 = toindex index %6 8\n%8 = param i32 8 slot=2\n%9 = load i32 %8 %7\n"
    "%10 = toindex index %9 5\n%11 = param i32 5 slot=3\n%12 = load i32 %11 %10\n"
    "%13 = range index 2 id=3 binding=loop\n%14 = reduce.min i32 %12 %13\n"
    "%15 = param i32 4 slot=4\n%16 = load i32 %15 %13\n%17 = mod i32 0:i32 %16\n"
    "%18 = reduce.max i32 %17 %13\n%19 = lt bool %14 %18\n%20 = where i32 %19 1:i32 0:i32\n"
    "%21 = param i32 2 slot=5\n%22 = store void %21 %1 %20 combine=set unique=1\n"
    "return %5 %22\n",
};

TEST(OptimizeRandom, KernelsThatOnceFailed) {
  for (const char* text : kOnceFailed) {
    SCOPED_TRACE(text);
    KernelBuilder b;
    b.stores = parse_graph(b.g, text);
    const Kernel kernel = b.kernel();
    for (const int bits : {128, 256, 512})
      EXPECT_NO_THROW(expect_lowered(kernel, buffers_for(kernel), bits)) << bits;
  }
}

TEST(OptimizeRandom, Kernels) { run_seeds(0, 20); }
TEST(OptimizeRandom, SlowManyKernels) { run_seeds(20, 2000); }

}  // namespace
}  // namespace weft::test
