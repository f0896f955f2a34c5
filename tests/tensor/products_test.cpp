#include <cmath>

#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

class Products : public TensorTest {};

Tensor counting(const Dims& shape) {
  return Tensor::arange(shape.product()).reshape(shape).cast(DType::F32);
}

TEST_F(Products, Matmul) {
  const Tensor a = counting({2, 3}), b = counting({3, 2});
  EXPECT_EQ(shown(a.matmul(b)), "f32 (2, 2) [10, 13, 28, 40]");
  EXPECT_EQ(shown(a.matmul(b[{Slice(), 0}])), "f32 (2) [10, 28]");
  EXPECT_EQ(shown(a[0].matmul(b)), "f32 (2) [10, 13]");
  EXPECT_EQ(shown(a[0].dot(a[1])), "f32 () [14]");
  const Tensor batched = counting({2, 2, 3}).matmul(b);
  EXPECT_EQ(shown(batched), "f32 (2, 2, 2) [10, 13, 28, 40, 46, 67, 64, 94]");
  EXPECT_EQ(counting({5, 1, 2, 3}).matmul(counting({4, 3, 2})).shape(),
            (std::vector<int64_t>{5, 4, 2, 2}));
  EXPECT_EQ(shown(a.linear(b, Tensor::of({100.0f, 200.0f}))), "f32 (2, 2) [110, 213, 128, 240]");
}

TEST_F(Products, MatmulAccumulatesWide) {
  const Tensor a = Tensor::full({1, 300}, 1.0, DType::BF16);
  EXPECT_EQ(shown(a.matmul(a.T())), "bf16 (1, 1) [300]");
  const Tensor i = Tensor::full({1, 4}, 10, DType::I8);
  EXPECT_EQ(shown(i.matmul((i - 9).T())), "i8 (1, 1) [40]");
}

TEST_F(Products, Convolution) {
  const Tensor x = counting({1, 1, 3, 3}), w = Tensor::ones({1, 1, 2, 2});
  EXPECT_EQ(shown(x.conv2d(w)), "f32 (1, 1, 2, 2) [8, 12, 20, 24]");
  EXPECT_EQ(shown(x.conv2d(w, Tensor::of({1.0f}), {.stride = 2})), "f32 (1, 1, 1, 1) [9]");
  EXPECT_EQ(shown(x.conv2d(w, {}, {.dilation = 2})), "f32 (1, 1, 1, 1) [16]");
  EXPECT_EQ(x.conv2d(w, {}, {.padding = 1}).shape(), (std::vector<int64_t>{1, 1, 4, 4}));
  EXPECT_EQ(shown(x.conv2d(w, {}, {.padding = {1, 0, 0, 0}})),  // one column on the left
            "f32 (1, 1, 2, 3) [3, 8, 12, 9, 20, 24]");
  EXPECT_EQ(shown(counting({1, 2, 3}).conv2d(Tensor::ones({1, 2, 2}))), "f32 (1, 1, 2) [8, 12]");
}

TEST_F(Products, ConvolutionWithGroupsAndChannels) {
  const Tensor x = counting({2, 4, 3, 3}), w = counting({6, 2, 2, 2}) * 0.1;
  const Tensor y = x.conv2d(w, {}, {.groups = 2});
  EXPECT_EQ(y.shape(), (std::vector<int64_t>{2, 6, 2, 2}));
  // Each group on its own.
  const auto xs = x.split(2, 1), ws = w.split(3, 0);
  const Tensor expected = Tensor::cat({xs[0].conv2d(ws[0]), xs[1].conv2d(ws[1])}, 1);
  expect_near(y, values(expected));
}

/// Every product by hand.
std::vector<double> transposed_by_hand(const std::vector<double>& x, const std::vector<double>& w,
                                       int64_t n, int64_t k, int64_t stride, int64_t padding) {
  std::vector<double> out(static_cast<size_t>((n - 1) * stride + k - 2 * padding));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < k; ++j) {
      const int64_t at = i * stride + j - padding;
      if (at >= 0 && at < static_cast<int64_t>(out.size()))
        out[static_cast<size_t>(at)] += x[static_cast<size_t>(i)] * w[static_cast<size_t>(j)];
    }
  }
  return out;
}

TEST_F(Products, TransposedConvolution) {
  const Tensor x = sample({1, 1, 4}), w = sample({1, 1, 3}, 2);
  for (const int64_t stride : {1, 2, 3})
    for (const int64_t padding : {0, 1})
      expect_near(x.conv_transpose2d(w, {}, {.stride = stride, .padding = padding}),
                  transposed_by_hand(values(x), values(w), 4, 3, stride, padding));
  EXPECT_EQ(counting({1, 4, 3, 3})
                .conv_transpose2d(counting({4, 3, 2, 2}), {}, {.groups = 2, .stride = 2})
                .shape(),
            (std::vector<int64_t>{1, 6, 6, 6}));
  EXPECT_EQ(counting({1, 1, 3})
                .conv_transpose2d(counting({1, 1, 2}), {}, {.stride = 2, .output_padding = 1})
                .shape(),
            (std::vector<int64_t>{1, 1, 7}));
}

/// How many infinities and NaNs a transposed convolution with a filter of ones makes of one
/// infinity.
int64_t spread_to(const Dims& image, const Dims& filter, const Ints& stride) {
  Tensor x = Tensor::ones(image).flatten().contiguous();
  x.shrink({{17, 18}}).assign(Tensor::full({1}, INFINITY, DType::F32));
  const Tensor y = x.reshape(image).conv_transpose2d(Tensor::ones(filter).contiguous().realize(),
                                                     {}, {.stride = stride});
  return y.isfinite().logical_not().sum().cast(DType::I64).item<int64_t>();
}

// Of taps that a phase of the stride lacks there are no products, not products with zeros.
TEST_F(Products, TransposedConvolutionsSpreadInfinitiesNoFurtherThanTheirTaps) {
  EXPECT_EQ(spread_to({8, 8, 10}, {8, 16, 7}, {2}), 16 * 7);
  EXPECT_EQ(spread_to({8, 8, 10}, {8, 16, 2}, {3}), 16 * 2);
  EXPECT_EQ(spread_to({8, 4, 10, 10}, {4, 1, 1, 5}, {3, 1}), 5);
}

TEST_F(Products, Pools) {
  const Tensor x = counting({1, 1, 4, 5});
  EXPECT_EQ(shown(x.max_pool2d()), "f32 (1, 1, 2, 2) [6, 8, 16, 18]");
  EXPECT_EQ(shown(x.avg_pool2d(2)), "f32 (1, 1, 2, 2) [3, 5, 13, 15]");
  EXPECT_EQ(shown(x.max_pool2d({2, 2}, {.stride = 1})),
            "f32 (1, 1, 3, 4) [6, 7, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19]");
  EXPECT_EQ(shown((-1 - x).max_pool2d({3, 3}, {.stride = 3, .padding = 1})),
            "f32 (1, 1, 2, 2) [-1, -3, -11, -13]");
  EXPECT_EQ(shown(x.max_pool2d({2, 2}, {.ceil_mode = true})),
            "f32 (1, 1, 2, 3) [6, 8, 9, 16, 18, 19]");
  const Tensor y = Tensor::ones({1, 1, 2, 2});
  EXPECT_EQ(shown(y.avg_pool2d({2, 2}, {.padding = 1})),
            "f32 (1, 1, 2, 2) [0.25, 0.25, 0.25, 0.25]");
  EXPECT_EQ(shown(y.avg_pool2d({2, 2}, {.padding = 1, .count_include_pad = false})),
            "f32 (1, 1, 2, 2) [1, 1, 1, 1]");
}

TEST_F(Products, Normalisation) {
  const Tensor x = Tensor::of({{1.0f, 3.0f}, {2.0f, 6.0f}});
  expect_near(x.layernorm(-1, 0), {-1, 1, -1, 1});
  const Tensor two = Tensor::of({2.0f, 4.0f});
  expect_near(x.batchnorm(two, two, Tensor::of({1.0f, 2.0f}), Tensor::of({1.0f, 0.5f})),
              {2, 6, 4, 12});
  expect_near(x.batchnorm({}, {}, two, two), {-2, -4, 0, 8});
}

TEST_F(Products, Attention) {
  const Tensor q = sample({1, 2, 3, 4}), k = sample({1, 2, 3, 4}, 2), v = sample({1, 2, 3, 4}, 3);
  const Tensor scores = q.matmul(k.T()) * 0.5;
  expect_near(q.scaled_dot_product_attention(k, v), values(scores.softmax().matmul(v)));
  const Tensor causal = q.scaled_dot_product_attention(k, v, {.causal = true});
  expect_near(causal[{kEllipsis, 0, Slice()}], values(v[{kEllipsis, 0, Slice()}]));
  const Tensor mask = Tensor::ones({3, 3}, DType::Bool).tril();
  expect_near(q.scaled_dot_product_attention(k, v, {.mask = &mask}), values(causal));
  // A window of 1 sees itself, a window of 2 the one before it too.
  expect_near(q.scaled_dot_product_attention(k, v, {.causal = true, .window = 1}), values(v));
  const Tensor near = mask & Tensor::ones({3, 3}, DType::Bool).triu(-1);
  expect_near(q.scaled_dot_product_attention(k, v, {.causal = true, .window = 2}),
              values(q.scaled_dot_product_attention(k, v, {.mask = &near})));
  expect_near(q.scaled_dot_product_attention(k, v, {.scale = 2}),
              values((q * 4).scaled_dot_product_attention(k, v)));
  const Tensor one_head = q.scaled_dot_product_attention(
      k[{Slice(), Slice(0, 1)}], v[{Slice(), Slice(0, 1)}], {.grouped_queries = true});
  EXPECT_EQ(one_head.shape(), (std::vector<int64_t>{1, 2, 3, 4}));
}

TEST_F(Products, AttentionOfARowThatSeesNothingIsZero) {
  const Tensor q = sample({3, 4}), k = sample({5, 4}, 2), v = sample({5, 2}, 3);
  const Tensor sees =
      Tensor::of({{1, 0, 1, 1, 0}, {0, 0, 0, 0, 0}, {1, 1, 1, 1, 1}}).cast(DType::Bool);
  const Tensor added = sees.where(Tensor::zeros({3, 5}, DType::F64), -INFINITY);
  const Tensor plain = (q.matmul(k.T()) * 0.5 + added)[{Slice(0, 3, 2)}].softmax().matmul(v);
  for (const Tensor& mask : {sees, added}) {
    const Tensor y = q.scaled_dot_product_attention(k, v, {.mask = &mask});
    expect_near(y[1], {0, 0});
    expect_near(y[{Slice(0, 3, 2)}], values(plain));
    const std::vector<Tensor> slopes = y.square().sum().gradient({q, k, v});
    for (const Tensor& slope : slopes)
      for (const double x : values(slope)) EXPECT_TRUE(std::isfinite(x));
    expect_near(slopes[0][1], {0, 0, 0, 0});
  }
  // Beyond the last key a window sees nothing.
  const Tensor far =
      sample({7, 4}).scaled_dot_product_attention(k, v, {.causal = true, .window = 2});
  expect_near(far[6], {0, 0});
  expect_near(far[5], values(v[4]));
}

// ---- losses

TEST_F(Products, Losses) {
  const Tensor x = sample({3, 4}), y = Tensor::of({1, 3, 0});
  const std::vector<double> p = values(x.log_softmax(1));
  const double picked[] = {-p[1], -p[7], -p[8]};
  const double mean = (picked[0] + picked[1] + picked[2]) / 3;
  expect_near(x.sparse_categorical_crossentropy(y), {mean});
  expect_near(x.cross_entropy(y), {mean});
  expect_near(x.cross_entropy(y.one_hot(4).cast(DType::F64)), {mean});
  expect_near(x.log_softmax(1).nll_loss(y), {mean});
  expect_near(x.cross_entropy(y, 0, Reduction::None), {picked[0], picked[1], picked[2]});
  expect_near(x.cross_entropy(y, 0, Reduction::Sum), {3 * mean});
  expect_near(x.cross_entropy(Tensor::of({1, -100, 0})), {(picked[0] + picked[2]) / 2});
  double all = 0;
  for (const double v : p) all -= v / 12;
  expect_near(x.cross_entropy(y, 0.1), {0.9 * mean + 0.1 * all});
  expect_near(x.cross_entropy(y.one_hot(4).cast(DType::F64), 0.1), {0.9 * mean + 0.1 * all});
  const Tensor image = sample({2, 3, 2, 2}),
               labels = Tensor::of({0, 1, 2, 0, 1, 2, 0, 1}).reshape({2, 2, 2});
  expect_near(image.cross_entropy(labels),
              values(image.permute({0, 2, 3, 1}).reshape({8, 3}).cross_entropy(labels.flatten())));
}

TEST_F(Products, BinaryLosses) {
  const Tensor x = Tensor::of({0.0f, 100.0f, -100.0f}), y = Tensor::of({1.0f, 1.0f, 0.0f});
  expect_near(x.binary_crossentropy_logits(y, Reduction::None), {std::log(2.0), 0, 0});
  expect_near(Tensor::of({0.25f}).binary_crossentropy(Tensor::of({1.0f})), {std::log(4.0)});
  expect_near(x.mse_loss(y, Reduction::Sum), {1 + 99.0 * 99 + 100.0 * 100});
}

/// Beyond caches rows are multiplied block by block, in several ways by how many there are; whole
/// numbers say whether each product is there once.
TEST(ProductsOfTheMachine, RowsByALargeMatrix) {
  Context context(Options::from_environment());
  const ContextScope scope(context);
  for (const int64_t columns : {4096, 4101}) {
    const Tensor matrix = Tensor::randint(-3, 4, {701, columns}).realize();
    for (const int64_t rows : {8, 13, 25, 40, 70, 300}) {
      const Tensor x = Tensor::randint(-3, 4, {rows, 701}).realize();
      const Tensor exact = x.matmul(matrix).realize();
      const Tensor floats = matrix.cast(DType::F32).realize();
      const Tensor y = x.cast(DType::F32).realize().matmul(floats) + 1;
      EXPECT_FALSE((y - 1 != exact.cast(DType::F32)).any().item<bool>())
          << rows << " x 701 x " << columns;
      const Tensor down = x.T().cast(DType::F32).contiguous().realize();
      const Tensor turned = floats.T().matmul(down);
      EXPECT_FALSE((turned.T() != exact.cast(DType::F32)).any().item<bool>())
          << columns << " x 701 x " << rows;
    }
  }
}

}  // namespace
}  // namespace weft
