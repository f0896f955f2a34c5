// Images (n, channels, spatial...): resizing, sampling, patches, and what augmentation needs.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft {

enum class Resize : uint8_t {
  Nearest,       ///< source floor(i n / o)
  NearestExact,  ///< source floor((i + 1/2) n / o)
  Linear,        ///< along each axis between the two nearest
  Cubic,         ///< Keys 1981, a = -3/4, between the four nearest; repeats the border
  Area,          ///< the mean of what an output covers, as adaptive_avg_pool
};
/// x's last axes, as many as there are sizes, resized. Pixels are areas (output i's middle is (i +
/// 1/2) n / o - 1/2), or with align_corners points whose first and last stay (Linear and Cubic).
/// Floats, except the nearest modes.
Tensor interpolate(const Tensor& x, const Ints& sizes, Resize mode = Resize::Nearest,
                   bool align_corners = false, CallSite = CallSite::here());

/// What grid_sample reads outside the image: 0, the border, or the image mirrored.
enum class Outside : uint8_t { Zeros, Border, Reflection };
/// x (n, c, h, w) at grid (n, oh, ow, 2) to (n, c, oh, ow): the grid holds (column, row), -1 and 1
/// are the first and last pixels' outer edges, or their middles with align_corners. Bilinear or
/// nearest.
Tensor grid_sample(const Tensor& x, const Tensor& grid, bool nearest = false,
                   Outside outside = Outside::Zeros, bool align_corners = false,
                   CallSite = CallSite::here());

/// (n, c, spatial...) to (n, c * kernel, places): every window as a column (im2col). The options'
/// stride defaults to 1.
Tensor unfold(const Tensor& x, const Ints& kernel, const PoolOptions& options = {},
              CallSite = CallSite::here());
/// Its adjoint: columns (n, c * kernel, places) added where they came from in (n, c, sizes...).
Tensor fold(const Tensor& columns, const Ints& sizes, const Ints& kernel,
            const PoolOptions& options = {}, CallSite = CallSite::here());

/// (..., c r^2, h, w) to (..., c, h r, w r): each pixel a square of r x r from as many channels
/// (Shi et al. 2016); and back.
Tensor pixel_shuffle(const Tensor& x, int64_t factor, CallSite = CallSite::here());
Tensor pixel_unshuffle(const Tensor& x, int64_t factor, CallSite = CallSite::here());
/// (n, c, ...): channels of `groups` groups in turns (Zhang et al. 2018).
Tensor channel_shuffle(const Tensor& x, int64_t groups, CallSite = CallSite::here());
/// The grid (n, h, w, 2) that grid_sample reads through the affine maps theta (n, 2, 3).
Tensor affine_grid(const Tensor& theta, int64_t height, int64_t width, bool align_corners = false,
                   CallSite = CallSite::here());

/// The middle of the last two axes, cut to (h, w).
Tensor center_crop(const Tensor& x, int64_t height, int64_t width, CallSite = CallSite::here());
/// Each image (n, c, h, w) cut to (height, width) at its own random place, or mirrored left to
/// right with probability p.
Tensor random_crop(const Tensor& x, int64_t height, int64_t width, CallSite = CallSite::here());
Tensor random_flip(const Tensor& x, double p = 0.5, CallSite = CallSite::here());
/// A box of size x size at each image's own random place, from the image that a random permutation
/// puts there, and labels (n, ...) mixed by area (Yun et al. 2019).
std::pair<Tensor, Tensor> cutmix(const Tensor& x, const Tensor& labels, int64_t size,
                                 CallSite = CallSite::here());

}  // namespace weft
