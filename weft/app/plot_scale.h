// The range of a plot's axis and where a value lies on it; shared by the SVG and the text form.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "weft/app/plot.h"

namespace weft {

struct PlotScale {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();

  void include(const std::vector<double>& values) {
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  }
  // A range that can be divided by: something was plotted, and not one value only.
  void settle() {
    if (!(least <= most)) least = 0, most = 1;
    if (least == most) {
      const double margin = least == 0 ? 1 : std::abs(least) * 0.1;
      least -= margin;
      most += margin;
    }
  }
  double share(double value) const { return (value - least) / (most - least); }
};

}  // namespace weft
