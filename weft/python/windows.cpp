// Convolutions, pools, resizing.
#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/tensor/image.h"
#include "weft/tensor/pooling.h"

namespace weft::python {

namespace {

/// The window of a pool: one number is that of two axes, a list of one that of one.
struct Kernel {
  Ints sizes;
};

}  // namespace

}  // namespace weft::python

template <>
struct nanobind::detail::type_caster<weft::python::Kernel> {
  NB_TYPE_CASTER(weft::python::Kernel, const_name("int | Sequence[int]"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    if (!weft::python::to_ints(src.ptr(), value.sizes) || src.is_none()) return false;
    if (!PySequence_Check(src.ptr())) value.sizes.push_back(value.sizes[0]);
    return true;
  }
};

namespace weft::python {

namespace {

Tensor as_dtype(const Tensor& t, std::optional<DType> dtype) {
  return dtype ? t.cast(*dtype, CallSite()) : t;
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor* bias, int64_t groups,
              const Ints& stride, const Ints& dilation, const Ints& padding,
              std::optional<DType> dtype) {
  const ConvOptions options{groups, stride, dilation, padding, 0};
  const Tensor b = bias ? as_dtype(*bias, dtype) : Tensor();
  return as_dtype(x, dtype).conv2d(as_dtype(weight, dtype), b, options, CallSite());
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor* bias, int64_t groups,
                        const Ints& stride, const Ints& dilation, const Ints& padding,
                        const Ints& output_padding) {
  const ConvOptions options{groups, stride, dilation, padding, output_padding};
  return x.conv_transpose2d(weight, bias ? *bias : Tensor(), options, CallSite());
}

Tensor avg_pool2d(const Tensor& x, const Kernel& kernel, const Ints& stride, const Ints& dilation,
                  const Ints& padding, bool ceil_mode, bool count_include_pad) {
  const PoolOptions options{stride, dilation, padding, ceil_mode, count_include_pad};
  return x.avg_pool2d(kernel.sizes, options, CallSite());
}

nb::object max_pool2d(const Tensor& x, const Kernel& kernel, const Ints& stride,
                      const Ints& dilation, const Ints& padding, bool ceil_mode,
                      bool return_indices) {
  const PoolOptions options{stride, dilation, padding, ceil_mode, true};
  if (!return_indices) return nb::cast(x.max_pool2d(kernel.sizes, options, CallSite()));
  const auto found = max_pool2d_with_positions(x, kernel.sizes, options, CallSite());
  return nb::make_tuple(found.values, found.positions);
}

Tensor max_unpool2d(const Tensor& x, const Tensor& indices, const Kernel& kernel,
                    const Ints& stride, const Ints& dilation, const Ints& padding,
                    const Ints& output_size) {
  const PoolOptions options{stride, dilation, padding, false, true};
  // PyTorch takes the whole shape, too: its last axes are the spatial ones.
  const Ints sizes = kernel.sizes;
  Ints spatial;
  for (size_t i = output_size.size() > sizes.size() ? output_size.size() - sizes.size() : 0;
       i < output_size.size(); ++i)
    spatial.push_back(output_size[i]);
  return weft::max_unpool2d(x, indices, sizes, options, spatial, CallSite());
}

Resize resize_of(const std::string& name) {
  constexpr std::pair<std::string_view, Resize> kModes[] = {
      {"nearest", Resize::Nearest}, {"nearest-exact", Resize::NearestExact},
      {"linear", Resize::Linear},   {"bilinear", Resize::Linear},
      {"cubic", Resize::Cubic},     {"bicubic", Resize::Cubic},
      {"area", Resize::Area}};
  for (const auto& [known, mode] : kModes)
    if (known == name) return mode;
  fail("interpolate",
       "mode \"{}\": use \"linear\", \"nearest\", \"nearest-exact\", \"cubic\" or \"area\"", name);
}

void bind_convolutions(TensorClass& c) {
  method(c, "conv2d", conv2d, "weight"_a, "bias"_a = nb::none(), "groups"_a = 1, "stride"_a = 1,
         "dilation"_a = 1, "padding"_a = 0, "dtype"_a = nb::none(),
         "(N, C, spatial...) with a weight (out, C / groups, kernel...): any number of spatial "
         "axes. padding: one number, one per axis, or (last_before, last_after, ..., "
         "first_after).");
  method(c, "conv_transpose2d", conv_transpose2d, "weight"_a, "bias"_a = nb::none(), "groups"_a = 1,
         "stride"_a = 1, "dilation"_a = 1, "padding"_a = 0, "output_padding"_a = 0,
         "The adjoint of conv2d, for a weight (C, out / groups, kernel...).");
}

void bind_pools(TensorClass& c) {
  method(c, "avg_pool2d", avg_pool2d, "kernel_size"_a = nb::make_tuple(2, 2),
         "stride"_a = nb::none(), "dilation"_a = 1, "padding"_a = 0, "ceil_mode"_a = false,
         "count_include_pad"_a = true, "Means of windows over the last axes.");
  method(c, "max_pool2d", max_pool2d, "kernel_size"_a = nb::make_tuple(2, 2),
         "stride"_a = nb::none(), "dilation"_a = 1, "padding"_a = 0, "ceil_mode"_a = false,
         "return_indices"_a = false,
         "Largest elements of windows over the last axes; with return_indices also where in the "
         "flat spatial axes they were.");
  method(c, "max_unpool2d", max_unpool2d, "indices"_a, "kernel_size"_a = nb::make_tuple(2, 2),
         "stride"_a = nb::none(), "dilation"_a = 1, "padding"_a = 0, "output_size"_a = nb::none(),
         "Values back where max_pool2d(return_indices=True) took them from, 0 elsewhere.");
}

PoolOptions windows(const Ints& stride, const Ints& dilation, const Ints& padding) {
  return {stride, dilation, padding, false, true};
}

void bind_more_pools(TensorClass& c) {
  method(c, "adaptive_avg_pool", plain(adaptive_avg_pool), "output_size"_a,
         "Means to these sizes of the last axes: place i of o has elements floor(i n / o) to "
         "ceil((i + 1) n / o).");
  method(c, "adaptive_max_pool", plain(adaptive_max_pool), "output_size"_a,
         "Largest elements in the same way.");
  method(
      c, "lp_pool2d",
      [](const Tensor& x, double p, const Kernel& kernel, const Ints& stride, const Ints& dilation,
         const Ints& padding) {
        return lp_pool2d(x, p, kernel.sizes, windows(stride, dilation, padding), CallSite());
      },
      "norm_type"_a, "kernel_size"_a = nb::make_tuple(2, 2), "stride"_a = nb::none(),
      "dilation"_a = 1, "padding"_a = 0, "(sum of x^p)^(1/p) of windows over the last axes.");
  method(
      c, "unfold2d",
      [](const Tensor& x, const Kernel& kernel, const Ints& dilation, const Ints& padding,
         const Ints& stride) {
        return unfold(x, kernel.sizes, windows(stride, dilation, padding), CallSite());
      },
      "kernel_size"_a, "dilation"_a = 1, "padding"_a = 0, "stride"_a = 1,
      "(n, c, spatial...) to (n, c * kernel, places): every window as a column (im2col).");
  method(
      c, "fold2d",
      [](const Tensor& x, const Ints& sizes, const Kernel& kernel, const Ints& dilation,
         const Ints& padding, const Ints& stride) {
        return fold(x, sizes, kernel.sizes, windows(stride, dilation, padding), CallSite());
      },
      "output_size"_a, "kernel_size"_a, "dilation"_a = 1, "padding"_a = 0, "stride"_a = 1,
      "Columns (n, c * kernel, places) added where unfold2d() took them from.");
}

void bind_augmentation(TensorClass& c) {
  method(c, "center_crop", plain(center_crop), "height"_a, "width"_a,
         "The middle of the last two axes.");
  method(c, "random_crop", plain(random_crop), "height"_a, "width"_a,
         "Each image (n, c, h, w) cut at its own random place.");
  method(c, "random_flip", plain(random_flip), "p"_a = 0.5,
         "Each image (n, c, h, w) mirrored left to right with probability p.");
  method(c, "cutmix", plain(cutmix), "labels"_a, "size"_a,
         "A box of each image from another one, and the labels mixed by area (Yun et al. 2019).");
}

}  // namespace

void bind_windows(TensorClass& c) {
  bind_convolutions(c);
  bind_pools(c);
  bind_more_pools(c);
  bind_augmentation(c);
  method(
      c, "interpolate",
      [](const Tensor& x, const Ints& size, const std::string& mode, bool align_corners) {
        const Resize kind = resize_of(mode);
        const bool bytes = x.dtype() == DType::U8 && kind != Resize::Area;
        if (is_float(x.dtype()) || bytes)
          return interpolate(x, size, kind, align_corners, CallSite());
        const DType wide = bits(x.dtype()) > 16 ? DType::F64 : DType::F32;
        const Tensor y = interpolate(x.cast(wide), size, kind, align_corners, CallSite());
        return y.round().cast(x.dtype());
      },
      "size"_a, "mode"_a = "linear", "align_corners"_a = false,
      "The last axes, as many as there are sizes, resized: \"linear\", \"nearest\", "
      "\"nearest-exact\", \"cubic\" (Keys 1981) or \"area\". Of integers: rounded.");
}

}  // namespace weft::python
