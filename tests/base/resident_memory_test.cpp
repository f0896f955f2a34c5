#include "weft/base/resident_memory.h"

#include <gtest/gtest.h>

#include <climits>
#include <vector>

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

TEST(ResidentMemory, WhatIsUsedStaysWhenFreeMemoryGoesBack) {
  std::vector<std::vector<int>> all;
  for (int i = 0; i < 64; ++i) all.emplace_back(1 << 14, i);
  for (size_t i = 0; i < all.size(); i += 2) all[i] = {};
  give_back_free_memory();
  for (size_t i = 1; i < all.size(); i += 2)
    EXPECT_EQ(all[i], std::vector<int>(1 << 14, static_cast<int>(i)));
}

}  // namespace
}  // namespace weft
