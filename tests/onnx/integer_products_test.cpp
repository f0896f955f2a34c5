// Products and convolutions of bytes: every mix of signs, zero points, groups and borders against
// loops over integers, and dequantised values against the same operators on floats.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/onnx/one_node.h"
#include "weft/base/context.h"
#include "weft/onnx/image_order.h"

namespace weft::onnx {
namespace {

struct Bytes {
  DType dtype;
  std::vector<int64_t> elements;

  Bytes(DType d, int64_t count, uint32_t seed) : dtype(d) {
    for (uint32_t state = seed; std::ssize(elements) < count;) {
      state = state * 1664525 + 1013904223;
      elements.push_back(static_cast<int64_t>(state >> 24) - (d == DType::I8 ? 128 : 0));
    }
  }
  Value value(const Dims& shape) const {
    return known(shape, {elements.begin(), elements.end()}, dtype);
  }
};

/// A lazy value of the same elements: nobody knows them before they run.
Value computed(const Value& x) { return {(x.tensor().contiguous() + 0).cast(x.dtype())}; }

struct Convolution {
  DType input, weight;
  int64_t channels, outputs, kernel, stride, pad, groups, zero, weight_zero;
  static constexpr int64_t kSize = 6;

  int64_t each() const { return channels / groups; }
  int64_t size() const { return (kSize + 2 * pad - kernel) / stride + 1; }
  Bytes x() const { return {input, channels * kSize * kSize, 1}; }
  Bytes w() const { return {weight, outputs * each() * kernel * kernel, 2}; }
  std::vector<Attribute> attributes() const {
    return {attr("pads", ints{pad, pad, pad, pad}), attr("strides", ints{stride, stride}),
            attr("group", groups)};
  }

  int64_t sum(const Bytes& x, const Bytes& w, int64_t o, int64_t row, int64_t column) const {
    int64_t total = 0;
    for (int64_t c = 0; c < each(); ++c)
      for (int64_t i = 0; i < kernel; ++i)
        for (int64_t j = 0; j < kernel; ++j) {
          const int64_t y = row * stride + i - pad, z = column * stride + j - pad;
          if (y < 0 || z < 0 || y >= kSize || z >= kSize) continue;
          const int64_t channel = o / (outputs / groups) * each() + c;
          total += (x.elements[static_cast<size_t>((channel * kSize + y) * kSize + z)] - zero) *
                   (w.elements[static_cast<size_t>(((o * each() + c) * kernel + i) * kernel + j)] -
                    weight_zero);
        }
    return total;
  }
  std::vector<int64_t> sums() const {
    const Bytes left = x(), right = w();
    std::vector<int64_t> all;
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t row = 0; row < size(); ++row)
        for (int64_t column = 0; column < size(); ++column)
          all.push_back(sum(left, right, o, row, column));
    return all;
  }
  Values inputs() const {
    return {x().value({1, channels, kSize, kSize}), w().value({outputs, each(), kernel, kernel}),
            known(Dims{}, {static_cast<double>(zero)}, input),
            known(Dims{}, {static_cast<double>(weight_zero)}, weight)};
  }
};

std::vector<int64_t> whole(const Value& y) {
  return y.tensor().cast(DType::I64).flatten().to_vector<int64_t>();
}

constexpr DType kU = DType::U8, kS = DType::I8;
const Convolution kConvolutions[] = {
    {kU, kS, 8, 40, 3, 1, 1, 1, 3, 0},   {kU, kS, 3, 32, 3, 2, 1, 1, 7, 0},
    {kS, kS, 8, 40, 1, 1, 0, 1, -5, 2},  {kU, kU, 5, 24, 3, 1, 1, 1, 128, 120},
    {kU, kU, 4, 16, 2, 2, 0, 1, 0, 128}, {kS, kS, 12, 24, 3, 1, 2, 3, 4, 0},
    {kU, kS, 6, 6, 3, 1, 1, 6, 9, 1},    {kS, kU, 6, 12, 3, 2, 1, 6, -128, 200},
};

TEST(IntegerProducts, ConvolutionsAreThoseOfIntegers) {
  for (const Convolution& c : kConvolutions) {
    const std::vector<int64_t> wanted = c.sums();
    Values inputs = c.inputs();
    for (const bool known_zeros : {true, false}) {
      if (!known_zeros)
        for (Value& v : inputs) v = computed(v);
      EXPECT_EQ(whole(run_node("ConvInteger", 10, c.attributes(), inputs)[0]), wanted)
          << c.channels << " channels in " << c.groups << " groups, zeros " << c.zero << " and "
          << c.weight_zero << (known_zeros ? "" : ", computed");
    }
  }
}

int64_t quantised(double x, int64_t zero, DType d) {
  const double low = d == DType::I8 ? -128 : 0;
  return static_cast<int64_t>(
      std::clamp(std::nearbyint(x) + static_cast<double>(zero), low, low + 255));
}

TEST(IntegerProducts, QuantisedConvolutionsRoundTheirSums) {
  for (const Convolution& c : kConvolutions) {
    const Values in = c.inputs();
    const float scale = 0.25F * 0.5F / 64;
    std::vector<int64_t> wanted;
    for (size_t i = 0; const int64_t sum : c.sums()) {
      const int64_t bias =
          100 * static_cast<int64_t>(i++ / static_cast<size_t>(c.size() * c.size()));
      wanted.push_back(quantised(static_cast<float>(sum + bias) * scale, 17, c.input));
    }
    std::vector<double> biases;
    for (int64_t o = 0; o < c.outputs; ++o) biases.push_back(static_cast<double>(100 * o));
    const Values y = run_node("QLinearConv", 10, c.attributes(),
                              {in[0], known(Dims{}, {0.25}), in[2], in[1], known(Dims{}, {0.5}),
                               in[3], known(Dims{}, {64}), known(Dims{}, {17}, c.input),
                               known({c.outputs}, biases, DType::I32)});
    EXPECT_EQ(whole(y[0]), wanted) << c.channels << " channels in " << c.groups << " groups";
    EXPECT_TRUE(has_channels_last(y[0].tensor()));
  }
}

TEST(IntegerProducts, MatricesAreThoseOfIntegers) {
  constexpr int64_t m = 33, k = 37, n = 40;
  for (const DType left : {kU, kS})
    for (const DType right : {kU, kS})
      for (const bool zeros : {false, true}) {
        const Bytes a(left, m * k, 3), b(right, k * n, 4);
        const int64_t za = zeros ? 11 : 0, zb = zeros ? (right == kU ? 130 : -7) : 0;
        std::vector<int64_t> wanted;
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) {
            int64_t sum = 0;
            for (int64_t l = 0; l < k; ++l)
              sum += (a.elements[static_cast<size_t>(i * k + l)] - za) *
                     (b.elements[static_cast<size_t>(l * n + j)] - zb);
            wanted.push_back(sum);
          }
        const Values in{a.value({m, k}), b.value({k, n}),
                        known(Dims{}, {static_cast<double>(za)}, left),
                        known(Dims{}, {static_cast<double>(zb)}, right)};
        EXPECT_EQ(whole(run_node("MatMulInteger", 10, {}, in)[0]), wanted);
      }
}

Value dequantised(const Value& x, const Value& scale, const Value& zero, int64_t axis = 1) {
  return run_node("DequantizeLinear", 13, {attr("axis", axis)}, {x, scale, zero})[0];
}
/// The same numbers, without where they came from.
Value forgotten(const Value& x) { return {x.tensor()}; }

void expect_close(const Value& got, const Value& wanted) {
  const std::vector<float> a = got.tensor().to_vector<float>(),
                           b = wanted.tensor().to_vector<float>();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-4 * (1 + std::abs(b[i]))) << i;
}

TEST(IntegerProducts, OfDequantisedValuesAreThoseOfFloats) {
  for (const Convolution& c : kConvolutions) {
    const Values in = c.inputs();
    std::vector<double> scales;
    for (int64_t o = 0; o < c.outputs; ++o) scales.push_back(0.01 * static_cast<double>(1 + o));
    const std::vector<double> zeros(scales.size(), static_cast<double>(c.weight_zero));
    const Value x = dequantised(in[0], known(Dims{}, {0.02}), in[2]),
                w = dequantised(in[1], known({c.outputs}, scales),
                                known({c.outputs}, zeros, c.weight), 0);
    const Value bias = known({c.outputs}, scales);
    const Value y = run_node("Conv", 11, c.attributes(), {x, w, bias})[0];
    EXPECT_TRUE(has_channels_last(y.tensor()));
    expect_close(y, run_node("Conv", 11, c.attributes(), {forgotten(x), forgotten(w), bias})[0]);
  }
  const Value a = dequantised(Bytes(kU, 20 * 24, 5).value({20, 24}), known(Dims{}, {0.1}),
                              known(Dims{}, {99}, kU)),
              b = dequantised(Bytes(kS, 24 * 16, 6).value({16, 24}), known(Dims{}, {0.3}),
                              known(Dims{}, {1}, kS));
  expect_close(run_node("Gemm", 13, {attr("transB", int64_t{1})}, {a, b})[0],
               run_node("Gemm", 13, {attr("transB", int64_t{1})}, {forgotten(a), forgotten(b)})[0]);
}

TEST(IntegerProducts, WhatMovesDequantisedValuesMovesTheirBytes) {
  const Value scale = known(Dims{}, {0.5}), zero = known(Dims{}, {100}, kU);
  const Value x = dequantised(Bytes(kU, 2 * 3 * 16, 7).value({2, 3, 4, 4}), scale, zero);
  struct {
    const char* op;
    std::vector<Attribute> attributes;
    Values more;
  } const cases[] = {
      {"Transpose", {attr("perm", ints{0, 2, 1, 3})}, {}},
      {"Reshape", {}, {known(std::vector<int64_t>{6, 16})}},
      {"MaxPool", {attr("kernel_shape", ints{3, 3}), attr("pads", ints{1, 1, 1, 1})}, {}},
  };
  for (const auto& c : cases) {
    Values inputs{x}, plain{forgotten(x)};
    for (Values* all : {&inputs, &plain}) all->insert(all->end(), c.more.begin(), c.more.end());
    const Value y = run_node(c.op, 13, c.attributes, inputs)[0];
    ASSERT_NE(y.dequantised_from(), nullptr) << c.op;
    expect_close(y, run_node(c.op, 13, c.attributes, plain)[0]);
    const Value again = run_node("QuantizeLinear", 13, {}, {y, scale, zero})[0];
    EXPECT_EQ(whole(again), whole(y.dequantised_from()->x)) << c.op;
  }
}

TEST(IntegerProducts, QuantisingRoundsTiesToEvenAndSaturates) {
  const Value y = run_node("QuantizeLinear", 13, {},
                           {known({8}, {1, 3, 5, -1, 1e9, -1e9, 507, 509}), known(Dims{}, {2}),
                            known(Dims{}, {1}, kU)})[0];
  EXPECT_EQ(whole(y), (std::vector<int64_t>{1, 3, 3, 1, 255, 0, 255, 255}));
}

TEST(IntegerProducts, ChannelsThatDoNotFitAreErrors) {
  const Values in = kConvolutions[0].inputs();
  const std::string text = refusal("ConvInteger", 10, {attr("group", int64_t{3})}, in);
  EXPECT_NE(text.find("in 3 groups: channels must be groups * weight's axis 1"), std::string::npos)
      << text;
}

/// Whole numbers of 8 bits, and long sums of the largest of them.
void expect_product(int64_t k, DType left, DType right) {
  Bytes a(left, 3 * k, 4), b(right, k * 5, 5);
  if (k > 1000)
    for (Bytes* x : {&a, &b})
      for (int64_t& e : x->elements) e = x->dtype == DType::I8 ? -128 : 255;
  std::vector<int32_t> wanted(15);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 5; ++j)
      for (int64_t c = 0; c < k; ++c)
        wanted[static_cast<size_t>(i * 5 + j)] +=
            static_cast<int32_t>((a.elements[static_cast<size_t>(i * k + c)] - 7) *
                                 b.elements[static_cast<size_t>(c * 5 + j)]);
  const Value zero = known({}, {7}, left);
  for (const Value& weight : {b.value({k, 5}), computed(b.value({k, 5}))}) {
    const Value y = run_node("MatMulInteger", 10, {}, {computed(a.value({3, k})), weight, zero})[0];
    EXPECT_EQ(y.tensor().to_vector<int32_t>(), wanted) << k << name(left) << name(right);
  }
}

TEST(IntegerProducts, AreExactWithoutInstructionsForBytes) {
  Options options = Options::from_environment();
  options.isa = "avx";  // AVX2 may have them
  Context context(options);
  const ContextScope scope(context);
  for (const int64_t k : {40, 513, 1100})
    for (const DType left : {DType::U8, DType::I8})
      for (const DType right : {DType::U8, DType::I8}) expect_product(k, left, right);
}

}  // namespace
}  // namespace weft::onnx
