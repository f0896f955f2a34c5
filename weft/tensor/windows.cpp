#include "weft/tensor/windows.h"

#include "weft/tensor/access.h"

namespace weft::windows {

namespace {

// Beyond what memory holds; sums and products of a few of these fit in 64 bits.
constexpr int64_t kMost = int64_t{1} << 31;

}  // namespace

Ints steps(const char* tag, const char* what, const Ints& given, size_t spatial) {
  const Ints all = per_axis(tag, what, given, spatial);
  for (const int64_t step : all)
    if (step < 1 || step > kMost)
      fail(tag, "{} {} must be at least 1 and at most {}", what, step, kMost);
  return all;
}

std::vector<DimPair> pad_amounts(const char* tag, const Tensor& x, const Ints& padding,
                                 size_t spatial) {
  std::vector<DimPair> amounts(x.ndim(), DimPair(0, 0));
  const size_t first = x.ndim() - spatial;
  const bool pairs = padding.size() == 2 * spatial && spatial > 0;
  const Ints each = pairs ? padding : per_axis(tag, "padding", padding, spatial);
  for (const int64_t amount : each)
    if (amount < -kMost || amount > kMost)
      fail(tag, "padding {} must lie in [{}, {}]", amount, -kMost, kMost);
  for (size_t i = 0; i < spatial; ++i) {
    const size_t at = pairs ? 2 * (spatial - 1 - i) : i;
    amounts[first + i] = {each[at], each[pairs ? at + 1 : at]};
  }
  return amounts;
}

Tensor over(const char* tag, const Tensor& x, const Ints& kernel, const Ints& stride,
            const Ints& dilation) {
  const auto rank = static_cast<int64_t>(x.ndim());
  const auto spatial = static_cast<int64_t>(kernel.size());
  Tensor y = x;
  for (int64_t i = 0; i < spatial; ++i) {
    const auto k = static_cast<size_t>(i);
    if (kernel[k] < 1 || kernel[k] > kMost)
      fail(tag, "kernel size {} must be at least 1 and at most {}", kernel[k], kMost);
    const int64_t reach = dilation[k] * (kernel[k] - 1) + 1;
    if (x.dim(rank - spatial + i).max() < reach)
      fail(tag,
           "a kernel of {} (dilation {}) reaches over {} places, but axis {} of the padded input "
           "{} has "
           "{}: pad more or use a smaller kernel",
           kernel[k], dilation[k], reach, rank - spatial + i, x.dims().text(),
           x.dim(rank - spatial + i).text());
    y = y.window(rank - spatial + i, kernel[k], stride[k], dilation[k]);
  }
  return y;
}

Axes last_axes(size_t count) {
  Axes axes;
  for (size_t i = count; i > 0; --i) axes.push_back(-static_cast<int64_t>(i));
  return axes;
}

}  // namespace weft::windows
