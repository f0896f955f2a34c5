#include "weft/io/data_loader.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "tests/io/scratch_dir.h"

namespace weft {
namespace {

HostArray counting(int64_t rows, int64_t width) {
  std::vector<int32_t> values(static_cast<size_t>(rows * width));
  std::iota(values.begin(), values.end(), 0);
  std::vector<std::byte> bytes(values.size() * 4);
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return HostArray::owned(DType::I32, {rows, width}, std::move(bytes));
}

// The first element of every row of every batch.
std::vector<int> firsts(DataLoader::Epoch epoch) {
  std::vector<int> all;
  for (const Batch& batch : epoch) {
    for (const int value : batch[0][{Slice(), 0}].to_vector<int>()) all.push_back(value);
  }
  return all;
}
std::vector<int> sorted(std::vector<int> values) {
  std::ranges::sort(values);
  return values;
}

TEST(DataLoaderTest, GivesEveryRowOnceInBatches) {
  for (const int64_t prefetch : {0, 1, 3}) {
    const DataLoader loader({counting(7, 2), counting(7, 1)}, {.batch = 3, .prefetch = prefetch});
    EXPECT_EQ(loader.batches(), 3);
    auto epoch = loader.epoch(0);
    std::vector<std::vector<int64_t>> shapes;
    while (const std::optional<Batch> batch = epoch.next()) {
      ASSERT_EQ(batch->size(), 2u);
      shapes.push_back((*batch)[0].shape());
    }
    EXPECT_EQ(shapes, (std::vector<std::vector<int64_t>>{{3, 2}, {3, 2}, {1, 2}}));
    EXPECT_FALSE(epoch.next());
    EXPECT_EQ(firsts(loader.epoch(0)), (std::vector<int>{0, 2, 4, 6, 8, 10, 12}));
  }
}

TEST(DataLoaderTest, ArraysStayTogether) {
  const DataLoader loader({counting(9, 1), counting(9, 1)}, {.batch = 4, .shuffle = true});
  for (const Batch& batch : loader.epoch(0)) {
    EXPECT_EQ(batch[0].to_vector<int>(), batch[1].to_vector<int>());
  }
}

TEST(DataLoaderTest, TheOrderDependsOnSeedAndEpoch) {
  const auto order = [](uint64_t seed, int64_t epoch) {
    return firsts(DataLoader({counting(50, 1)}, {.shuffle = true, .seed = seed}).epoch(epoch));
  };
  const std::vector<int> first = order(1, 0);
  EXPECT_EQ(order(1, 0), first);
  EXPECT_NE(order(1, 1), first);
  EXPECT_NE(order(2, 0), first);
  std::vector<int> all(50);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted(first), all);
  EXPECT_EQ(sorted(order(1, 1)), all);
}

// So that a training that is resumed elsewhere has the same batches.
TEST(DataLoaderTest, TheOrderIsTheSameOnEveryMachine) {
  const DataLoader loader({counting(8, 1)}, {.shuffle = true, .seed = 7});
  EXPECT_EQ(loader.order(3), (std::vector<int64_t>{4, 6, 2, 1, 7, 0, 3, 5}));
}

TEST(DataLoaderTest, DropsASmallLastBatchIfAsked) {
  const DataLoader loader({counting(7, 1)}, {.batch = 3, .drop_last = true});
  EXPECT_EQ(loader.batches(), 2);
  EXPECT_EQ(firsts(loader.epoch(0)), (std::vector<int>{0, 1, 2, 3, 4, 5}));
}

TEST(DataLoaderTest, ResumesWithinAnEpoch) {
  const DataLoader loader({counting(10, 1)}, {.batch = 3, .shuffle = true});
  const std::vector<int> whole = firsts(loader.epoch(2));
  EXPECT_EQ(firsts(loader.epoch(2, 2)), std::vector<int>(whole.begin() + 6, whole.end()));
  EXPECT_TRUE(firsts(loader.epoch(2, 4)).empty());
  EXPECT_ERROR(loader.epoch(2, 5), "batch 5 of an epoch of 4");
}

TEST(DataLoaderTest, FetchesAheadOnAThreadOfItsOwn) {
  std::atomic<int> fetched = 0;
  std::thread::id who;
  const DataLoader loader(
      20,
      [&](const std::vector<int64_t>& rows) {
        who = std::this_thread::get_id();
        ++fetched;
        return std::vector<HostArray>{counting(static_cast<int64_t>(rows.size()), 1)};
      },
      {.batch = 2, .prefetch = 3});
  {
    auto epoch = loader.epoch(0);
    epoch.next();
    // One was taken, three are waiting, and the next one waits for room.
    while (fetched < 5) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(fetched, 5);
  }  // and stops in the middle
  EXPECT_NE(who, std::this_thread::get_id());
  EXPECT_EQ(fetched, 5);
}

TEST(DataLoaderTest, WhatFetchThrowsIsThrownByNext) {
  for (const int64_t prefetch : {0, 2}) {
    const DataLoader loader(4,
                            [](const std::vector<int64_t>& rows) -> std::vector<HostArray> {
                              if (rows[0] == 2) throw std::runtime_error("no row 2");
                              return {counting(1, 1)};
                            },
                            {.batch = 1, .prefetch = prefetch});
    auto epoch = loader.epoch(0);
    EXPECT_TRUE(epoch.next());
    EXPECT_TRUE(epoch.next());
    EXPECT_THROW(epoch.next(), std::runtime_error);
    EXPECT_THROW(epoch.next(), std::runtime_error);
  }
}

// A child has not the thread that fetches: it goes on without, and ends.
TEST(DataLoaderTest, EpochsGoOnInForkedChildren) {
  const DataLoader loader({counting(20, 1)}, {.batch = 1, .shuffle = true, .prefetch = 2});
  const std::vector<int> whole = firsts(loader.epoch(0));
  auto epoch = std::make_unique<DataLoader::Epoch>(loader.epoch(0));
  EXPECT_TRUE(epoch->next());
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    std::vector<int> rest{whole[0]};
    while (const auto batch = epoch->next()) rest.push_back((*batch)[0].to_vector<int>()[0]);
    epoch.reset();
    ::_exit(rest == whole ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(epoch->next());
}

TEST(DataLoaderTest, ErrorsSayWhatDoesNotFit) {
  EXPECT_ERROR(DataLoader(std::vector<HostArray>()), "there are no arrays");
  EXPECT_ERROR(DataLoader({counting(3, 1), counting(4, 1)}), "shapes (3, 1) and (4, 1)");
  EXPECT_ERROR(DataLoader({counting(0, 1)}), "the data set has 0 rows");
  EXPECT_ERROR(DataLoader({counting(3, 1)}, {.batch = 0}), "a batch must be 1 at least, not 0");
  EXPECT_ERROR(DataLoader({counting(3, 1)}, {.prefetch = -1}), "prefetch must be 0 at least");
  EXPECT_ERROR(DataLoader({counting(3, 1)}, {.batch = 4, .drop_last = true}),
               "a batch of 4 is more than all 3 rows");
}

}  // namespace
}  // namespace weft
