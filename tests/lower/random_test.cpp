// Random kernels with random bindings: lowered programs give what the kernels mean. Integers, so
// that order does not matter.
#include "tests/lower/random_kernel.h"

namespace weft::test {
namespace {

void run_seeds(uint32_t first, uint32_t last) {
  for (uint32_t seed = first; seed < last; ++seed) {
    SCOPED_TRACE(seed);
    RandomKernel k(seed);
    try {
      const Kernel kernel = k.kernel();
      expect_same(kernel, k.buffers());
    } catch (const std::exception& e) {
      ADD_FAILURE() << "seed " << seed << ": " << e.what() << "\n" << print_graph(k.stores);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(LowerRandom, Kernels) { run_seeds(0, 200); }
TEST(LowerRandom, SlowManyKernels) { run_seeds(200, 20000); }

}  // namespace
}  // namespace weft::test
