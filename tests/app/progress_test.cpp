#include "weft/app/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "weft/base/options.h"

namespace weft {
namespace {

TEST(Progress, LineShowsShareRateAndTimeLeft) {
  const ProgressBar bar("epoch 1", 1000, "images", Options(), nullptr);
  EXPECT_EQ(bar.line(250, 10, "loss 0.5"),
            "epoch 1 [######..................]  25% 25 images/s, 30.0 s left, loss 0.5");
  EXPECT_EQ(bar.line(1000, 40, ""), "epoch 1 [########################] 100% 25 images/s, 40.0 s");
}

TEST(Progress, PlainLinesWhenNotATerminal) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* memory = ::open_memstream(&text, &size);
  {
    ProgressBar bar("x", 10, "steps", Options(), memory);
    for (int i = 0; i < 10; ++i) bar.update(i);
    bar.finish("done");
  }
  std::fclose(memory);
  const std::string out(text, size);
  std::free(text);
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'), 1) << out;
  EXPECT_EQ(out.find('\r'), std::string::npos);
  EXPECT_NE(out.find("100%"), std::string::npos);
}

TEST(Progress, HumanSeconds) {
  EXPECT_EQ(human_seconds(3.21), "3.2 s");
  EXPECT_EQ(human_seconds(247), "4 min 07 s");
  EXPECT_EQ(human_seconds(3720), "1 h 02 min");
}

}  // namespace
}  // namespace weft
