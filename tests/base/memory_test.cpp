#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "weft/base/slabs.h"
#include "weft/base/small_vector.h"

namespace weft {
namespace {

TEST(Slabs, AreAlignedApartAndUsedAgain) {
  std::set<void*> taken;
  for (int i = 0; i < 40; ++i) {
    auto* slab = static_cast<std::byte*>(take_slab());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(slab) % 64, 0u);
    std::memset(slab, i, kSlabBytes);
    EXPECT_TRUE(taken.insert(slab).second);
  }
  // More than a thread keeps, some of them given back by another thread.
  std::thread([&] {
    for (int i = 0; i < 20; ++i) give_slab(*taken.begin()), taken.erase(taken.begin());
  }).join();
  for (void* slab : taken) give_slab(slab);
  void* again = take_slab();
  give_slab(again);
}

using Small = SmallVector<int, 4>;

TEST(SmallVector, BehavesLikeVectorUnderRandomUse) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Small ours;
    std::vector<int> theirs;
    for (int step = 0; step < 100; ++step) {
      const int value = static_cast<int>(random() % 1000);
      const size_t at = theirs.empty() ? 0 : random() % theirs.size();
      switch (random() % 7) {
        case 0:
          ours.insert(at, value), theirs.insert(theirs.begin() + static_cast<long>(at), value);
          break;
        case 1:
          if (!theirs.empty()) ours.erase(at), theirs.erase(theirs.begin() + static_cast<long>(at));
          break;
        case 2: ours.resize(at + 2, value), theirs.resize(at + 2, value); break;
        case 3: {
          Small copy = ours;
          ours = std::move(copy);
          break;
        }
        case 4: ours = Small(ours); break;
        default: ours.push_back(value), theirs.push_back(value);
      }
      ASSERT_EQ(std::vector<int>(ours.begin(), ours.end()), theirs);
    }
  }
}

TEST(SmallVector, AppendsItself) {
  Small v{1, 2, 3};
  v.append(v);
  EXPECT_EQ(v, (Small{1, 2, 3, 1, 2, 3}));
  v.append(std::span<const int>(v).subspan(1, 2));
  EXPECT_EQ(v, (Small{1, 2, 3, 1, 2, 3, 2, 3}));
}

TEST(SmallVector, MoveLeavesEmptyUsableSource) {
  Small big{1, 2, 3, 4, 5, 6}, little{1};
  Small a = std::move(big), b = std::move(little);
  EXPECT_EQ(a.size(), 6u);
  EXPECT_EQ(b.size(), 1u);
  big.push_back(9), little.push_back(8);
  EXPECT_EQ(big, (Small{9}));
  EXPECT_EQ(little, (Small{8}));
  EXPECT_FALSE(a == b);
}

}  // namespace
}  // namespace weft
