// Drawings that are refined while others are answered.
#include "weft/viz/drawings.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

namespace weft::viz {
namespace {

std::vector<int> niceness_of_threads() {
  std::vector<int> all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    all.push_back(
        ::getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoi(thread.path().filename()))));
  return all;
}

TEST(Drawings, TheThreadThatLaysOutGivesWayToAllOthers) {
  const int own = ::getpriority(PRIO_PROCESS, 0);
  const int wanted = std::min(own + 10, 19);  // 19: nothing gives way more
  const size_t before = niceness_of_threads().size();
  const Drawings drawings;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::vector<int> now;
  do {
    now = niceness_of_threads();
  } while (std::ranges::count(now, wanted) != (wanted == own ? static_cast<int>(now.size()) : 1) &&
           std::chrono::steady_clock::now() < end);
  EXPECT_EQ(now.size(), before + 1);
  EXPECT_EQ(std::ranges::count(now, wanted), wanted == own ? static_cast<int>(now.size()) : 1);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), own);
}

}  // namespace
}  // namespace weft::viz
