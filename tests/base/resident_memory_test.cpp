#include "weft/base/resident_memory.h"

#include <gtest/gtest.h>

#include <climits>

namespace weft {
namespace {

TEST(ResidentMemory, IsThatOfTheProcess) {
  const ResidentMemory own = resident_memory();
  EXPECT_GT(own.now, 1 << 16);
  EXPECT_GE(own.peak, own.now);
}

TEST(ResidentMemory, OfNobodyIsNothing) {
  const ResidentMemory none = resident_memory(INT_MAX);
  EXPECT_EQ(none.now, 0);
  EXPECT_EQ(none.peak, 0);
}

}  // namespace
}  // namespace weft
