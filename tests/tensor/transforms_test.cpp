#include "weft/tensor/transforms.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/io/scratch_dir.h"
#include "tests/tensor/near.h"
#include "weft/base/context.h"

namespace weft {
namespace {

using Function = std::function<Tensor(const Tensor&)>;

struct Row {
  const char* name;
  Function f;  // of a (4, 6)
};

const Row kFunctions[] = {
    {"elementwise", [](const Tensor& x) { return x.tanh() * x + 1; }},
    {"scalar operand", [](const Tensor& x) { return x.sum() * x + x.mean(); }},
    {"reshape", [](const Tensor& x) { return x.reshape({3, 8}).permute({1, 0}); }},
    {"expand", [](const Tensor& x) { return x.unsqueeze(1).expand({4, 2, 6}); }},
    {"pad", [](const Tensor& x) { return x.pad({{1, 2}, {0, -1}}, 3); }},
    {"shrink", [](const Tensor& x) { return x[{Slice(1, 4, 2), Slice(5, 0, -2)}]; }},
    {"sum", [](const Tensor& x) { return x.sum({0}); }},
    {"max", [](const Tensor& x) { return x.max({1}, true); }},
    {"prod", [](const Tensor& x) { return x.prod({0, 1}); }},
    {"cumsum", [](const Tensor& x) { return x.cumsum(1); }},
    {"cummax", [](const Tensor& x) { return x.cummax(0); }},
    {"softmax", [](const Tensor& x) { return x.softmax(-1); }},
    {"matmul", [](const Tensor& x) { return x.matmul(x.T()); }},
    {"window", [](const Tensor& x) { return x.unfold(1, 3, 2).sum({-1}); }},
    {"max_pool", [](const Tensor& x) { return x.unsqueeze(0).max_pool2d({2, 2}); }},
    {"gather", [](const Tensor& x) { return x.index_select(1, Tensor::of({3, 0, -1})); }},
    {"gather by value", [](const Tensor& x) { return x.gather(1, x.argsort(1)); }},
    {"sort", [](const Tensor& x) { return x.sort(0).first; }},
    {"scatter",
     [](const Tensor& x) {
       return x.scatter(0, Tensor::of({{1, 1, 0, 2, 3, 3}}), x[Slice(0, 1)] * 2, Fold::Add);
     }},
    {"layernorm", [](const Tensor& x) { return x.layernorm(); }},
    {"constant", [](const Tensor& x) { return Tensor::arange(6, DType::F64) + x * 0; }},
    {"write",
     [](const Tensor& x) {
       Tensor y = x * 2;
       y[Slice(1, 3)] += x[Slice(0, 2)];
       return y;
     }},
    {"write into a constant",
     [](const Tensor& x) {
       Tensor y = Tensor::arange(24, DType::F64).reshape({4, 6});
       y[{Slice(), Slice(2, 5)}].assign(x[{Slice(), Slice(0, 3)}]);
       return y;
     }},
    {"argmax", [](const Tensor& x) { return x * x.argmax(0).cast(DType::F64); }},
    {"one of several",
     [](const Tensor& x) { return (x > 0).where(x.sort(1, true).first, x.T().reshape({4, 6})); }},
    {"var", [](const Tensor& x) { return x.var({1}); }},
};

TEST(Vmap, IsALoopOverSlices) {
  const Tensor x = sample({3, 4, 6}, 1);
  for (const Row& row : kFunctions) {
    std::vector<Tensor> slices;
    for (int64_t i = 0; i < 3; ++i) slices.push_back(row.f(x[i]));
    expect_near(vmap(of_one(row.f), {x})[0], Tensor::stack(slices), row.name);
  }
}

TEST(Vmap, OfAVmap) {
  const Tensor x = sample({2, 3, 4, 6}, 2);
  for (const Row& row : kFunctions) {
    const TensorFunction inner = [&](const Tensors& v) { return vmap(of_one(row.f), v); };
    std::vector<Tensor> slices;
    for (int64_t i = 0; i < 2; ++i) slices.push_back(vmap(of_one(row.f), {x[i]})[0]);
    expect_near(vmap(inner, {x})[0], Tensor::stack(slices), row.name);
  }
}

TEST(Vmap, GradientsOfSlicesAreSlicesOfGradients) {
  const Tensor x = sample({3, 4, 6}, 3);
  for (const Row& row : kFunctions) {
    const auto loss = [&](const Tensor& v) { return (row.f(v) * row.f(v)).sum(); };
    const TensorFunction grad = [&](const Tensors& v) {
      return value_and_grad(of_one(loss), v).second;
    };
    const Tensor each = vmap(grad, {x})[0];
    const TensorFunction all = [&](const Tensors& v) {
      return Tensors{vmap(of_one(loss), v)[0].sum()};
    };
    expect_near(each, value_and_grad(all, {x}).second[0], row.name);
  }
}

TEST(Vmap, AxesAndSharedInputs) {
  const Tensor a = sample({4, 3}, 4), b = sample({4, 5}, 5);
  const auto f =
      of_two([](const Tensor& x, const Tensor& w) { return x.unsqueeze(0).matmul(w)[0]; });
  expect_near(vmap(f, {a, b}, {1, std::nullopt}, 1)[0], a.T().matmul(b).T(), "columns");
  EXPECT_ERROR(vmap(f, {a, b}, {0}), "1 axes for 2 inputs");
  EXPECT_ERROR(vmap(f, {a, b}, {1, 1}), "has 5 slices along axis 1, the ones before it 3");
  EXPECT_ERROR(vmap(f, {a, b}, {std::nullopt, std::nullopt}), "no input has an axis");
  EXPECT_ERROR(vmap(f, {a, b}, {2, 0}), "axis 2 is out of range");
}

TEST(Jvp, IsTheDualOfVjp) {
  const Tensor x = sample({4, 6}, 6), v = sample({4, 6}, 7);
  for (const Row& row : kFunctions) {
    const auto [y, moved] = jvp(of_one(row.f), {x}, {v});
    const Tensor u = sample(y[0].dims(), 8);
    const auto [same, pull] = vjp(of_one(row.f), {x});
    expect_near(y[0], same[0], row.name);
    expect_near((u * moved[0]).sum(), (pull({u})[0] * v).sum(), row.name);
  }
}

TEST(Jvp, IsTheSlopeOfAStep) {
  const Tensor x = sample({4, 6}, 9), v = sample({4, 6}, 10);
  for (const char* name : {"elementwise", "softmax", "matmul", "layernorm", "scatter", "cumsum"})
    for (const Row& row : kFunctions) {
      if (std::string(row.name) != name) continue;
      const double h = 1e-6;
      const Tensor slope = (row.f(x + v * h) - row.f(x - v * h)) / (2 * h);
      const Tensor moved = jvp(of_one(row.f), {x}, {v}).second[0];
      const auto a = moved.to_vector<double>(), b = slope.to_vector<double>();
      for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-6 * (1 + std::fabs(b[i])));
    }
}

TEST(Jacobian, OfALinearMapIsItsMatrix) {
  const Tensor m = sample({5, 4}, 11), x = sample({4}, 12);
  expect_near(jacobian(of_one([&](const Tensor& v) { return m.matmul(v); }), x), m, "matrix");
  const Tensor j = jacobian(of_one([](const Tensor& v) { return v * v.sum(); }), x);
  expect_near(j, Tensor::eye(4, DType::F64) * x.sum() + x.unsqueeze(1).expand({4, 4}), "v sum(v)");
}

TEST(Hessian, OfAQuadraticFormIsItsMatrix) {
  const Tensor m = sample({4, 4}, 13), x = sample({4}, 14);
  const auto f = of_one([&](const Tensor& v) { return (v * m.matmul(v)).sum(); });
  expect_near(hessian(f, x), m + m.T(), "quadratic");
}

TEST(Transforms, Errors) {
  const Tensor x = sample({3}, 15);
  const auto f = of_one([](const Tensor& v) { return v * 2; });
  EXPECT_ERROR(jvp(f, {x}, {sample({4}, 1)}), "tangents 0 has shape (4,)");
  EXPECT_ERROR(vjp(f, {Tensor::arange(3)}), "needs floating-point numbers");
  EXPECT_ERROR(value_and_grad(f, {x}), "needs one number to start from");
  const auto reads = of_one([](const Tensor& v) { return v * v.sum().item<double>(); });
  EXPECT_ERROR(vmap(reads, {x}), "asked for the values of its argument");
  EXPECT_ERROR(vjp(f, {x}).second({x, x}), "2 upstream gradients for 1 tensors");
}

TEST(Transforms, DerivativesOfSeveralResults) {
  const Tensor x = sample({3}, 1), v = sample({3}, 2);
  const TensorFunction f = [](const Tensors& in) { return Tensors{in[0] * 2, in[0] * in[0]}; };
  const auto [y, moved] = jvp(f, {x}, {v});
  expect_near(y[1], x * x, "value");
  expect_near(moved[0], v * 2, "the first result's");
  expect_near(moved[1], x * v * 2, "the second result's");
}

}  // namespace
}  // namespace weft
