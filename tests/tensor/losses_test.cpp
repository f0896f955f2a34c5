// losses.h against PyTorch's formulas, worked out in NumPy.
#include "weft/tensor/losses.h"

#include <cmath>

#include "tests/io/scratch_dir.h"
#include "tests/support/device_here.h"
#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

class Losses : public TensorTest {};

TEST_F(Losses, OfNumbers) {
  const Tensor x = Tensor::of({0.0f, 0.5f, 3.0f}), y = Tensor::of({0.0f, 0.0f, 1.0f});
  expect_near(l1_loss(x, y), {2.5 / 3});
  expect_near(huber_loss(x, y, 1, Reduction::None), {0, 0.125, 1.5});
  expect_near(huber_loss(x, y, 2, Reduction::Sum), {2.125});
  expect_near(smooth_l1_loss(x, y, 2, Reduction::None), {0, 0.0625, 1});
  expect_near(smooth_l1_loss(x, y, 0, Reduction::Sum), {2.5});
  expect_near(hinge_loss(x, Tensor::of({1.0f, 1.0f, -1.0f}), Reduction::None), {1, 0.5, 4});
  expect_near(soft_margin_loss(x, y, Reduction::None),
              {std::log(2.0), std::log(2.0), std::log1p(std::exp(-3.0))});
  expect_near(poisson_nll_loss(x, y, true, 0, Reduction::None),
              {1, std::exp(0.5), std::exp(3) - 3});
  expect_near(
      gaussian_nll_loss(x, y, Tensor::of({1.0f, 0.25f, 4.0f}), false, 1e-6, Reduction::None),
      {0, 0.5 + 0.5 * std::log(0.25), 0.5 + 0.5 * std::log(4.0)});
}

TEST_F(Losses, OfDistributions) {
  const Tensor log_p = Tensor::of({0.25f, 0.75f}).log(), target = Tensor::of({0.0f, 1.0f});
  expect_near(kl_div(log_p, target, Reduction::None), {0, -std::log(0.75)});
  const Tensor q = Tensor::of({{0.5f, 0.5f}});
  const double expected = 0.5 * std::log(0.5 / 0.25) + 0.5 * std::log(0.5 / 0.75);
  expect_near(kl_div(log_p.unsqueeze(0), q, Reduction::Mean, false, true), {expected});
  expect_near(kl_div(log_p.unsqueeze(0), q.log(), Reduction::Sum, true), {expected});
}

TEST_F(Losses, OfClasses) {
  const Tensor x = Tensor::of({{1.0f, 2.0f, 0.5f}, {0.0f, -1.0f, 3.0f}}), y = Tensor::of({2, 0});
  const Tensor w = Tensor::of({1.0f, 2.0f, 3.0f});
  expect_near(cross_entropy(x, y, {.weight = w}), {2.2397476});
  expect_near(cross_entropy(x, y, {.weight = w, .reduction = Reduction::None}),
              {5.8931064, 3.0658839});
  expect_near(cross_entropy(x, y, {.weight = w, .label_smoothing = 0.1}), {2.1797854});
  expect_near(nll_loss(x.log_softmax(1), y, {.weight = w, .ignore_index = 2}), {3.0658839});
  expect_near(cross_entropy(x, y, {.weight = w, .ignore_index = {}}), {2.2397476});
  const Tensor p = Tensor::of({{0.2f, 0.3f, 0.5f}, {0.1f, 0.8f, 0.1f}});
  expect_near(cross_entropy(x, p, {.weight = w}), {5.174908});
  expect_near(cross_entropy(x[0], Tensor(2), {.reduction = Reduction::None}), {1.9643688});
  EXPECT_EQ(cross_entropy(x[0], Tensor(2), {.reduction = Reduction::None}).ndim(), 0u);
}

// Of a class that is none the loss is an error where it is known, else NaN with its gradient.
TEST_F(Losses, OfClassesThatAreNone) {
  if (testing::simulated()) GTEST_SKIP() << "positions in a device's memory are not looked at";
  const Tensor x = Tensor::of({{1.0f, 2.0f, 3.0f}, {3.0f, 2.0f, 1.0f}, {0.0f, 0.0f, 0.0f}});
  const double right = std::log(std::exp(2) + std::exp(1) + 1) - 2;
  const ClassLossOptions each = {.reduction = Reduction::None};
  for (const int32_t label : {-1, 3, INT32_MAX, INT32_MIN}) {
    const Tensor known = Tensor::of({label, 0, -100}), computed = known.where(known, 0);
    EXPECT_ERROR(cross_entropy(x, known, each), "out of bounds for 3 classes");
    EXPECT_ERROR(nll_loss(x, known[{Slice(), kNewAxis}].flatten(), each), "out of bounds");
    const Tensor losses = cross_entropy(x, computed, each);
    EXPECT_TRUE(std::isnan(values(losses)[0]));
    EXPECT_NEAR(values(losses)[1], right, 1e-6);
    EXPECT_EQ(values(losses)[2], 0);
    EXPECT_TRUE(std::isnan(values(x.cross_entropy(computed))[0]));
    const std::vector<double> slope = values(losses.sum().gradient({x})[0]);
    for (size_t i = 0; i < 9; ++i) EXPECT_EQ(std::isnan(slope[i]), i < 3) << i;
    EXPECT_TRUE(
        std::isnan(values(nll_loss(x, computed, each).sum().gradient({x})[0])[label < 0 ? 0 : 2]));
  }
  expect_near(x.cross_entropy(Tensor::of({-100, 0, -100})), {right});
  expect_near(x.sparse_categorical_crossentropy(Tensor::of({-1, 0, -1})), {right});
  EXPECT_TRUE(std::isnan(values(x.cross_entropy(Tensor::full({3}, -100)))[0]));
  // Narrow and unsigned numbers do not become -100 by wrapping.
  EXPECT_ERROR(x.cross_entropy(Tensor::of({156, 0, 1}).cast(DType::U8).realize()), "156");
}

TEST_F(Losses, OfTwoClasses) {
  const Tensor z = Tensor::of({0.5f, -2.0f}), t = Tensor::of({1.0f, 0.25f});
  expect_near(
      binary_crossentropy_logits(z, t, {.pos_weight = Tensor(3.0), .reduction = Reduction::None}),
      {1.4222310, 1.6903920});
  expect_near(binary_crossentropy_logits(z, t, {.weight = Tensor(2.0)}),
              {2 * values(z.binary_crossentropy_logits(t))[0]});
  // A logarithm of 0 counts as -100, and has no gradient.
  const Tensor sure = Tensor::of({0.0f, 1.0f, 0.0f}), is = Tensor::of({0.0f, 1.0f, 1.0f});
  expect_near(binary_crossentropy(sure, is, {.reduction = Reduction::None}), {0, 0, 100});
  for (const double slope : values(sure.binary_crossentropy(is).gradient({sure})[0]))
    EXPECT_TRUE(std::isfinite(slope));
}

TEST_F(Losses, SlopesAtInfinity) {
  const Tensor x = Tensor::of({INFINITY, -INFINITY, 1.0f, 0.25f, NAN}), y = x.zeros_like();
  const auto slopes = [&](const Tensor& loss) { return loss.sum().gradient({x})[0]; };
  expect_near(slopes(huber_loss(x, y, 1, Reduction::None)), {1, -1, 1, 0.25, 0});
  expect_near(slopes(smooth_l1_loss(x, y, 0.5, Reduction::None)), {1, -1, 1, 0.5, 0});
}

TEST_F(Losses, OfTwoClassesAtInfinity) {
  const Tensor x = Tensor::of({INFINITY, -INFINITY, 0.0f, INFINITY, -INFINITY});
  const Tensor y = Tensor::of({0.5f, 0.5f, 0.5f, 0.0f, 1.0f});
  for (const double weight : {1.0, 3.0}) {
    const Tensor z = binary_crossentropy_logits(
        x, y, {.pos_weight = Tensor(weight), .reduction = Reduction::None});
    expect_near(z, {INFINITY, INFINITY, (1 + weight) / 2 * std::log(2.0), INFINITY, INFINITY});
    expect_near(z.sum().gradient({x})[0], {0.5, -weight / 2, (1 - weight) / 4, 1, -weight});
  }
  const Tensor z = binary_crossentropy_logits(x, y, {.reduction = Reduction::None});
  expect_near(z, {INFINITY, INFINITY, std::log(2.0), INFINITY, INFINITY});
  expect_near(z.sum().gradient({x})[0], {0.5, -0.5, 0, 1, -1});
}

TEST_F(Losses, OfDistances) {
  const Tensor x = Tensor::of({{1.0f, 0.0f}, {0.0f, 2.0f}}),
               y = Tensor::of({{1.0f, 1.0f}, {0.0f, -1.0f}});
  expect_near(cosine_similarity(x, y), {std::sqrt(0.5), -1});
  expect_near(cosine_similarity(x, Tensor::zeros({2})), {0, 0});
  expect_near(cosine_embedding_loss(x, y, Tensor::of({1, -1}), 0, Reduction::None),
              {1 - std::sqrt(0.5), 0});
  expect_near(triplet_margin_loss(x, y, x, 1, 2, Reduction::None), {2, 4}, 1e-5);
}

TEST_F(Losses, OfNothing) {
  EXPECT_EQ(shown(l1_loss(Tensor::zeros({0}), Tensor::zeros({0}), Reduction::Sum)), "f32 () [0]");
  EXPECT_TRUE(std::isnan(values(l1_loss(Tensor::zeros({0}), Tensor::zeros({0})))[0]));
}

}  // namespace
}  // namespace weft
