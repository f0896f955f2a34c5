#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/tensor/near.h"
#include "weft/base/context.h"
#include "weft/tensor/access.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/transforms.h"

namespace weft {
namespace {

Tensor straight_through(const Tensor& x) {
  return with_gradient(of_one([](const Tensor& v) { return v.sign(); }),
                       [](const Tensors&, const Tensors&, const Tensors& up) { return up; },
                       {x})[0];
}

/// x * w by its own rule.
Tensor product(const Tensor& x, const Tensor& w) {
  return with_gradient(of_two([](const Tensor& a, const Tensor& b) { return a * b; }),
                       [](const Tensors& in, const Tensors&, const Tensors& up) {
                         return Tensors{up[0] * in[1], up[0] * in[0]};
                       },
                       {x, w})[0];
}

TEST(WithGradient, ReplacesTheGradientAndNotTheValue) {
  const Tensor x = sample({5}, 1), w = sample({5}, 2);
  expect_near(straight_through(x), x.sign(), "value");
  expect_near((straight_through(x) * w).sum().gradient({x})[0], w, "gradient");
}

TEST(WithGradient, HasDerivativesOfItsOwn) {
  const Tensor x = sample({5}, 1), w = sample({5}, 2);
  const auto second = [&](const Tensor& y) {
    const Tensor g = (y * y).sum().gradient({x})[0];
    return (g * g).sum().gradient({x, w});
  };
  const Tensors got = second(product(x, w)), want = second(x * w);
  expect_near(got[0], want[0], "x");
  expect_near(got[1], want[1], "w");
}

TEST(WithGradient, IsTransformed) {
  const Tensor x = sample({3, 5}, 1), w = sample({5}, 2);
  const TensorFunction mine = of_two(product);
  const TensorFunction plain = of_two([](const Tensor& a, const Tensor& b) { return a * b; });
  const auto gradient_of = [&](const TensorFunction& f) {
    const TensorFunction each = [&](const Tensors& in) {
      return value_and_grad([&](const Tensors& v) { return Tensors{(f(v)[0] * f(v)[0]).sum()}; },
                            in)
          .second;
    };
    return vmap(each, {x, w}, {0, std::nullopt});
  };
  for (size_t i = 0; i < 2; ++i)
    expect_near(gradient_of(mine)[i], gradient_of(plain)[i], "vmap of gradient");
  const auto summed = [&](const TensorFunction& f) {
    return vmap(f, {x, w}, {0, std::nullopt})[0].exp().sum().gradient({x, w});
  };
  for (size_t i = 0; i < 2; ++i) expect_near(summed(mine)[i], summed(plain)[i], "gradient of vmap");
  const Tensor v = sample({5}, 4);
  expect_near(jvp(mine, {x[0], w}, {v, w}).second[0], jvp(plain, {x[0], w}, {v, w}).second[0],
              "jvp");
  const ScanFunction body = [&](const Tensors& c, const Tensors& s) {
    return ScanResult{{product(c[0].tanh(), s[0]) * w}, {}};
  };
  const ScanFunction plain_body = [&](const Tensors& c, const Tensors& s) {
    return ScanResult{{c[0].tanh() * s[0] * w}, {}};
  };
  const Tensors got = scan(body, {w}, {x}).carried[0].sum().gradient({x, w});
  const Tensors want = scan(plain_body, {w}, {x}).carried[0].sum().gradient({x, w});
  for (size_t i = 0; i < 2; ++i) expect_near(got[i], want[i], "inside of a scan");
}

TEST(WithGradient, OfSeveralResultsAndMissingGradients) {
  const Tensor x = sample({4}, 1), w = sample({4}, 2);
  const TensorFunction f = [](const Tensors& in) { return Tensors{in[0] * in[1], in[0].sum()}; };
  const GradientFunction g = [](const Tensors& in, const Tensors& y, const Tensors& up) {
    return Tensors{up[0] * in[1] * 2 + up[1] * y[1], Tensor()};
  };
  const Tensors y = with_gradient(f, g, {x, w});
  const Tensors grads = (y[0].sum() + y[1] * 3).gradient({x, w});
  expect_near(grads[0], w * 2 + x.sum() * 3, "as the rule says");
  expect_near(grads[1], w.zeros_like(), "none");
}

TEST(WithGradient, SaysWhatIsWrong) {
  const Tensor x = sample({4}, 1);
  const auto with = [&](const GradientFunction& g) {
    with_gradient(of_one([](const Tensor& v) { return v * 2; }), g, {x});
  };
  EXPECT_ERROR(with([](auto&, auto&, auto&) { return Tensors{}; }), "0 gradients for 1 inputs");
  EXPECT_ERROR(with([](auto&, auto&, auto& up) { return Tensors{up[0].sum()}; }),
               "the gradient of input 0 has shape (), the input (4,)");
}

TEST(WithGradient, ContiguousBackwardChangesNothing) {
  const Tensor x = sample({4}, 1), w = sample({4}, 2);
  const Tensor y = contiguous_backward(x * w).exp();
  expect_near(y.sum().gradient({x})[0], (x * w).exp() * w, "gradient");
  expect_near(y, (x * w).exp(), "value");
}

TEST(Traced, CallsTheFunctionOnceForEveryShape) {
  int calls = 0;
  const TensorFunction f = traced([&](const Tensors& in) {
    ++calls;
    return Tensors{in[0] * in[0] + 1};
  });
  for (uint64_t i = 0; i < 4; ++i) {
    const Tensor x = sample({static_cast<int64_t>(i % 2 + 1)}, i);
    const Tensor y = f({x})[0];
    expect_near(y.sum().gradient({x})[0], x * 2, "gradient");
    expect_near(y, x * x + 1, "value");
  }
  EXPECT_EQ(calls, 2);
}

/// What a function was made of is not read by it: memory that is behind it may be written.
TEST(WithGradient, LeavesStateWhereItIs) {
  Tensor state = Tensor::zeros({4, 8}).realize();
  auto step = jit([&](const Tensor& x) {
    state.index({Slice(0, 1)}).assign(straight_through(x));
    return straight_through(state.sum({0}, true));
  });
  step.capture_at_once();
  const auto memory = [&] { return state.realize().cell()->buffer()->block(); };
  const void* before = memory();
  for (const float sign : {1.f, -1.f, 1.f}) {
    EXPECT_EQ(step(Tensor::full({1, 8}, 3 * sign).realize()).to_vector<float>(),
              std::vector<float>(8, sign));
    EXPECT_EQ(memory(), before);
  }
}

}  // namespace
}  // namespace weft
