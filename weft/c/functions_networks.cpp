// Products, convolutions, pools, images: what networks are made of.
#include "weft/c/functions.h"
#include "weft/tensor/einsum.h"
#include "weft/tensor/image.h"
#include "weft/tensor/pooling.h"
#include "weft/tensor/products.h"

namespace weft::c {

WEFT_CHOICE(Resize, "nearest|nearest_exact|linear|cubic|area")
WEFT_CHOICE(Outside, "zeros|border|reflection")

namespace {

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Ints& stride,
              const Ints& padding, const Ints& dilation, int64_t groups) {
  return x.conv2d(weight, bias, {groups, stride, dilation, padding, 0}, CallSite());
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const Ints& stride, const Ints& padding, const Ints& output_padding,
                        const Ints& dilation, int64_t groups) {
  return x.conv_transpose2d(weight, bias, {groups, stride, dilation, padding, output_padding},
                            CallSite());
}

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask,
                 double dropout, bool causal, bool grouped_queries, int64_t window, double scale) {
  const AttentionOptions options{
      mask.defined() ? &mask : nullptr, dropout, causal, grouped_queries, window, scale};
  return query.scaled_dot_product_attention(key, value, options, CallSite());
}

// The pools' options, in the order of their parameters.
#define WEFT_POOL const Ints &stride, const Ints &padding, const Ints &dilation, bool ceil_mode
#define WEFT_POOL_TEXT "stride = [], padding = 0, dilation = 1, ceil_mode = false"
Tensor max_pool2d(const Tensor& x, const Ints& kernel, WEFT_POOL) {
  return x.max_pool2d(kernel, {stride, dilation, padding, ceil_mode, true}, CallSite());
}
ValuesAndPositions max_pool_positions(const Tensor& x, const Ints& kernel, WEFT_POOL) {
  return max_pool2d_with_positions(x, kernel, {stride, dilation, padding, ceil_mode, true},
                                   CallSite());
}
Tensor avg_pool2d(const Tensor& x, const Ints& kernel, WEFT_POOL, bool count_include_pad) {
  return x.avg_pool2d(kernel, {stride, dilation, padding, ceil_mode, count_include_pad},
                      CallSite());
}
Tensor power_pool2d(const Tensor& x, double p, const Ints& kernel, WEFT_POOL) {
  return lp_pool2d(x, p, kernel, {stride, dilation, padding, ceil_mode, true}, CallSite());
}
#undef WEFT_POOL
Tensor max_unpool(const Tensor& x, const Tensor& positions, const Ints& kernel, const Ints& stride,
                  const Ints& padding, const Ints& output_sizes) {
  return max_unpool2d(x, positions, kernel, {stride, 1, padding, false, true}, output_sizes,
                      CallSite());
}
Tensor im2col(const Tensor& x, const Ints& kernel, const Ints& stride, const Ints& padding,
              const Ints& dilation) {
  return unfold(x, kernel, {stride, dilation, padding, false, true}, CallSite());
}
Tensor col2im(const Tensor& x, const Ints& sizes, const Ints& kernel, const Ints& stride,
              const Ints& padding, const Ints& dilation) {
  return fold(x, sizes, kernel, {stride, dilation, padding, false, true}, CallSite());
}

Tensor einsum_in(std::string_view formula, const std::vector<Tensor>& operands,
                 std::optional<DType> dtype) {
  return einsum(formula, operands, dtype.value_or(DType::Void), CallSite());
}

Tensor tensordot_along(const Tensor& x, const Tensor& other, const Ints& x_axes,
                       const Ints& other_axes) {
  return tensordot(x, other, x_axes, other_axes, CallSite());
}

constexpr Function kFunctions[] = {
    row<&Tensor::matmul>("matmul", "x, other"),
    row<outer>("outer", "x, other"),
    row<inner>("inner", "x, other"),
    row<tensordot_along>("tensordot", "x, other, x_axes, other_axes"),
    row<kron>("kron", "x, other"),
    row<cross>("cross", "x, other, axis = -1"),
    row<cdist>("cdist", "x, other, p = 2"),
    row<dist>("dist", "x, other, p = 2"),
    row<&Tensor::dot>("dot", "x, other"),
    row<&Tensor::linear>("linear", "x, weight, bias = none", "weight is (in, out)"),
    row<einsum_in>("einsum", "formula, operands, dtype = none"),
    row<conv2d>("conv2d",
                "x, weight, bias = none, stride = 1, padding = 0, dilation = 1, groups = 1"),
    row<conv_transpose2d>("conv_transpose2d",
                          "x, weight, bias = none, stride = 1, padding = 0, output_padding = 0, "
                          "dilation = 1, groups = 1"),
    row<max_pool2d>("max_pool2d", "x, kernel = [2, 2], " WEFT_POOL_TEXT),
    row<avg_pool2d>("avg_pool2d",
                    "x, kernel = [2, 2], " WEFT_POOL_TEXT ", count_include_pad = true"),
    row<max_pool_positions>("max_pool2d_with_positions", "x, kernel = [2, 2], " WEFT_POOL_TEXT),
    row<max_unpool>("max_unpool2d",
                    "x, positions, kernel = [2, 2], stride = [], padding = 0, output_sizes = []"),
    row<adaptive_avg_pool>("adaptive_avg_pool", "x, sizes"),
    row<adaptive_max_pool>("adaptive_max_pool", "x, sizes"),
    row<power_pool2d>("lp_pool2d", "x, p, kernel = [2, 2], " WEFT_POOL_TEXT),
    row<&Tensor::layernorm>("layernorm", "x, axes = -1, eps = 1e-5"),
    row<&Tensor::batchnorm>("batchnorm", "x, weight, bias, mean, invstd"),
    row<attention>("scaled_dot_product_attention",
                   "query, key, value, mask = none, dropout = 0, causal = false, "
                   "grouped_queries = false, window = 0, scale = 0"),
    row<interpolate>("interpolate", "x, sizes, mode = nearest, align_corners = false"),
    row<grid_sample>("grid_sample",
                     "x, grid, nearest = false, outside = zeros, align_corners = false"),
    row<im2col>("im2col", "x, kernel, stride = 1, padding = 0, dilation = 1", "windows as columns"),
    row<col2im>("col2im", "columns, sizes, kernel, stride = 1, padding = 0, dilation = 1"),
    row<pixel_shuffle>("pixel_shuffle", "x, factor"),
    row<pixel_unshuffle>("pixel_unshuffle", "x, factor"),
    row<channel_shuffle>("channel_shuffle", "x, groups"),
    row<affine_grid>("affine_grid", "theta, height, width, align_corners = false"),
    row<center_crop>("center_crop", "x, height, width"),
    row<random_crop>("random_crop", "x, height, width"),
    row<random_flip>("random_flip", "x, p = 0.5"),
    row<cutmix>("cutmix", "x, labels, size"),
};

}  // namespace

std::span<const Function> network_functions() { return kFunctions; }

}  // namespace weft::c
