#include "weft/app/plot.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weft {
namespace {

size_t count(const std::string& text, const std::string& part) {
  size_t n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Plot, TicksAreRoundAndInside) {
  EXPECT_EQ(axis_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(axis_ticks(0.12, 0.5, 4), (std::vector<double>{0.2, 0.30000000000000004, 0.4, 0.5}));
  EXPECT_EQ(axis_ticks(-1, 1, 2), (std::vector<double>{-1, 0, 1}));
  EXPECT_EQ(axis_ticks(3, 3, 5), (std::vector<double>{3}));
}

TEST(Plot, SvgHasTitleAxesAndOnePathPerSeries) {
  const Plot plot{"a < b & c",
                  "epoch",
                  {{"loss", {{"train", {0, 1, 2}, {3, 2, 1}}, {"test", {0, 1, 2}, {4, 3, 2}}}},
                   {"accuracy", {{"test", {1, 2}, {50, 75}}}}}};
  const std::string svg = plot_svg(plot);
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_NE(svg.find("a &lt; b &amp; c"), std::string::npos);
  EXPECT_NE(svg.find(">epoch<"), std::string::npos);
  EXPECT_NE(svg.find(">accuracy<"), std::string::npos);
  EXPECT_EQ(count(svg, "<path "), 3u);
  EXPECT_NE(svg.find("M72.0 "), std::string::npos);  // the first point is at the left edge
}

TEST(Plot, ValuesThatAreNotFiniteBreakTheLine) {
  const Plot plot{"", "", {{"y", {{"s", {0, 1, 2, 3}, {1, NAN, 2, 3}}}}}};
  const std::string svg = plot_svg(plot);
  const std::string path = svg.substr(svg.find("<path "));
  EXPECT_EQ(count(path.substr(0, path.find("/>")), "M"), 2u);
  EXPECT_EQ(count(svg, "nan"), 0u);
}

TEST(Plot, NothingToPlotIsNotAnError) {
  EXPECT_NE(plot_svg({"t", "x", {{"y", {{"s", {}, {}}}}}}).find("</svg>"), std::string::npos);
  EXPECT_EQ(sparkline({}, 10), "");
  EXPECT_EQ(plot_text({"y", {}}, 10, 2), "");
}

TEST(Plot, SparklineScalesTheLastValues) {
  const double values[] = {100, 0, 7};
  EXPECT_EQ(sparkline(values, 2), "\u2581\u2588");
  EXPECT_EQ(sparkline(std::vector<double>{1, 1}, 9), "\u2584\u2584");
}

TEST(Plot, TextHasAFallingLine) {
  const std::string text = plot_text({"loss", {{"s", {0, 1}, {1, 0}}}}, 2, 1);
  EXPECT_EQ(text, "loss\n        1 \u2502\u2811\u2884\n");
}

}  // namespace
}  // namespace weft
