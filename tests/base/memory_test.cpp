#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "weft/base/arena.h"
#include "weft/base/small_vector.h"

namespace weft {
namespace {

struct Pair {
  int a;
  double b;
};

TEST(Arena, AlignsAndKeepsWhatItHandsOut) {
  Arena arena;
  std::vector<std::pair<uint64_t*, uint64_t>> kept;
  for (uint64_t i = 0; i < 50000; ++i) {
    arena.allocate(i % 7, 1);
    kept.emplace_back(arena.make<uint64_t>(i), i);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(kept.back().first) % alignof(uint64_t), 0u);
  }
  for (auto [pointer, value] : kept) ASSERT_EQ(*pointer, value);
  EXPECT_EQ(arena.make<Pair>(1, 2.5)->b, 2.5);
}

TEST(Arena, LargeAndOveralignedBlocks) {
  Arena arena;
  arena.make<int>(1);
  auto* big = static_cast<char*>(arena.allocate(1 << 20, 4096));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(big) % 4096, 0u);
  big[0] = big[(1 << 20) - 1] = 1;
  const size_t before = arena.bytes();
  for (int i = 0; i < 100; ++i) arena.make<int>(i);
  EXPECT_EQ(arena.bytes(), before) << "a large block must not close the current slab";
  arena.clear();
  EXPECT_EQ(arena.bytes(), 0u);
  EXPECT_THROW(arena.allocate(SIZE_MAX - 8, 8), std::bad_alloc);
}

TEST(Arena, CopiesSpansAndText) {
  Arena arena;
  std::string text = "weft";
  const std::string_view kept = arena.copy(std::string_view(text));
  text = "gone";
  EXPECT_EQ(kept, "weft");
  EXPECT_TRUE(arena.copy(std::span<const int>()).empty());
  const auto zeros = arena.make_array<int>(1000);
  for (int zero : zeros) ASSERT_EQ(zero, 0);
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
