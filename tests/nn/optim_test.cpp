// Optimizers against PyTorch, those that it has not against their formulas; groups and dtypes.
#include "weft/nn/optim.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/io/scratch_dir.h"
#include "tests/nn/pytorch.h"
#include "weft/base/context.h"
#include "weft/nn/layers.h"
#include "weft/run/stats.h"

namespace weft::nn {
namespace {

using Made = std::unique_ptr<Optimizer>;
using Make = std::function<Made(std::vector<Tensor>)>;

template <class O>
Made made(O optimizer) {
  return std::make_unique<O>(std::move(optimizer));
}

// The gradient of sum(c * p^2 / 2) is c * p.
void descend(Optimizer& optimizer, Tensor& p, int steps) {
  const Tensor c = some_tensor(p.shape(), 3);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    (p * p * c * 0.5).sum().backward();
    optimizer.step();
  }
}

/// Kernels that f launches.
template <class F>
int64_t kernels_of(const F& f) {
  const int64_t before = run_stats(Context::current()).kernels;
  f();
  return run_stats(Context::current()).kernels - before;
}

TEST(Optimizer, AStepComputesTheLossToo) {
  Tensor p = some_tensor({6}, 1).requires_grad_();
  SGD sgd({p}, {.lr = 0.1});
  const Tensor loss = (p * p).sum(), other = (p * 3).sum();
  const double wanted = (some_tensor({6}, 1) * some_tensor({6}, 1)).sum().item<double>();
  loss.backward();
  sgd.step();
  EXPECT_EQ(kernels_of([&] { EXPECT_NEAR(loss.item<double>(), wanted, 1e-5); }), 0);
  EXPECT_GT(kernels_of([&] { (void)other.item<double>(); }), 0) << "no gradient was asked of it";
}

TEST(Optimizer, AStepComputesNoLossThatIsGone) {
  Tensor p = some_tensor({6}, 1).requires_grad_();
  SGD sgd({p}, {.lr = 0.1});
  const auto step = [&](bool keep) {
    Tensor loss = (p * p).sum();
    loss.backward();
    if (!keep) loss = Tensor();
    return kernels_of([&] { sgd.step(); });
  };
  EXPECT_LT(step(false), step(true));
}

struct Case {
  const char* name;
  Make make;
  int steps = 5;
  std::vector<int64_t> shape = {6};
};

using Params = std::vector<Tensor>;
const Case kCases[] = {
    {"sgd", [](Params p) { return made(SGD(p, {.lr = 0.1})); }},
    {"sgd_momentum",
     [](Params p) { return made(SGD(p, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01})); }},
    {"sgd_nesterov",
     [](Params p) {
       return made(SGD(p, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}));
     }},
    // While lr stays the same, it does not matter where it comes in.
    {"sgd_momentum",
     [](Params p) {
       return made(SGD(p, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .classic = true}));
     }},
    {"adam", [](Params p) { return made(Adam(p, {.lr = 0.05})); }},
    {"adam_decay", [](Params p) { return made(Adam(p, {.lr = 0.05, .weight_decay = 0.1})); }},
    {"adam_amsgrad",
     [](Params p) {
       return made(Adam(p, {.lr = 0.5, .beta1 = 0.5, .beta2 = 0.6, .amsgrad = true}));
     }},
    {"adamw", [](Params p) { return made(adamw(p, {.lr = 0.05, .weight_decay = 0.1})); }},
    {"nadam", [](Params p) { return made(NAdam(p, {.lr = 0.05, .weight_decay = 0.1})); }},
    {"nadam_decoupled",
     [](Params p) { return made(NAdam(p, {.lr = 0.05, .weight_decay = 0.1, .decoupled = true})); }},
    {"radam", [](Params p) { return made(RAdam(p, {.lr = 0.05})); }, 9},
    {"radam_short",
     [](Params p) {
       return made(RAdam(p, {.lr = 0.05, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.1}));
     }},
    {"rmsprop", [](Params p) { return made(RMSprop(p, {.lr = 0.05, .weight_decay = 0.1})); }},
    {"rmsprop_centered",
     [](Params p) {
       return made(RMSprop(p, {.lr = 0.05, .alpha = 0.9, .momentum = 0.9, .centered = true}));
     }},
    {"adagrad",
     [](Params p) {
       return made(Adagrad(p, {.lr = 0.1, .lr_decay = 0.1, .weight_decay = 0.1, .start = 0.5}));
     }},
    {"muon", [](Params p) { return made(Muon(p, {.lr = 0.1})); }, 5, {2, 3}},
    {"muon_tall",
     [](Params p) { return made(Muon(p, {.lr = 0.1, .momentum = 0.5, .nesterov = false})); },
     5,
     {6, 2}},
    {"muon_rms",
     [](Params p) { return made(Muon(p, {.lr = 0.1, .scale = MuonOptions::Scale::LikeAdamW})); },
     5,
     {2, 3}},
};

TEST(Optimizers, LikePyTorch) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Tensor p = some_input(c.shape);
    const Made optimizer = c.make({p});
    descend(*optimizer, p, c.steps);
    expect_close(p, pytorch_values(c.name), 5e-5);
  }
}

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

// You, Gitman and Ginsburg 2017, algorithm 1, with the rate inside the velocity.
TEST(Optimizers, Lars) {
  Tensor p = some_input({6});
  std::vector<double> x = p.to_vector<double>(), v(6);
  const std::vector<double> slopes = some_tensor({6}, 3).to_vector<double>();
  SGD optimizer =
      lars({p}, {.lr = 0.5, .momentum = 0.9, .weight_decay = 0.01, .classic = true, .trust = 0.1});
  descend(optimizer, p, 4);
  for (int step = 0; step < 4; ++step) {
    std::vector<double> g(6);
    for (size_t i = 0; i < 6; ++i) g[i] = slopes[i] * x[i];
    const double rate = 0.5 * 0.1 * norm(x) / (norm(g) + 0.01 * norm(x));
    for (size_t i = 0; i < 6; ++i) {
      v[i] = 0.9 * v[i] + rate * (g[i] + 0.01 * x[i]);
    }
    for (size_t i = 0; i < 6; ++i) x[i] -= v[i];
  }
  expect_close(p, x, 2e-5);
}

// You et al. 2020, algorithm 2, with phi(z) = z.
TEST(Optimizers, Lamb) {
  Tensor p = some_input({6});
  std::vector<double> x = p.to_vector<double>(), m(6), v(6), r(6);
  const std::vector<double> slopes = some_tensor({6}, 3).to_vector<double>();
  Adam optimizer = lamb({p}, {.lr = 0.1, .eps = 1e-6, .weight_decay = 0.1});
  descend(optimizer, p, 4);
  for (int step = 1; step <= 4; ++step) {
    for (size_t i = 0; i < 6; ++i) {
      const double g = slopes[i] * x[i];
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.999 * v[i] + 0.001 * g * g;
      r[i] = m[i] / (1 - std::pow(0.9, step)) /
                 (std::sqrt(v[i] / (1 - std::pow(0.999, step))) + 1e-6) +
             0.1 * x[i];
    }
    const double ratio = norm(x) / norm(r);
    for (size_t i = 0; i < 6; ++i) x[i] -= 0.1 * ratio * r[i];
  }
  expect_close(p, x, 2e-5);
}

TEST(Optimizers, TheRateCanChange) {
  Tensor p = some_input({6}), q = some_input({6});
  SGD changed({p}, {.lr = 0.1}), made({q}, {.lr = 0.25});
  changed.set_lr(0.25);
  EXPECT_EQ(changed.lr(), 0.25);
  descend(changed, p, 2);
  descend(made, q, 2);
  EXPECT_EQ(p.to_vector<float>(), q.to_vector<float>());
}

TEST(Optimizers, AParameterWithoutGradientStays) {
  Tensor used = some_input({6}), unused = some_input({6});
  SGD sgd({used, unused}, {.lr = 0.1});
  const std::vector<float> before = unused.to_vector<float>();
  used.sum().backward();
  sgd.step();
  EXPECT_EQ(unused.to_vector<float>(), before);
}

TEST(Optimizers, DecoupledDecayOfSgd) {
  Tensor p = some_input({6});
  const std::vector<double> start = p.to_vector<double>();
  SGD sgd({p}, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.5, .decoupled = true});
  p.set_grad(Tensor::zeros({6}));
  sgd.step();
  std::vector<double> wanted;
  for (const double value : start) wanted.push_back(value * 0.95);
  expect_close(p, wanted);
}

TEST(Optimizers, MuonTakesKernelsAsMatrices) {
  Tensor kernel = some_input({4, 2, 3}),
         matrix = trained(some_tensor({24}).reshape({4, 6}).contiguous().realize());
  Muon a({kernel}), b({matrix});
  kernel.set_grad(some_tensor({4, 2, 3}, 5));
  matrix.set_grad(some_tensor({4, 2, 3}, 5).reshape({4, 6}));
  a.step();
  b.step();
  EXPECT_EQ(kernel.to_vector<float>(), matrix.to_vector<float>());
}

// Parameters and state in bf16, arithmetic in f32: near the f32 run.
TEST(Optimizers, Bf16ParametersAndState) {
  Tensor p = some_input({6}), half = some_tensor({6}).cast(DType::BF16).realize();
  half.requires_grad_();
  Adam exact({p}, {.lr = 0.05, .beta2 = 0.99});
  Adam rounded({half}, {.lr = 0.05, .beta2 = 0.99, .state_dtype = DType::BF16});
  descend(exact, p, 5);
  descend(rounded, half, 5);
  EXPECT_EQ(half.dtype(), DType::BF16);
  EXPECT_EQ(state_dict(rounded)[1].tensor.dtype(), DType::BF16);
  expect_close(half, p.to_vector<double>(), 0.02);

  Tensor wide = some_tensor({6}).cast(DType::BF16).realize();
  wide.requires_grad_();
  Adam f32_state({wide});
  EXPECT_EQ(state_dict(f32_state)[1].tensor.dtype(), DType::F32);
}

TEST(Optimizers, StateIsSavedByName) {
  const auto names = [](Optimizer& optimizer) {
    std::string all;
    for (const NamedTensor& named : state_dict(optimizer)) all += named.name + " ";
    return all;
  };
  Tensor p = some_input({2}), q = some_input({2, 2});
  SGD sgd({p});
  EXPECT_EQ(names(sgd), "lr ");
  Adam adam({p, q});
  EXPECT_EQ(names(adam), "lr m.0 m.1 v.0 v.1 beta1_power beta2_power ");
  RMSprop rms({p}, {.momentum = 0.1, .centered = true});
  EXPECT_EQ(names(rms), "lr square.0 mean.0 velocity.0 ");
  NAdam nadam({p});
  EXPECT_EQ(names(nadam), "lr m.0 v.0 beta1_power beta2_power steps momentum_product ");
}

// A resumed training goes on as if it had not stopped.
TEST(Optimizers, ResumeFromSavedState) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Tensor through = some_input(c.shape), first = some_input(c.shape), second = some_input(c.shape);
    const Made one = c.make({through}), a = c.make({first}), b = c.make({second});
    descend(*one, through, 5);
    descend(*a, first, 3);
    load_state_dict(*b, state_dict(*a));
    second.assign(first.detach()).realize();
    descend(*b, second, 2);
    EXPECT_EQ(second.to_vector<float>(), through.to_vector<float>());
  }
}

TEST(OptimizerGroups, StepTogetherAsEachAlone) {
  Tensor p = some_input({6}), q = some_input({2, 3}), alone = some_input({6});
  OptimizerGroup group(SGD({p}, {.lr = 0.1}), Muon({q}, {.lr = 0.1}));
  SGD sgd({alone}, {.lr = 0.1});
  for (int step = 0; step < 5; ++step) {
    group.zero_grad();
    sgd.zero_grad();
    const Tensor c = some_tensor({6}, 3);
    ((p * p * c).sum() + (q * q * c.reshape({2, 3})).sum()).backward(Tensor(0.5));
    (alone * alone * c * 0.5).sum().backward();
    group.step();
    sgd.step();
  }
  EXPECT_EQ(p.to_vector<float>(), alone.to_vector<float>());
  expect_close(q, pytorch_values("muon"), 5e-5);
  EXPECT_EQ(group.params().size(), 2u);
  std::string names;
  for (const NamedTensor& named : state_dict(group)) names += named.name + " ";
  EXPECT_EQ(names, "0.lr 1.lr 1.velocity.0 ");
  group.zero_grad();
  EXPECT_ERROR(group.step(), "call loss.backward() before step()");
}

TEST(Optimizers, ErrorsSayWhatToDo) {
  Tensor p = some_input({3});
  EXPECT_ERROR(SGD({}), "there is nothing to train; pass parameters(model)");
  EXPECT_ERROR(SGD({p, p}), "parameter 1 is listed twice");
  EXPECT_ERROR(SGD({Tensor::ones({2})}), "does not require a gradient");
  EXPECT_ERROR(SGD({p}, {.lr = -1}), "lr must be in [0, 1e+30), not -1");
  EXPECT_ERROR(SGD({p}, {.nesterov = true}), "nesterov needs a momentum above 0");
  EXPECT_ERROR(Adam({p}, {.beta1 = 1}), "beta1 must be in [0, 1), not 1");
  EXPECT_ERROR(SGD({p}).step(), "call loss.backward() before step()");
  EXPECT_ERROR(Muon({p}), "a parameter of shape (3,) is no matrix; train it with adamw");
  EXPECT_ERROR(RMSprop({p}, {.alpha = 1}), "alpha must be in [0, 1), not 1");
  EXPECT_ERROR(Adagrad({p}, {.start = -1}), "start must be in");
  EXPECT_ERROR(lars({p}, {.trust = -1}), "trust must be in");
  EXPECT_ERROR(NAdam({p}, {}, -1), "momentum_decay must be in");
  EXPECT_ERROR(Adam({p}, {.state_dtype = DType::I32}), "the state's dtype is i32");
  EXPECT_ERROR(Adam({p}).step(), "call loss.backward() before step()");
}

}  // namespace
}  // namespace weft::nn
