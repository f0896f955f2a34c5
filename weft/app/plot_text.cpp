#include "weft/app/plot.h"
#include "weft/app/plot_scale.h"
#include "weft/base/format.h"

namespace weft {

namespace {

// Braille cells: two dots wide, four high. Bit of the dot at (column, row) within its cell.
constexpr unsigned kDots[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};

std::string utf8_of(unsigned code) {  // U+0800 to U+FFFF
  return {static_cast<char>(0xe0 | code >> 12), static_cast<char>(0x80 | (code >> 6 & 0x3f)),
          static_cast<char>(0x80 | (code & 0x3f))};
}

class Canvas {
 public:
  Canvas(int width, int height) : width_(width), cells_(static_cast<size_t>(width * height)) {}

  void dot(int x, int y) {
    cells_[static_cast<size_t>(y / 4 * width_ + x / 2)] |= kDots[y % 4][x % 2];
  }
  void line(int x0, int y0, int x1, int y1) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i) dot(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps);
  }
  std::string row(int y) const {
    std::string out;
    for (int x = 0; x < width_; ++x) {
      out += utf8_of(0x2800 + cells_[static_cast<size_t>(y * width_ + x)]);
    }
    return out;
  }

 private:
  int width_;
  std::vector<unsigned> cells_;
};

Canvas drawn(const PlotSeries& series, const PlotScale& x, const PlotScale& y, int width,
             int height) {
  Canvas canvas(width, height);
  bool pen_down = false;
  int last_x = 0, last_y = 0;
  for (size_t i = 0; i < series.x.size() && i < series.y.size(); ++i) {
    const bool finite = std::isfinite(series.x[i]) && std::isfinite(series.y[i]);
    if (finite) {
      const int at_x = static_cast<int>(std::lround(x.share(series.x[i]) * (width * 2 - 1)));
      const int at_y = static_cast<int>(std::lround((1 - y.share(series.y[i])) * (height * 4 - 1)));
      canvas.line(pen_down ? last_x : at_x, pen_down ? last_y : at_y, at_x, at_y);
      last_x = at_x;
      last_y = at_y;
    }
    pen_down = finite;
  }
  return canvas;
}

}  // namespace

std::string plot_text(const PlotPanel& panel, int width, int height) {
  if (panel.series.empty() || width < 1 || height < 1) return "";
  const PlotSeries& series = panel.series.front();
  PlotScale x, y;
  x.include(series.x);
  y.include(series.y);
  x.settle();
  y.settle();
  const Canvas canvas = drawn(series, x, y, width, height);
  std::string out = strformat("{}\n", panel.y_label);
  for (int row = 0; row < height; ++row) {
    const std::string label = row == 0            ? strformat("{:.4g}", y.most)
                              : row == height - 1 ? strformat("{:.4g}", y.least)
                                                  : "";
    append_format(out, "{:>9} \u2502{}\n", label, canvas.row(row));
  }
  return out;
}

std::string sparkline(std::span<const double> values, size_t width) {
  if (values.size() > width) values = values.last(width);
  PlotScale scale;
  scale.include({values.begin(), values.end()});
  scale.settle();
  std::string out;
  for (const double value : values) {
    const double share = std::isfinite(value) ? scale.share(value) : 0;
    out += utf8_of(0x2581 + static_cast<unsigned>(std::lround(share * 7)));
  }
  return out;
}

}  // namespace weft
