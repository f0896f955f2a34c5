// Line plots: as SVG for files, as braille dots or one line of blocks for terminals.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace weft {

struct PlotSeries {
  std::string name;
  std::vector<double> x, y;  // of one length; points that are not finite break the line
};

struct PlotPanel {
  std::string y_label;
  std::vector<PlotSeries> series;
};

// Panels lie below each other and share the x axis.
struct Plot {
  std::string title, x_label;
  std::vector<PlotPanel> panels;
};

std::string plot_svg(const Plot& plot);
// `width` by `height` characters plus the axis labels; only the panel's first series.
std::string plot_text(const PlotPanel& panel, int width, int height);
// "▁▃▅█": the last `width` values, scaled to their own range.
std::string sparkline(std::span<const double> values, size_t width);

// About `wanted` round numbers (1, 2 or 5 times a power of ten) inside [least, most].
std::vector<double> axis_ticks(double least, double most, int wanted);

}  // namespace weft
