#include <cmath>

#include "tests/tensor/tensor_test.h"
#include "weft/run/storage.h"
#include "weft/tensor/gradients.h"

namespace weft {
namespace {

class Gradients : public TensorTest {};
using In = const std::vector<Tensor>&;

struct Case {
  const char* name;
  std::vector<Dims> shapes;
  TensorFunction f;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> kCases = {
      {"add broadcast", {{2, 3}, {3}}, [](In x) { return x[0] + x[1]; }},
      {"sub scalar", {{2, 3}, {}}, [](In x) { return x[0] - x[1]; }},
      {"mul broadcast", {{2, 1}, {1, 3}}, [](In x) { return x[0] * x[1]; }},
      {"mul scalar", {{}, {4}}, [](In x) { return x[0] * x[1]; }},
      {"div", {{2, 3}, {2, 1}}, [](In x) { return x[0] / x[1]; }},
      {"square", {{3}}, [](In x) { return x[0] * x[0]; }},
      {"sqrt exp2 log2", {{3}}, [](In x) { return ((x[0] * x[0]).sqrt().exp2() + 1).log2(); }},
      {"maximum minimum", {{4}, {4}}, [](In x) { return x[0].maximum(x[1]) + x[0].minimum(0.1); }},
      {"where", {{4}, {4}}, [](In x) { return (x[0] > x[1]).where(x[0] * 2, x[1] * 3); }},
      {"pow tensor", {{3}, {3}}, [](In x) { return x[0].abs().pow(x[1]); }},
      {"reshape permute", {{2, 3}}, [](In x) { return x[0].T().reshape({6}) * Tensor::arange(6); }},
      {"expand", {{2, 1}}, [](In x) { return x[0].expand({2, 3}); }},
      {"pad", {{2, 2}}, [](In x) { return x[0].pad({{1, 2}, {-1, 1}}, 3); }},
      {"shrink step", {{7}}, [](In x) { return x[0][{Slice(1, 7, 2)}]; }},
      {"slice back", {{7}}, [](In x) { return x[0][{Slice(5, 0, -3)}]; }},
      {"flip", {{2, 3}}, [](In x) { return x[0].flip(1); }},
      {"cat stack", {{2}, {3}}, [](In x) { return Tensor::cat({x[0], x[1], x[0]}); }},
      {"window", {{8}}, [](In x) { return x[0].window(0, 3, 2); }},
      {"window dilated", {{2, 8}}, [](In x) { return x[0].window(1, 2, 1, 3); }},
      {"roll repeat", {{3}}, [](In x) { return x[0].roll(1, 0).repeat({2}); }},
      {"gather", {{3, 2}}, [](In x) { return x[0].gather(0, Tensor::of({{0, 2}, {0, 5}})); }},
      {"index", {{3, 2}}, [](In x) { return x[0][Tensor::of({2, 0, 2})]; }},
      {"scatter set",
       {{4}, {3}},
       [](In x) { return x[0].scatter(0, Tensor::of({1, 3, 1}), x[1]); }},
      {"scatter add",
       {{4}, {3}},
       [](In x) { return x[0].scatter(0, Tensor::of({1, 3, 1}), x[1], Fold::Add); }},
      {"scatter mul",
       {{4}, {3}},
       [](In x) { return x[0].scatter(0, Tensor::of({1, 3, 1}), x[1], Fold::Mul); }},
      {"scatter max",
       {{4}, {3}},
       [](In x) { return x[0].scatter(0, Tensor::of({1, 3, 1}), x[1], Fold::Max); }},
      {"assign",
       {{3, 3}, {3}},
       [](In x) {
         Tensor y = x[0] * 1;
         y[{Slice(), 1}].assign(x[1]);
         y[0] *= 2;
         return y;
       }},
      {"sum mean", {{2, 3}}, [](In x) { return x[0].sum(0) * x[0].mean(0); }},
      {"max min", {{2, 3}}, [](In x) { return x[0].max(1) + x[0].min(1); }},
      {"prod", {{2, 3, 2}}, [](In x) { return x[0].prod({0, 2}); }},
      {"var std", {{3, 4}}, [](In x) { return x[0].var(1) + x[0].std(1); }},
      {"softmax", {{2, 3}}, [](In x) { return x[0].softmax(); }},
      {"log_softmax", {{2, 3}}, [](In x) { return x[0].log_softmax(0); }},
      {"logsumexp", {{2, 3}}, [](In x) { return x[0].logsumexp(1); }},
      {"cumsum", {{2, 4}}, [](In x) { return x[0].cumsum(1); }},
      {"cumprod", {{2, 4}}, [](In x) { return x[0].cumprod(1); }},
      {"cummax cummin", {{2, 4}}, [](In x) { return x[0].cummax(1) * x[0].cummin(1); }},
      {"sort", {{2, 5}}, [](In x) { return x[0].sort().first; }},
      {"topk", {{6}}, [](In x) { return x[0].topk(3).first; }},
      {"matmul", {{2, 3}, {3, 2}}, [](In x) { return x[0].matmul(x[1]); }},
      {"matmul batched", {{2, 1, 2, 3}, {2, 3, 1}}, [](In x) { return x[0].matmul(x[1]); }},
      {"matmul vector", {{2, 3}, {3}}, [](In x) { return x[0].matmul(x[1]); }},
      {"conv2d",
       {{1, 2, 4, 4}, {2, 2, 3, 3}, {2}},
       [](In x) { return x[0].conv2d(x[1], x[2], {.padding = 1}); }},
      {"conv2d stride",
       {{1, 2, 5, 5}, {2, 1, 2, 2}},
       [](In x) { return x[0].conv2d(x[1], {}, {.groups = 2, .stride = 2, .dilation = 2}); }},
      {"conv_transpose2d",
       {{1, 2, 3}, {2, 1, 3}},
       [](In x) { return x[0].conv_transpose2d(x[1], {}, {.stride = 2, .padding = 1}); }},
      {"max_pool2d", {{1, 1, 4, 5}}, [](In x) { return x[0].max_pool2d(); }},
      {"max_pool2d overlap",
       {{1, 1, 4, 5}},
       [](In x) { return x[0].max_pool2d({3, 3}, {.stride = 1, .padding = 1}); }},
      {"avg_pool2d", {{1, 1, 5, 4}}, [](In x) { return x[0].avg_pool2d({2, 2}, {.stride = 1}); }},
      {"layernorm", {{2, 4}}, [](In x) { return x[0].layernorm(); }},
      {"batchnorm",
       {{2, 2, 2}, {2}, {2}},
       [](In x) {
         const Tensor mean = x[0].mean({0, 2}), var = x[0].var({0, 2}, false, 0);
         return x[0].batchnorm(x[1], x[2], mean, (var + 1e-3).rsqrt());
       }},
      {"attention",
       {{1, 2, 4}, {1, 2, 4}, {1, 2, 4}},
       [](In x) { return x[0].scaled_dot_product_attention(x[1], x[2], {.causal = true}); }},
      {"cross_entropy",
       {{3, 4}},
       [](In x) { return x[0].cross_entropy(Tensor::of({1, 3, -1}), 0.1); }},
      {"bce",
       {{3}},
       [](In x) { return x[0].binary_crossentropy_logits(x[0].sigmoid().detach() * 0.5); }},
      {"contiguous", {{3}}, [](In x) { return x[0].exp().contiguous() * 2; }},
      {"second order",
       {{3}},
       [](In x) { return (x[0] * x[0] * x[0].sin()).sum().gradient({x[0]})[0]; }},
      {"second order conv",
       {{1, 1, 4}, {1, 1, 2}},
       [](In x) { return x[0].conv2d(x[1]).square().sum().gradient({x[0]})[0]; }},
      {"second order prod", {{4}}, [](In x) { return x[0].prod().gradient({x[0]})[0]; }},
      {"second order unwindow",
       {{6}},
       [](In x) { return (x[0].window(0, 3).square()).sum().gradient({x[0]})[0].pow(2); }},
      {"second order cumprod",
       {{4}},
       [](In x) { return x[0].cumprod(0).square().sum().gradient({x[0]})[0]; }},
  };
  return kCases;
}

TEST_F(Gradients, EqualFiniteDifferences) {
  for (const Case& c : cases()) {
    if (std::string(c.name) == "bce") continue;  // its target depends on x on purpose
    SCOPED_TRACE(c.name);
    std::vector<Tensor> inputs;
    for (const Dims& shape : c.shapes)
      inputs.push_back(sample(shape, static_cast<int>(inputs.size()) + 1));
    expect_gradients(inputs, c.f, 1e-5);
  }
}

TEST_F(Gradients, EveryTensorOpHasARuleOrNeedsNone) {
  // Ops that pass no gradient on, each for its reason.
  const std::vector<Op> none = {Op::Not,  Op::Trunc,  Op::Bitcast, Op::ToIndex, Op::IDiv,
                                Op::Mod,  Op::Lt,     Op::Le,      Op::Eq,      Op::Ne,
                                Op::And,  Op::Or,     Op::Xor,     Op::Shl,     Op::Shr,
                                Op::Loop, Op::Detach, Op::Stage};
  for (const OpInfo& op : kOps) {
    const OpGroup g = op.op == Op::Bind ? OpGroup::Leaf : group(op.op);
    if (g == OpGroup::Leaf || g == OpGroup::Memory || g == OpGroup::Linear) continue;
    const bool listed = std::find(none.begin(), none.end(), op.op) != none.end();
    EXPECT_NE(gradient_rule(op.op) != nullptr, listed) << op.name;
  }
}

TEST_F(Gradients, TiesShareEqually) {
  const Tensor x = Tensor::of({3.0f, 1.0f, 3.0f});
  EXPECT_EQ(shown(x.max().gradient({x})[0]), "f32 (3) [0.5, 0, 0.5]");
  const Tensor y = Tensor::of({3.0f, 2.0f, 0.0f});
  const auto g = x.maximum(y).sum().gradient({x, y});
  EXPECT_EQ(shown(g[0]), "f32 (3) [0.5, 0, 1]");
  EXPECT_EQ(shown(g[1]), "f32 (3) [0.5, 1, 0]");
}

TEST_F(Gradients, ProductsWithZerosAreExact) {
  const Tensor x = Tensor::of({2.0f, 0.0f, 3.0f});
  EXPECT_EQ(shown(x.prod().gradient({x})[0]), "f32 (3) [0, 6, 0]");
  EXPECT_EQ(shown(x.cumprod(0).sum().gradient({x})[0]), "f32 (3) [1, 8, 0]");
}

TEST_F(Gradients, DetachStopsAndIntegersPassNothing) {
  const Tensor x = Tensor::of({1.0f, 2.0f});
  EXPECT_EQ(shown((x * x.detach()).sum().gradient({x})[0]), "f32 (2) [1, 2]");
  EXPECT_EQ(shown(x.cast(DType::I32).cast(DType::F32).sum().gradient({x})[0]), "f32 (2) [0, 0]");
  EXPECT_EQ(shown(x.round().sum().gradient({x})[0]), "f32 (2) [0, 0]");
}

TEST_F(Gradients, HalfGradientsHaveHalfDtype) {
  const Tensor x = Tensor::ones({300}).contiguous().cast(DType::F16);
  Tensor leaf = Tensor::of({1.0f, 2.0f}).cast(DType::F16);
  const Tensor g = (leaf * 2.0).sum().gradient({leaf})[0];
  EXPECT_EQ(shown(g), "f16 (2) [2, 2]");
  EXPECT_EQ((leaf.matmul(leaf)).gradient({leaf})[0].dtype(), DType::F16);
}

TEST_F(Gradients, BackwardFillsAndAccumulates) {
  Tensor w = Tensor::of({1.0f, 2.0f}).requires_grad_(),
         unused = Tensor::of({1.0f}).requires_grad_();
  EXPECT_FALSE(w.grad().defined());
  const Tensor x = Tensor::of({3.0f, 4.0f});
  (w * x).sum().backward();
  EXPECT_EQ(shown(w.grad()), "f32 (2) [3, 4]");
  (w * w).sum().backward();
  EXPECT_EQ(shown(w.grad()), "f32 (2) [5, 8]");
  EXPECT_FALSE(unused.grad().defined());
  w.zero_grad();
  (w * 2).backward(Tensor::of({1.0f, 10.0f}));
  EXPECT_EQ(shown(w.grad()), "f32 (2) [2, 20]");
}

TEST_F(Gradients, EqualLeavesAreDifferentLeaves) {
  Tensor a = Tensor::zeros({2}).requires_grad_(), b = Tensor::zeros({2}).requires_grad_();
  (a * 2 + b * 3).sum().backward();
  EXPECT_EQ(shown(a.grad()), "f32 (2) [2, 2]");
  EXPECT_EQ(shown(b.grad()), "f32 (2) [3, 3]");
}

TEST_F(Gradients, RealizingALeafBetweenForwardAndBackwardIsNotSeen) {
  Tensor w = (Tensor::of({1.0f, 2.0f}) * 3).requires_grad_();
  const Tensor loss = (w * w).sum();
  w.realize();
  loss.backward();
  EXPECT_EQ(shown(w.grad()), "f32 (2) [6, 12]");
}

TEST_F(Gradients, TrainingStepUpdatesInPlace) {
  Tensor w = Tensor::of({4.0f}).requires_grad_();
  for (int step = 0; step < 3; ++step) {
    w.zero_grad();
    (w * w).sum().backward();
    w.assign(w - w.grad() * 0.25);
    w.realize();
  }
  EXPECT_EQ(w.item<float>(), 0.5f);
}

TEST_F(Gradients, MillionDeepGraphs) {
  Tensor x = Tensor::of({1.0});
  Tensor y = x;
  for (int i = 0; i < 20000; ++i) y = y * 1.0001;
  const auto g = y.sum().gradient({x});
  EXPECT_NEAR(values(g[0])[0], std::pow(1.0001, 20000), 1e-2);
}

}  // namespace
}  // namespace weft
