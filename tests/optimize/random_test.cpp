// Random kernels keep their values when optimised, and lowered after that.
#include "tests/lower/random_kernel.h"
#include "tests/optimize/kernels.h"

namespace weft::test {
namespace {

void run_seeds(uint32_t first, uint32_t last) {
  for (uint32_t seed = first; seed < last && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomKernel k(seed, false);
    try {
      const Kernel kernel = k.kernel();
      const int bits = 128 << (seed % 3);
      const Kernel better = expect_kept(kernel, k.buffers(), bits);
      const LinearProgram program = lower_kernel(better, target_with_bits(bits));
      EXPECT_EQ(run_kernel(kernel.sink, k.buffers()), run_program(program, k.buffers()));
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what() << "\n" << print_graph(k.stores);
    }
  }
}

TEST(OptimizeRandom, Kernels) { run_seeds(0, 20); }
// A reduction whose value does not depend on the vector range it closes.
TEST(OptimizeRandom, Seed478) { run_seeds(478, 479); }
TEST(OptimizeRandom, SlowManyKernels) { run_seeds(20, 2000); }

}  // namespace
}  // namespace weft::test
