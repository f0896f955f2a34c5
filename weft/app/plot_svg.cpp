#include "weft/app/plot.h"
#include "weft/app/plot_scale.h"
#include "weft/base/format.h"

namespace weft {

namespace {

constexpr double kWidth = 760, kPanelHeight = 240;
constexpr double kLeft = 72, kRight = 20, kTop = 48, kGap = 28, kBottom = 56;
// Okabe and Ito's palette: told apart with any colour vision.
constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default: out += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
  }
  return out;
}

class SvgPlot {
 public:
  explicit SvgPlot(const Plot& plot) : plot_(plot) {
    for (const PlotPanel& panel : plot.panels) {
      for (const PlotSeries& series : panel.series) x_.include(series.x);
    }
    x_.settle();
  }

  std::string draw() {
    const double panels = static_cast<double>(plot_.panels.size());
    const double height = kTop + panels * (kPanelHeight + kGap) - kGap + kBottom;
    append_format(out_,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                  "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"13\">\n"
                  "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                  kWidth, height);
    text(kWidth / 2, 28, "middle", plot_.title, "font-size=\"17\" font-weight=\"bold\"");
    double top = kTop;
    for (const PlotPanel& panel : plot_.panels) {
      draw_panel(panel, top);
      top += kPanelHeight + kGap;
    }
    draw_x_axis(top - kGap);
    return out_ + "</svg>\n";
  }

 private:
  double x_at(double value) const { return kLeft + x_.share(value) * (kWidth - kLeft - kRight); }
  double y_at(double value) const { return bottom_ - y_.share(value) * kPanelHeight; }

  void text(double x, double y, const char* anchor, const std::string& content,
            const char* style = "") {
    append_format(out_, "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y,
                  anchor, style, escaped(content));
  }
  void line(double x1, double y1, double x2, double y2, const char* colour) {
    append_format(out_,
                  "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
                  "stroke=\"{}\"/>\n",
                  x1, y1, x2, y2, colour);
  }

  void draw_panel(const PlotPanel& panel, double top) {
    bottom_ = top + kPanelHeight;
    y_ = {};
    for (const PlotSeries& series : panel.series) y_.include(series.y);
    y_.settle();
    for (const double tick : axis_ticks(y_.least, y_.most, 5)) {
      line(kLeft, y_at(tick), kWidth - kRight, y_at(tick), "#dddddd");
      text(kLeft - 8, y_at(tick) + 4, "end", strformat("{:g}", tick));
    }
    line(kLeft, top, kLeft, bottom_, "#333333");
    line(kLeft, bottom_, kWidth - kRight, bottom_, "#333333");
    append_format(out_,
                  "<text transform=\"translate(18,{:.1f}) rotate(-90)\" "
                  "text-anchor=\"middle\">{}</text>\n",
                  top + kPanelHeight / 2, escaped(panel.y_label));
    for (size_t i = 0; i < panel.series.size(); ++i) draw_series(panel.series[i], i, top);
  }

  void draw_series(const PlotSeries& series, size_t index, double top) {
    const char* colour = kColours[index % std::size(kColours)];
    std::string path;
    bool pen_down = false;
    for (size_t i = 0; i < series.x.size() && i < series.y.size(); ++i) {
      const bool finite = std::isfinite(series.x[i]) && std::isfinite(series.y[i]);
      if (finite) {
        append_format(path, "{}{:.1f} {:.1f}", pen_down ? 'L' : 'M', x_at(series.x[i]),
                      y_at(series.y[i]));
      }
      pen_down = finite;
    }
    append_format(out_, "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n", path,
                  colour);
    const double legend = top + 16 + 18 * static_cast<double>(index);
    line(kWidth - kRight - 24, legend - 4, kWidth - kRight, legend - 4, colour);
    text(kWidth - kRight - 30, legend, "end", series.name);
  }

  void draw_x_axis(double bottom) {
    for (const double tick : axis_ticks(x_.least, x_.most, 8)) {
      line(x_at(tick), bottom, x_at(tick), bottom + 5, "#333333");
      text(x_at(tick), bottom + 20, "middle", strformat("{:g}", tick));
    }
    text((kLeft + kWidth - kRight) / 2, bottom + 42, "middle", plot_.x_label);
  }

  const Plot& plot_;
  PlotScale x_, y_;
  double bottom_ = 0;
  std::string out_;
};

}  // namespace

std::string plot_svg(const Plot& plot) { return SvgPlot(plot).draw(); }

std::vector<double> axis_ticks(double least, double most, int wanted) {
  const double rough = (most - least) / std::max(1, wanted);
  if (!(rough > 0) || !std::isfinite(rough)) return {least};
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / power;
  const double step = power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
  std::vector<double> ticks;
  // Counted, not accumulated: sums of 0.1 drift.
  for (double i = std::ceil(least / step - 1e-9); i * step <= most + step * 1e-9; ++i) {
    ticks.push_back(i == 0 ? 0.0 : i * step);
  }
  return ticks;
}

}  // namespace weft
