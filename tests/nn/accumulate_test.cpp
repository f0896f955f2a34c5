// Gradients of a batch in micro-batches: equal to the whole batch's, in the memory of one part.
#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/nn/close.h"
#include "weft/base/context.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"
#include "weft/run/stats.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/training.h"
#include "weft/tensor/transforms.h"

namespace weft {
namespace {

/// Sums of few f32 numbers below 1, in another order.
void expect_near_to(const Tensor& got, const Tensor& want, const std::string& what) {
  SCOPED_TRACE(what);
  EXPECT_EQ(got.shape(), want.shape());
  expect_close(got, want.to_vector<double>(), 1e-6);
}

using Loss = std::function<Tensor(const Tensors&)>;

/// What a loop of backward() calls does, each cut off from the next.
Tensor in_a_loop(const Loss& loss, const Tensors& batch, int64_t parts, const Tensors& params) {
  const int64_t size = batch[0].size(0) / parts;
  Tensor sum = Tensor::zeros({});
  for (int64_t i = 0; i < parts; ++i) {
    Tensors part;
    for (const Tensor& x : batch) part.push_back(x.split(size)[static_cast<size_t>(i)]);
    const Tensor l = loss(part) / parts;
    l.backward();
    sum = sum + l;
    for (const Tensor& p : params) realize({p.grad()});
  }
  return sum.realize();
}

struct Small {
  Tensor w = some_tensor({4, 3}, 1), b = some_tensor({3}, 2);
  Tensor x = some_tensor({12, 4}, 3), y = some_tensor({12, 3}, 4);
  Small() { w.requires_grad_(), b.requires_grad_(); }

  Loss loss() const {
    return [this](const Tensors& in) {
      const Tensor d = (in[0].matmul(w) + b).tanh() - in[1];
      return (d * d).mean();
    };
  }
};

TEST(AccumulateGradients, IsTheWholeBatch) {
  const Small whole;
  const Tensor want = whole.loss()({whole.x, whole.y});
  want.backward();
  for (const int64_t parts : {1, 2, 3, 6, 12}) {
    const Small small;
    const Tensor got = accumulate_gradients(small.loss(), {small.x, small.y}, parts);
    const std::string what = std::to_string(parts) + " parts";
    expect_near_to(got, want, "loss of " + what);
    expect_near_to(small.w.grad(), whole.w.grad(), "matrix of " + what);
    expect_near_to(small.b.grad(), whole.b.grad(), "bias of " + what);
  }
}

TEST(AccumulateGradients, SumsOfIntegersAreExact) {
  Tensor w = Tensor::of({3.f, -2.f, 5.f, 7.f});
  w.requires_grad_();
  const Tensor x = (Tensor::arange(96).reshape({24, 4}) % 11 - 5).cast(DType::F32).realize();
  const Loss loss = [&](const Tensors& in) { return (in[0] * w).sum(); };
  loss({x}).backward();
  const auto want = w.grad().to_vector<float>();
  const auto sum = (x * w.detach()).sum().item<float>();
  for (const int64_t parts : {2, 3, 8}) {
    w.zero_grad();
    const Tensor got = accumulate_gradients(loss, {x}, parts, Reduction::Sum);
    EXPECT_EQ(got.item<float>(), sum);
    EXPECT_EQ(w.grad().to_vector<float>(), want);
  }
  accumulate_gradients(loss, {x}, 4, Reduction::Sum);  // adds up, as backward() does
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(w.grad().to_vector<float>()[i], 2 * want[i]);
}

/// Dropout and batch norm: as in a loop over the parts.
TEST(AccumulateGradients, StateAndDrawsAreThoseOfALoop) {
  const TrainingScope training;
  const auto run = [&](bool loop, int64_t parts) {
    Tensor::manual_seed(7);
    nn::Linear linear(4, 6);
    nn::BatchNorm norm(6);
    const Tensors params{linear.weight, linear.bias, norm.weight, norm.bias};
    const Tensor x = some_tensor({12, 4}, 3);
    const Loss loss = [&](const Tensors& in) {
      const Tensor h = norm(linear(in[0])).dropout(0.4).relu().dropout(0.2);
      return (h * h).mean();
    };
    Tensors out{loop ? in_a_loop(loss, {x}, parts, params)
                     : accumulate_gradients(loss, {x}, parts)};
    for (const Tensor& p : params) out.push_back(p.grad());
    out.push_back(norm.running_mean), out.push_back(norm.running_var);
    out.push_back(Tensor::rand({3}));  // what is drawn next
    realize(out);
    return out;
  };
  for (const int64_t parts : {1, 2, 4}) {
    const Tensors got = run(false, parts), want = run(true, parts);
    for (size_t i = 0; i < got.size(); ++i)
      expect_near_to(got[i], want[i],
                     "value " + std::to_string(i) + " of " + std::to_string(parts));
  }
}

TEST(AccumulateGradients, IsCaptured) {
  const auto steps = [](bool captured) {
    Tensor::manual_seed(3);
    nn::Linear linear(4, 6);
    nn::BatchNorm norm(6);
    nn::SGD sgd({linear.weight, linear.bias, norm.weight, norm.bias}, {.lr = 0.1});
    const auto step = [&](const Tensor& x) {
      const TrainingScope training;
      sgd.zero_grad();
      const Tensor loss = accumulate_gradients(
          [&](const Tensors& in) { return norm(linear(in[0])).dropout(0.3).tanh().mean(); }, {x},
          3);
      std::vector<Tensor> changed = sgd.schedule_step();
      sgd.zero_grad();
      for (const Tensor& t : {loss, norm.running_mean, norm.running_var}) changed.push_back(t);
      realize(changed);
      return loss;
    };
    auto jitted = jit(step);
    std::vector<float> losses;
    for (unsigned i = 0; i < 5; ++i) {
      const Tensor x = some_tensor({6, 4}, 10 + i);
      losses.push_back((captured ? jitted(x) : step(x)).item<float>());
    }
    losses.push_back(norm.running_var.sum().item<float>());
    return losses;
  };
  EXPECT_EQ(steps(true), steps(false));
}

/// A step of a network whose activations are larger than its weights.
struct Cost {
  int64_t planned;   // bytes, without the batch
  int64_t compiled;  // kernels
};
Cost cost_of(int64_t batch, int64_t parts) {
  Options options = Options::from_environment();
  options.dev = "CPU:INTERP";
  Context context(options);
  const ContextScope scope(context);
  nn::Linear first(8, 64), second(64, 64), third(64, 4);
  nn::SGD sgd({first.weight, first.bias, second.weight, second.bias, third.weight, third.bias},
              {.lr = 0.01});
  const auto loss = [&](const Tensors& in) {
    return third(second(first(in[0]).tanh()).tanh()).sparse_categorical_crossentropy(in[1]);
  };
  const auto step = [&](const Tensor& x, const Tensor& y) {
    sgd.zero_grad();
    Tensor l;
    if (parts > 0)
      l = accumulate_gradients(loss, {x, y}, parts);
    else
      (l = loss({x, y})).backward();
    std::vector<Tensor> changed = sgd.schedule_step();
    sgd.zero_grad();
    changed.push_back(l);
    realize(changed);
    return l;
  };
  auto jitted = jit(step);
  const Tensor x = some_tensor({batch, 8}, 1);
  const Tensor y = Tensor::zeros({batch}, DType::I32).contiguous().realize();
  realize({first.weight, second.weight, third.weight});
  jitted(x, y), jitted(x, y);  // the second call captures
  const int64_t inputs = batch * (8 + 1) * 4;
  return {jitted.planned_bytes() - inputs, run_stats(context).kernel_cache.misses};
}

TEST(AccumulateGradients, MemoryIsOneMicroBatchsHoweverManyThereAre) {
  const Cost whole = cost_of(512, 0), eight = cost_of(512, 8), many = cost_of(64 * 32, 32);
  EXPECT_LT(eight.planned, whole.planned / 2);
  EXPECT_NEAR(static_cast<double>(many.planned), static_cast<double>(eight.planned), 1024);
  EXPECT_EQ(many.compiled, eight.compiled) << "kernels are those of one micro-batch";
}

TEST(AccumulateGradients, RefusesWhatIsNoBatch) {
  const Small s;
  const auto run = [&](const Loss& loss, const Tensors& batch, int64_t parts) {
    accumulate_gradients(loss, batch, parts);
  };
  EXPECT_ERROR(run(s.loss(), {s.x, s.y}, 5),
               "accumulate_gradients: a batch of 12 cannot be cut into 5 equal micro-batches");
  EXPECT_ERROR(run(s.loss(), {s.x, s.y}, 0), "into 0 equal micro-batches");
  EXPECT_ERROR(run(s.loss(), {}, 2), "needs at least one tensor to cut into micro-batches");
  EXPECT_ERROR(run(s.loss(), {s.x, s.x.split(6)[0]}, 2),
               "tensor 1 of shape (6, 4) has 6 examples, tensor 0 12: they must be equal");
  EXPECT_ERROR(run(s.loss(), {Tensor::of({1.f}).sum()}, 1), "tensor 0 is a scalar");
  EXPECT_ERROR(run([](const Tensors& in) { return in[0]; }, {s.x}, 2),
               "the loss must be one number, but its shape is (6, 4): reduce it with mean()");
  EXPECT_ERROR(run([](const Tensors& in) { return in[0].sum(); }, {s.x}, 2),
               "the loss depends on no tensor with requires_grad_()");
  EXPECT_ERROR(run([](const Tensors& in) { return in[0].cast(DType::I32).sum(); }, {s.x}, 2),
               "the loss must be a floating-point number: got i32");
  EXPECT_ERROR(accumulate_gradients(s.loss(), {s.x, s.y}, 2, Reduction::None),
               "reduced to their mean or their sum, not to none");
}

TEST(AccumulateGradients, TensorsThatTheLossMakesAreNoState) {
  const Small s;
  const Loss inside = [&](const Tensors& in) {
    Tensor t = Tensor::zeros({}).contiguous();
    t.assign(s.loss()(in));
    return t;
  };
  expect_near_to(accumulate_gradients(inside, {s.x, s.y}, 3), s.loss()({s.x, s.y}), "loss");
  Tensors kept;
  const Loss keeps = [&](const Tensors& in) {
    kept.push_back(Tensor::zeros({}).contiguous());
    kept.back().assign(in[0].sum());
    return s.loss()(in);
  };
  EXPECT_ERROR(accumulate_gradients(keeps, {s.x, s.y}, 2),
               "the loss assigns to other tensors in every call");
}

TEST(AccumulateGradients, AFailingLossLeavesStateAsItWas) {
  const TrainingScope training;
  nn::BatchNorm norm(4);
  const Small s;
  const Loss loss = [&](const Tensors& in) {
    norm(in[0]);
    fail("test", "no");
    return in[0];
  };
  EXPECT_ERROR(accumulate_gradients(loss, {s.x}, 2), "test: no");
  EXPECT_EQ(norm.running_mean.to_vector<float>(), (std::vector<float>(4, 0)));
}

}  // namespace
}  // namespace weft
