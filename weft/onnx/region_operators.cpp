// RoiAlign, NonMaxSuppression and com.microsoft's CropAndResize. Semantics: the ONNX operator
// specification, and ONNX Runtime's documentation of its contributed operators.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "weft/onnx/axes.h"
#include "weft/onnx/image_operators.h"

namespace weft::onnx {

// ---- RoiAlign (He et al. 2017)

namespace {

/// Samples along one axis: the two pixels around each and their weights, (regions, bins * samples).
struct Samples {
  Tensor below, above;        ///< i64
  Tensor of_below, of_above;  ///< 0 for samples that are outside, or that the region has not
  Tensor counts;              ///< (regions, 1): samples of a bin
  Tensor has;                 ///< bool: whether the bin has so many
};

struct Regions {
  double scale, offset;
  bool at_least_one;  ///< of a region's size
  int64_t samples;    ///< of a bin along an axis; 0: as many as pixels
};

constexpr int64_t kMostSamples = 1024;  ///< of a bin along an axis; also bins

/// The most samples that a bin of some region has.
int64_t most_samples(const NodeCall& call, const Regions& r, size_t first, int64_t bins) {
  if (r.samples > 0) return r.samples;
  const std::vector<double> regions = call.numbers(1);
  double most = 1;
  for (size_t i = first; i + 2 < regions.size(); i += 4)
    most = std::max(most,
                    std::ceil((regions[i + 2] - regions[i]) * r.scale / static_cast<double>(bins)));
  if (!(most <= kMostSamples))
    call.refuse("a region has {} samples a bin: give sampling_ratio", most);
  return static_cast<int64_t>(most);
}

Samples samples_along(const NodeCall& call, const Regions& r, int64_t column, int64_t bins,
                      int64_t n) {
  const Tensor& regions = call.tensor(1);
  const DType run = wide(regions.dtype());
  const auto edge = [&](int64_t i) {
    return regions.index({Slice(), Slice(i, i + 1)}).cast(run) * r.scale - r.offset;
  };
  const Tensor begin = edge(column);
  Tensor size = edge(column + 2) - begin;
  if (r.at_least_one) size = size.clamp_min(1);
  const Tensor bin = size / static_cast<double>(bins);
  const int64_t most = most_samples(call, r, static_cast<size_t>(column), bins);
  const Tensor counts = r.samples > 0 ? Tensor::full(size.dims(), r.samples, run) : bin.ceil();
  const Tensor of_bin = counted(bins, 3, 1).cast(run), sample = counted(most, 3, 2).cast(run);
  // (regions, bins, samples)
  const Tensor count = counts.unsqueeze(-1), step = bin.unsqueeze(-1);
  const Tensor place = begin.unsqueeze(-1) + (of_bin + (sample + 0.5) / count) * step;
  const auto end = static_cast<double>(n);
  const Tensor there = (place >= -1) & (place <= end) & (sample < count);
  const Tensor at = place.clamp(0, end - 1), below = at.floor();
  const Tensor share = at - below;
  const auto flat = [](const Tensor& t) { return t.flatten(1); };
  return {flat(below.cast(DType::I64)),
          flat((below + 1).clamp_max(end - 1).cast(DType::I64)),
          flat(there.where(1 - share, 0).cast(run)),
          flat(there.where(share, 0).cast(run)),
          counts.clamp_min(1),
          flat((sample < count).expand(place.dims()))};
}

/// (channels, regions, rows, columns): pixels of each region's picture.
Tensor taken(const Tensor& x, const Tensor& picture, const Tensor& row, const Tensor& column) {
  const int64_t h = x.size(2), w = x.size(3);
  const Tensor at = (picture.reshape({-1, 1, 1}) * h + row.unsqueeze(2)) * w + column.unsqueeze(1);
  const Tensor flat = x.transpose(0, 1).flatten(1);
  Dims shape = at.dims();
  shape.insert(0, x.dim(1));
  return flat.index_select(1, at.flatten()).reshape(shape);
}

/// Each sample's four shares of pixels: (channels, regions, rows * samples, columns * samples).
std::array<Tensor, 4> shares_of(const Tensor& x, const Tensor& picture, const Samples& down,
                                const Samples& right) {
  const auto share = [&](const Tensor& row, const Tensor& of_row, const Tensor& column,
                         const Tensor& of_column) {
    return taken(x, picture, row, column) * (of_row.unsqueeze(2) * of_column.unsqueeze(1));
  };
  return {share(down.below, down.of_below, right.below, right.of_below),
          share(down.below, down.of_below, right.above, right.of_above),
          share(down.above, down.of_above, right.below, right.of_below),
          share(down.above, down.of_above, right.above, right.of_above)};
}

/// (channels, regions, rows, columns): means of the samples of each bin, or maxima, which are of
/// the shares and not of their sums.
Tensor pooled(const std::array<Tensor, 4>& shares, const Samples& down, const Samples& right,
              int64_t rows, int64_t columns, bool largest) {
  const auto in_bins = [&](const Tensor& t) {
    return t.unflatten(3, {columns, -1}).unflatten(2, {rows, -1});
  };
  if (largest) {
    const Tensor most = shares[0].maximum(shares[1]).maximum(shares[2].maximum(shares[3]));
    const Tensor has = down.has.unsqueeze(2) & right.has.unsqueeze(1);
    return in_bins(has.where(most, -INFINITY)).max({3, 5});
  }
  const Tensor counts = (down.counts * right.counts).reshape({1, -1, 1, 1});
  return in_bins(shares[0] + shares[1] + shares[2] + shares[3]).sum({3, 5}) / counts;
}

}  // namespace

Values roi_align(const NodeCall& call) {
  const Tensor& given = call.tensor(0);
  const Tensor& regions = call.tensor(1);
  if (given.ndim() != 4 || regions.ndim() != 2 || !(regions.dim(1) == Dim(4)))
    call.refuse("input {} and regions {}: give (n, c, h, w) and (regions, 4)", given.dims().text(),
                regions.dims().text());
  const std::string mode = call.text("mode", "avg");
  if (mode != "avg" && mode != "max") call.refuse("mode is '{}': give avg or max", mode);
  // Pixels' middles are at halves since opset 16.
  const bool half = call.opset() >= 16 &&
                    call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const Regions r{call.number("spatial_scale", 1), half ? 0.5 : 0, !half,
                  call.integer("sampling_ratio", 0)};
  const int64_t rows = call.integer("output_height", 1), columns = call.integer("output_width", 1);
  if (rows < 1 || columns < 1 || r.samples < 0 ||
      std::max({rows, columns, r.samples}) > kMostSamples)
    call.refuse("{} x {} bins of {} samples along each axis: give 1 to {}", rows, columns,
                r.samples, kMostSamples);
  const Tensor x = given.cast(wide(given.dtype()));
  const Samples down = samples_along(call, r, 1, rows, x.size(2));
  const Samples right = samples_along(call, r, 0, columns, x.size(3));
  const auto shares = shares_of(x, call.tensor(2).cast(DType::I64), down, right);
  const Tensor y = pooled(shares, down, right, rows, columns, mode == "max");
  return {y.transpose(0, 1).cast(given.dtype())};
}

// ---- CropAndResize: RoiAlign's regions are shares of the picture here, and bins are samples

namespace {

/// (regions, bins) along an axis of n pixels: from a region's first pixel to its last, or the
/// middle where there is one bin.
Tensor places_along(const Tensor& regions, int64_t column, int64_t bins, int64_t n) {
  const auto edge = [&](int64_t i) {
    return regions.index({Slice(), Slice(i, i + 1)}).cast(DType::F32) * static_cast<double>(n - 1);
  };
  const Tensor begin = edge(column), end = edge(column + 2);
  if (bins == 1) return (begin + end) * 0.5;
  const Tensor step = (end - begin) / static_cast<double>(bins - 1);
  return begin + counted(bins, 2, 1).cast(DType::F32) * step;
}

/// The pixel before and the one after each place, inside of the picture, and the latter's share.
struct Between {
  Tensor below, above, share;
  Tensor inside;  ///< bool

  Between(const Tensor& places, int64_t n, bool nearest) {
    const auto last = static_cast<double>(n - 1);
    inside = (places >= 0) & (places <= last);
    const Tensor at = nearest ? (places + 0.5).floor() : places;
    below = at.floor().clamp(0, last).cast(DType::I64);
    above = at.ceil().clamp(0, last).cast(DType::I64);
    share = at - at.floor();
  }
};

}  // namespace

Values crop_and_resize(const NodeCall& call) {
  const Tensor &x = call.tensor(0), &regions = call.tensor(1);
  const std::vector<int64_t> size = call.ints(3);
  const std::string mode = call.text("mode", "bilinear");
  if (x.ndim() != 4 || regions.ndim() != 2 || !(regions.dim(1) == Dim(4)) || size.size() != 2 ||
      (mode != "bilinear" && mode != "nearest"))
    call.refuse(
        "input {}, regions {}, {} sizes, mode {}: (n, c, h, w), (regions, 4), 2, and "
        "bilinear or nearest",
        x.dims().text(), regions.dims().text(), size.size(), quoted_name(mode));
  if (size[0] < 1 || size[1] < 1 || size[0] > (1 << 20) || size[1] > (1 << 20))
    call.refuse("crops of {} x {} pixels: 1 to 2^20", size[0], size[1]);
  const bool nearest = mode == "nearest";
  const Between down(places_along(regions, 0, size[0], x.size(2)), x.size(2), nearest);
  const Between right(places_along(regions, 1, size[1], x.size(3)), x.size(3), nearest);
  const Tensor picture = call.tensor(2).cast(DType::I64);
  const auto row = [&](const Tensor& of) {
    const Tensor first = taken(x, picture, of, right.below);
    return first + (taken(x, picture, of, right.above) - first) * right.share.unsqueeze(1);
  };
  const Tensor top = row(down.below);
  const Tensor y = top + (row(down.above) - top) * down.share.unsqueeze(2);
  const Tensor inside = down.inside.unsqueeze(2) & right.inside.unsqueeze(1);
  return {inside.where(y, call.number("extrapolation_value", 0)).transpose(0, 1).cast(x.dtype())};
}

// ---- NonMaxSuppression

namespace {

/// Corners, sorted.
struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};

Box box_of(const double* b, bool by_middle) {
  if (by_middle)  // middle column, middle row, width, height
    return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

/// Whether the common part is more than this share of both together.
bool overlap(const Box& a, const Box& b, double share) {
  const double h = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const double w = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (h <= 0 || w <= 0) return false;
  const double both = a.area() + b.area() - h * w;
  return both > 0 && h * w / both > share;
}

struct Limits {
  int64_t most;
  double overlap, score;
};

/// The best boxes, best first, of which none overlaps a better one.
std::vector<int64_t> chosen(const std::vector<Box>& boxes, const double* scores, const Limits& l) {
  std::vector<int64_t> order, kept;
  for (size_t i = 0; i < boxes.size(); ++i)
    if (scores[i] > l.score) order.push_back(static_cast<int64_t>(i));
  std::ranges::sort(order, [&](int64_t a, int64_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  for (const int64_t i : order) {
    if (static_cast<int64_t>(kept.size()) >= l.most) break;
    const auto covers = [&](int64_t k) {
      return overlap(boxes[static_cast<size_t>(k)], boxes[static_cast<size_t>(i)], l.overlap);
    };
    if (std::ranges::none_of(kept, covers)) kept.push_back(i);
  }
  return kept;
}

HostArray rows_of_three(const std::vector<int64_t>& numbers) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return HostArray::owned(DType::I64, {static_cast<int64_t>(numbers.size() / 3), 3},
                          {bytes.begin(), bytes.end()});
}

}  // namespace

// How many boxes there are depends on all of them, so this runs now, on the host.
Values non_max_suppression(const NodeCall& call) {
  const Dims boxes = call.input(0).dims(), scores = call.input(1).dims();
  if (boxes.size() != 3 || scores.size() != 3 || !(boxes[2] == Dim(4)) ||
      !(boxes[0] == scores[0]) || !(boxes[1] == scores[2]))
    call.refuse("boxes {} and scores {}: give (n, boxes, 4) and (n, classes, boxes)", boxes.text(),
                scores.text());
  const std::vector<double> corners = call.numbers(0), of_boxes = call.numbers(1);
  const Limits limits{call.has(2) ? call.integer(2) : 0, call.has(3) ? call.number(3) : 0,
                      call.has(4) ? call.number(4) : -std::numeric_limits<double>::infinity()};
  const bool by_middle = call.integer("center_point_box", 0) != 0;
  const auto pictures = boxes[0].value(), count = boxes[1].value(), classes = scores[1].value();
  std::vector<int64_t> found;
  for (int64_t n = 0; n < pictures; ++n) {
    std::vector<Box> all;
    for (int64_t i = 0; i < count; ++i)
      all.push_back(box_of(&corners[static_cast<size_t>((n * count + i) * 4)], by_middle));
    for (int64_t c = 0; c < classes && count > 0; ++c) {
      const double* mine = &of_boxes[static_cast<size_t>((n * classes + c) * count)];
      for (const int64_t i : chosen(all, mine, limits)) found.insert(found.end(), {n, c, i});
    }
  }
  return {Value(rows_of_three(found))};
}

}  // namespace weft::onnx
