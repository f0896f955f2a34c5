// What a cache keeps is bounded, in entries and in bytes; and the caches of a context say how much.
#include <memory>

#include "tests/run/fixture.h"
#include "weft/run/lru_cache.h"
#include "weft/run/run_state.h"
#include "weft/run/stats.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

struct Cache {
  Graph graph{Graph::Sharing::Shared};
  LruCache<std::shared_ptr<int>> entries;
  Cache(size_t most, size_t most_bytes) : entries(graph, most, most_bytes) {}
  CacheKey key(int64_t i) { return {graph.index(i), {}}; }
  void add(int64_t i, size_t bytes) { entries.insert(key(i), std::make_shared<int>(i), bytes); }
  bool has(int64_t i) { return entries.find(key(i)) != nullptr; }
};

TEST(LruCache, KeepsTheNewestWithinBothBounds) {
  for (const size_t most : {1, 3, 10})
    for (const size_t most_bytes : {1, 100, 1000})
      for (const size_t each : {0, 7, 100, 5000}) {
        Cache cache(most, most_bytes);
        for (int64_t i = 0; i < 20; ++i) {
          cache.add(i, each);
          const CacheCounts counts = cache.entries.counts();
          const auto held = static_cast<size_t>(counts.entries);
          EXPECT_TRUE(cache.has(i)) << "the newest stays";
          EXPECT_LE(held, most);
          EXPECT_EQ(static_cast<size_t>(counts.bytes), held * each);
          EXPECT_TRUE(held == 1 || held * each <= most_bytes);
          EXPECT_EQ(counts.entries + counts.evictions, i + 1);
        }
        cache.entries.clear();
        EXPECT_EQ(cache.entries.counts().bytes, 0);
        EXPECT_EQ(cache.graph.sweep(), 20u) << "an entry that is gone leaves its key";
      }
}

TEST(LruCache, WhatWasFoundLastGoesLast) {
  Cache cache(10, 300);
  for (int64_t i = 0; i < 3; ++i) cache.add(i, 100);
  EXPECT_TRUE(cache.has(0));
  cache.add(3, 100);
  EXPECT_TRUE(cache.has(0));
  EXPECT_FALSE(cache.has(1));
  cache.add(4, 250);
  EXPECT_TRUE(cache.has(4));
  EXPECT_FALSE(cache.has(0) || cache.has(2) || cache.has(3));
}

TEST(LruCache, WhatIsErasedLeavesTheRest) {
  Cache cache(10, 1000);
  for (int64_t i = 0; i < 6; ++i) cache.add(i, 10 * static_cast<size_t>(i));
  cache.entries.erase_if([](const CacheKey&, const std::shared_ptr<int>& value, size_t bytes) {
    return *value % 2 == 0 && bytes > 0;
  });
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(cache.has(i), i == 0 || i % 2 == 1) << i;
  EXPECT_EQ(cache.entries.counts().entries, 4);
  EXPECT_EQ(cache.entries.counts().bytes, 10 + 30 + 50);
  EXPECT_EQ(cache.graph.sweep(), 2u);
}

/// Code, keys and steps are counted; nothing of them is left behind.
TEST(LruCache, ContextsCountWhatTheirCachesHold) {
  Context context(Options::from_environment());
  const ContextScope scope(context);
  for (int64_t n = 2; n < 40; ++n) {
    const RunStats before = run_stats(context);
    Tensor::arange(n).sin().sum().realize();
    const RunStats after = run_stats(context);
    EXPECT_GT(after.schedules.bytes, before.schedules.bytes);
    const int64_t kernels = after.kernel_cache.entries - before.kernel_cache.entries;
    EXPECT_GE(after.kernel_cache.bytes, before.kernel_cache.bytes + 500 * kernels);
  }
  clear_run_caches(context);
  EXPECT_EQ(run_stats(context).schedules.bytes, 0);
  EXPECT_EQ(run_stats(context).kernel_cache.bytes, 0);
  EXPECT_LT(context.get<RunState>().graph.live_nodes(), 100u);
}

}  // namespace
}  // namespace weft
