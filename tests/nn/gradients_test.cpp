// What is done with gradients between backward() and step(), and averages of weights after it.
#include "weft/nn/gradients.h"

#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/nn/pytorch.h"
#include "weft/nn/ema.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"
#include "weft/tensor/jit.h"

namespace weft::nn {
namespace {

std::vector<Tensor> with_gradients() {
  Tensor a = some_input({3}), b = some_input({2, 2}, 2);
  a.set_grad(some_tensor({3}, 5) * 3);
  b.set_grad(some_tensor({2, 2}, 6) * 3);
  return {a, b, some_input({4}, 7)};  // the last has none
}

TEST(Gradients, ClipByNormLikePyTorch) {
  constexpr struct {
    const char* name;
    double p;
  } kNorms[] = {{"clip_norm", 2}, {"clip_norm_1", 1}, {"clip_norm_max", INFINITY}};
  for (const auto& [name, p] : kNorms) {
    SCOPED_TRACE(name);
    const std::vector<Tensor> params = with_gradients();
    const Tensor norm = clip_gradient_norm(params, 1.5, p);
    const Tensor all =
        Tensor::cat({norm.reshape({1}), params[0].grad(), params[1].grad().flatten()});
    expect_close(all, pytorch_values(name));
    EXPECT_FALSE(params[2].grad().defined());
  }
}

TEST(Gradients, SmallNormsStayAndZerosToo) {
  Tensor p = some_input({3});
  p.set_grad(Tensor::of({0.3f, 0.f, 0.4f}));
  EXPECT_NEAR(clip_gradient_norm({p}, 1).item<float>(), 0.5, 1e-6);
  expect_close(p.grad(), {0.3, 0, 0.4}, 1e-7);
  p.set_grad(Tensor::zeros({3}));
  clip_gradient_norm({p}, 1);
  expect_close(p.grad(), {0, 0, 0}, 0);
  p.zero_grad();
  EXPECT_EQ(clip_gradient_norm({p}, 1).item<float>(), 0);
}

TEST(Gradients, ClipByValue) {
  Tensor p = some_input({3});
  p.set_grad(Tensor::of({-3.f, 0.5f, 2.f}));
  clip_gradient_value({p}, 1);
  expect_close(p.grad(), {-1, 0.5, 1}, 0);
  EXPECT_ERROR(clip_gradient_value({p}, 0), "the limit must be above 0, not 0");
  EXPECT_ERROR(clip_gradient_norm({p}, -1), "the limit must be above 0, not -1");
  EXPECT_ERROR(gradient_norm({p}, 0), "the norm's p must be above 0, not 0");
}

// Four small batches make the step of one large one.
TEST(Gradients, AddUpOverBatches) {
  Linear small(3, 2), large(3, 2);
  fill(small);
  fill(large);
  const Tensor x = some_tensor({8, 3}), y = some_tensor({8, 2}, 2);
  SGD a(parameters(small), {.lr = 0.1}), b(parameters(large), {.lr = 0.1});
  for (int64_t i = 0; i < 8; i += 2) {
    const Slice rows(i, i + 2);
    (small(x[rows]).mse_loss(y[rows]) / 4).backward();
    EXPECT_EQ(gradients(a.params()).size(), 2u);
    realize(gradients(a.params()));
  }
  large(x).mse_loss(y).backward();
  a.step();
  b.step();
  expect_close(small.weight, large.weight.to_vector<double>());
  expect_close(small.bias, large.bias.to_vector<double>());
}

TEST(EmaTest, FollowsAndExchanges) {
  BatchNorm net(2);
  Ema ema(state_dict(net), {.decay = 0.75});
  const auto set = [&](double value) {
    net.weight.assign(Tensor::full({2}, value)).realize();
    net.num_batches_tracked += 1;
  };
  set(5);
  ema.update();
  set(9);
  ema.update();
  // 1, then 1 + (5 - 1) / 4 = 2, then 2 + (9 - 2) / 4.
  const StateDict average = state_dict(ema);
  EXPECT_EQ(average[0].name, "updates");
  EXPECT_EQ(average[1].name, "weight");
  expect_close(average[1].tensor, {3.75, 3.75});
  EXPECT_EQ(average.back().tensor.item<int64_t>(), 2);
  ema.swap();
  expect_close(net.weight, {3.75, 3.75});
  ema.swap();
  expect_close(net.weight, {9, 9}, 0);
  expect_close(state_dict(ema)[1].tensor, {3.75, 3.75});
}

TEST(EmaTest, WarmUpForgetsTheStart) {
  Linear net(1, 1, false);
  net.weight.assign(Tensor::zeros({1, 1})).realize();
  Ema ema(state_dict(net), {.decay = 0.999, .warm_up = true});
  net.weight.assign(Tensor::ones({1, 1})).realize();
  ema.update();
  EXPECT_NEAR(state_dict(ema)[1].tensor.item<float>(), 9.0 / 11, 1e-6);
  EXPECT_ERROR(Ema(state_dict(net), {.decay = 2}), "decay must be in [0, 1], not 2");
}

// All of it in one captured step: what a training loop replays.
TEST(Gradients, ClippedStepsAndAveragesAreCaptured) {
  const auto train = [](bool captured) {
    Tensor::manual_seed(3);
    Linear net(3, 2);
    fill(net);
    Adam adam(parameters(net), {.lr = 0.1});
    Ema ema(state_dict(net), {.decay = 0.5});
    const auto step = [&](const Tensor& x) {
      adam.zero_grad();
      const Tensor loss = net(x).square().sum();
      loss.backward();
      std::vector<Tensor> changed = {loss, clip_gradient_norm(adam.params(), 0.5)};
      for (const Tensor& t : adam.schedule_step()) changed.push_back(t);
      for (const Tensor& t : ema.schedule_update()) changed.push_back(t);
      adam.zero_grad();
      realize(changed);
      return loss;
    };
    auto replayed = jit(std::function<Tensor(const Tensor&)>(step), "step");
    for (unsigned i = 0; i < 5; ++i) {
      const Tensor x = some_tensor({4, 3}, i + 1);
      if (captured) {
        replayed(x);
      } else {
        step(x);
      }
      if (i == 3) adam.set_lr(0.01);
    }
    return state_dict(ema)[1].tensor.to_vector<float>();
  };
  EXPECT_EQ(train(true), train(false));
}

}  // namespace
}  // namespace weft::nn
