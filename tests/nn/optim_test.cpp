// Each optimizer against its published formula in plain double loops.
#include "weft/nn/optim.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/io/scratch_dir.h"
#include "tests/nn/close.h"

namespace weft::nn {
namespace {

constexpr int kSteps = 4;

// One scalar parameter's reference: its value after a step with gradient g, step number from 1.
using Reference = std::function<double(double p, double g, int step, double& m, double& v)>;

// Minimises sum(c * p^2 / 2): the gradient of p is c * p.
void expect_follows(Optimizer& optimizer, Tensor& p, const Reference& reference) {
  const std::vector<float> start = p.to_vector<float>();
  const Tensor c = some_tensor({static_cast<int64_t>(start.size())}, 3);
  const std::vector<double> slopes = c.to_vector<double>();
  std::vector<double> wanted(start.begin(), start.end());
  std::vector<double> m(start.size()), v(start.size());
  for (int step = 1; step <= kSteps; ++step) {
    optimizer.zero_grad();
    (p * p * c * 0.5).sum().backward();
    optimizer.step();
    for (size_t i = 0; i < wanted.size(); ++i) {
      wanted[i] = reference(wanted[i], slopes[i] * wanted[i], step, m[i], v[i]);
    }
    expect_close(p, wanted, 2e-5);
  }
}

Tensor parameter() {
  Tensor p = some_tensor({6});
  p.requires_grad_();
  return p;
}

TEST(Optim, Sgd) {
  Tensor p = parameter();
  SGD sgd({p}, {.lr = 0.1});
  expect_follows(sgd, p, [](double x, double g, int, double&, double&) { return x - 0.1 * g; });
}

TEST(Optim, SgdWithMomentumAndDecay) {
  for (const bool nesterov : {false, true}) {
    Tensor p = parameter();
    SGD sgd({p}, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = nesterov});
    expect_follows(sgd, p, [&](double x, double g, int, double& m, double&) {
      g += 0.01 * x;
      m = 0.9 * m + g;
      return x - 0.1 * (nesterov ? g + 0.9 * m : m);
    });
  }
}

double adam_change(double g, int step, double& m, double& v) {
  m = 0.9 * m + 0.1 * g;
  v = 0.999 * v + 0.001 * g * g;
  return m / (1 - std::pow(0.9, step)) / (std::sqrt(v / (1 - std::pow(0.999, step))) + 1e-8);
}

TEST(Optim, Adam) {
  Tensor p = parameter();
  Adam adam({p}, {.lr = 0.05});
  expect_follows(adam, p, [](double x, double g, int step, double& m, double& v) {
    return x - 0.05 * adam_change(g, step, m, v);
  });
}

TEST(Optim, AdamWithDecayInTheGradient) {
  Tensor p = parameter();
  Adam adam({p}, {.lr = 0.05, .weight_decay = 0.1});
  expect_follows(adam, p, [](double x, double g, int step, double& m, double& v) {
    return x - 0.05 * adam_change(g + 0.1 * x, step, m, v);
  });
}

TEST(Optim, AdamW) {
  Tensor p = parameter();
  Adam adam = adamw({p}, {.lr = 0.05, .weight_decay = 0.1});
  expect_follows(adam, p, [](double x, double g, int step, double& m, double& v) {
    return x - 0.05 * (adam_change(g, step, m, v) + 0.1 * x);
  });
}

TEST(Optim, LearningRateCanChange) {
  Tensor p = parameter();
  SGD sgd({p}, {.lr = 0.1});
  sgd.set_lr(0.25);
  EXPECT_EQ(sgd.lr(), 0.25);
  expect_follows(sgd, p, [](double x, double g, int, double&, double&) { return x - 0.25 * g; });
}

TEST(Optim, AParameterWithoutGradientStays) {
  Tensor used = parameter(), unused = parameter();
  SGD sgd({used, unused}, {.lr = 0.1});
  const std::vector<float> before = unused.to_vector<float>();
  used.sum().backward();
  sgd.step();
  EXPECT_EQ(unused.to_vector<float>(), before);
}

TEST(Optim, ErrorsSayWhatToDo) {
  Tensor p = parameter();
  EXPECT_ERROR(SGD({}), "there is nothing to train; pass parameters(model)");
  EXPECT_ERROR(SGD({p, p}), "parameter 1 is listed twice");
  EXPECT_ERROR(SGD({Tensor::ones({2})}), "does not require a gradient");
  EXPECT_ERROR(SGD({p}, {.lr = -1}), "lr must be in [0, 1e+30), not -1");
  EXPECT_ERROR(SGD({p}, {.nesterov = true}), "nesterov needs a momentum above 0");
  EXPECT_ERROR(Adam({p}, {.beta1 = 1}), "beta1 must be in [0, 1), not 1");
  EXPECT_ERROR(SGD({p}).step(), "call loss.backward() before step()");
}

}  // namespace
}  // namespace weft::nn
