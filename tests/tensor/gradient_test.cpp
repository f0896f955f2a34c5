#include <cmath>

#include "tests/support/small_stack.h"
#include "tests/tensor/differentiable.h"
#include "tests/tensor/tensor_test.h"
#include "weft/run/realize.h"
#include "weft/run/storage.h"
#include "weft/tensor/access.h"
#include "weft/tensor/gradients.h"

namespace weft {
namespace {

class Gradients : public TensorTest {};

TEST_F(Gradients, EqualFiniteDifferences) {
  for (const Differentiable& c : differentiable()) {
    SCOPED_TRACE(c.name);
    expect_gradients(c.inputs(), c.f, 1e-5);
  }
}

TEST_F(Gradients, EveryTensorOpHasARuleOrNeedsNone) {
  // Ops that pass no gradient on though they may give floats, each for its reason.
  const std::vector<Op> none = {Op::Bitcast, Op::Get,     Op::Detach, Op::Stage,
                                Op::Dot2,    Op::Dot2I16, Op::Dot4};
  for (const OpInfo& op : kOps) {
    const OpGroup g = op.op == Op::Bind ? OpGroup::Leaf : group(op.op);
    if (g == OpGroup::Leaf || g == OpGroup::Memory || g == OpGroup::Linear) continue;
    const bool discrete =
        has_trait(op.op, kIntOnly) || has_trait(op.op, kBoolResult) || op.op == Op::ToIndex;
    const bool listed = discrete || std::find(none.begin(), none.end(), op.op) != none.end();
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

/// A loss of class numbers has no array of zeros beside its logits.
TEST_F(Gradients, OneElementOfEachRowIsComparedNotScattered) {
  const auto scatters = [](const Tensor& t) {
    int n = 0;
    for (NodeRef x : Toposort(t.node())) n += x->op == Op::Scatter;
    return n;
  };
  const Tensor x = Tensor::of({{1.0f, 2.0f, 3.0f}, {4.0f, 5.0f, 6.0f}});
  for (const DType dtype : {DType::U8, DType::I32, DType::U32, DType::I64, DType::U64}) {
    const Tensor at = Tensor::of({{2}, {0}}).cast(dtype);
    const Tensor one = (x.gather(1, at) * Tensor::of({{5.0f}, {7.0f}})).sum().gradient({x})[0];
    EXPECT_EQ(scatters(one), 0);
    EXPECT_EQ(shown(one), "f32 (2, 3) [0, 0, 5, 7, 0, 0]");
  }
  // What is not there has no gradient; some of the rows, or more of each, are scattered.
  const Tensor outside = x.gather(1, Tensor::of({{1}, {-1}}) - Tensor::of({{0}, {9}}));
  EXPECT_EQ(shown(outside.sum().gradient({x})[0]), "f32 (2, 3) [0, 1, 0, 0, 0, 0]");
  const Tensor row = x.gather(1, Tensor::of({{2}})).sum().gradient({x})[0];
  EXPECT_EQ(scatters(row), 1);
  EXPECT_EQ(shown(row), "f32 (2, 3) [0, 0, 1, 0, 0, 0]");
  const Tensor twice = x.gather(1, Tensor::of({{2, 2}, {1, 2}})).sum().gradient({x})[0];
  EXPECT_EQ(shown(twice), "f32 (2, 3) [0, 0, 2, 0, 1, 1]");
}

TEST_F(Gradients, ScatteredProductsWithZerosAreExact) {
  const TensorFunction product = [](const std::vector<Tensor>& x) {
    return x[0].scatter(0, Tensor::of({0, 0, 1, 2, 3, 3, 3, 4, 4}), x[1], Fold::Mul);
  };
  const auto inputs = [](const std::vector<double>& base, const std::vector<double>& src) {
    return std::vector<Tensor>{Tensor::from(base), Tensor::from(src)};
  };
  // No zero, one, two, three of them, and one of the base's.
  const auto x = inputs({2, 3, 0, 5, 7}, {2, 0.5, 0, 4, 0, 3, 0, 1.5, 0});
  expect_gradients(x, product, 1e-8);
  const auto hessian = [](const std::vector<Tensor>& at) {
    const Tensor y = at[0].scatter(0, Tensor::of({0, 0, 1, 2, 3, 3, 3, 4, 4}), at[1], Fold::Mul);
    return (y * sample(y.dims(), 3)).sum().gradient({at[1]})[0];
  };
  expect_gradients(x, hessian, 1e-8);
  expect_gradients(inputs({1, 1, 1, 1, 1}, {0, 0, 1, 2, 0, 0, 0, 3, 4}), hessian, 1e-8);
}

/// Where a formula of the parts would multiply 0 by infinity.
TEST_F(Gradients, AtInfinitiesAndPoles) {
  for (const DType d : {DType::F32, DType::F64}) {
    const auto slope = [d](Tensor (*f)(const Tensor&), double at) {
      const Tensor x = Tensor::from(std::vector<double>{at}).cast(d);
      return values(f(x).sum().gradient({x})[0])[0];
    };
    for (const double end : {INFINITY, -INFINITY}) {
      EXPECT_EQ(slope([](const Tensor& x) { return x.erf(); }, end), 0);
      EXPECT_EQ(slope([](const Tensor& x) { return x.erf().gradient({x})[0]; }, end), 0);
      EXPECT_EQ(slope([](const Tensor& x) { return x.pow(0.0); }, end), 0);
    }
    EXPECT_EQ(slope([](const Tensor& x) { return x.log1p(); }, -1), INFINITY);
    EXPECT_EQ(slope([](const Tensor& x) { return x.acosh(); }, 1), INFINITY);
    const auto cosh = [](const Tensor& x) { return x.cosh(); };
    const double most = d == DType::F64 ? 710.4 : 89.4;  // e^x alone is infinite
    for (const double at : {0x1p-30, most, -most})
      EXPECT_NEAR(slope(cosh, at) / std::sinh(at), 1, 1e-2) << at;
  }
}

TEST_F(Gradients, ErfsAreSmallWhereItIsOne) {
  const Tensor x = Tensor::from(std::vector<double>{7, 20}), slope = x.erf().sum().gradient({x})[0];
  expect_near(slope / (-(x * x)).exp(), {M_2_SQRTPI, M_2_SQRTPI}, 1e-6);
}

/// What has no slope anywhere depends on its operand all the same: gradients are 0, not missing.
TEST_F(Gradients, FlatFunctionsHaveGradientsOfZero) {
  const auto slope = [](Tensor (*f)(const Tensor&)) {
    Tensor t = Tensor::of({1.5f, 0.0f, -3.0f, INFINITY, NAN}).requires_grad_();
    f(t).sum().backward();
    return shown(t.grad());
  };
  const char* nothing = "f32 (5) [0, 0, 0, 0, 0]";
  EXPECT_EQ(shown(Tensor::of({1.0f, 0.0f, INFINITY, NAN}).pow(0.0)), "f32 (4) [1, 1, 1, 1]");
  EXPECT_EQ(slope([](const Tensor& t) { return t.pow(0.0); }), nothing);
  EXPECT_EQ(slope([](const Tensor& t) { return t.pow(0); }), nothing);
  EXPECT_EQ(slope([](const Tensor& t) { return t.trunc(); }), nothing);
  EXPECT_EQ(slope([](const Tensor& t) { return t.floor(); }), nothing);
  EXPECT_EQ(slope([](const Tensor& t) { return t.ceil(); }), nothing);
  EXPECT_EQ(slope([](const Tensor& t) { return t.round(); }), nothing);
  EXPECT_EQ(slope([](const Tensor& t) { return t.floor_div(2); }), nothing);
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

TEST_F(Gradients, LeavesAreComputedWithWhatReadsThem) {
  Tensor w = Tensor::rand({4}).requires_grad_(), unused = Tensor::rand({4}).requires_grad_();
  const Tensor other = Tensor::rand({4}), loss = (w * w * other).sum();
  const auto computed = [](const Tensor& x) { return TensorAccess::shared(x)->realized(); };
  const float before = loss.item<float>();
  EXPECT_TRUE(computed(w));
  EXPECT_FALSE(computed(unused));
  EXPECT_FALSE(computed(other)) << "nobody said that it would be read again";
  EXPECT_EQ((w * w * other).sum().item<float>(), before);
  // Of a graph that was made before w was memory, also beside one that was made after it.
  const Tensor wanted = (w * 2 * other).realize();
  EXPECT_EQ(shown(loss.gradient({w})[0]), shown(wanted));
  EXPECT_EQ(shown((loss + (w * w * other).sum()).gradient({w})[0]), shown(wanted * 2));
  loss.backward();
  EXPECT_LE((w.grad() - w * 2 * other).abs().max().item<float>(), 1e-6f);
}

TEST_F(Gradients, LongChains) {
  const Tensor x = Tensor::of({1.0});
  Tensor y = x;
  for (int i = 0; i < 20000; ++i) y = y * 1.0001;
  EXPECT_NEAR(values(y.sum().gradient({x})[0])[0], std::pow(1.0001, 20000), 1e-2);
}

/// Builds, differentiates and frees a chain of `depth` operations on a 256 KiB stack.
void deep_chain(Context& context, int depth) {
  on_small_stack([&] {
    const ContextScope scope(context);
    const Tensor x = Tensor::of({1.0f});
    Tensor y = x;
    for (int i = 0; i < depth; ++i) y = (y + x).reshape({1});
    const Tensor g = y.sum().gradient({x})[0];
    EXPECT_EQ(g.shape(), (std::vector<int64_t>{1}));
  });
  collect_garbage(context);
  EXPECT_LT(tensor_graph(context).live_nodes(), 1000u);
}

TEST_F(Gradients, DeepGraphsOnASmallStack) { deep_chain(context_, 100000); }
TEST_F(Gradients, MillionDeepGraphsOnASmallStackSlow) { deep_chain(context_, 1000000); }

}  // namespace
}  // namespace weft
