// Loops of scalars that no method makes: their gradients, and slices that begin differently.
#include <gtest/gtest.h>

#include <array>
#include "tests/io/scratch_dir.h"
#include "tests/tensor/near.h"
#include "weft/base/context.h"
#include "weft/tensor/access.h"
#include "weft/tensor/transforms.h"

namespace weft {
namespace {

/// p' = sin(p e) + q, q' = q f - p along `axis`, from p0 and q = 1; the two at the end, or at every
/// step.
Tensors pendulum(const Tensor& e, const Tensor& f, const Tensor& p0, int64_t axis, bool stacked) {
  Context& context = e.context();
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  const NodeRef elems[] = {e.node(), f.node()};
  const NodeRef inits[] = {p0.node(), build::scalar(g, DType::F64, 1)};
  const std::array<int64_t, 1> salt{axis};
  const auto results = build::loop(g, elems, inits, axis, stacked, salt, [&](auto in, auto c) {
    NodeRef p = g.add(g.alu(Op::Sin, {g.mul(c[0], in[0])}), c[1]);
    NodeRef q = g.alu(Op::Add, {g.mul(c[1], in[1]), g.alu(Op::Neg, {c[0]})});
    return std::vector<NodeRef>{p, q};
  });
  return {TensorAccess::make(context, results[0]), TensorAccess::make(context, results[1])};
}

Tensor loss(const Tensor& e, const Tensor& f, const Tensor& p0, int64_t axis, bool stacked) {
  const Tensors r = pendulum(e, f, p0, axis, stacked);
  return (r[0] * r[0]).sum() + (r[1] * 0.3).sum();
}

TEST(LoopGradient, EqualsFiniteDifferences) {
  const Tensor e = sample({3, 4}, 1), f = sample({3, 4}, 2), p0 = sample({}, 3);
  const double h = 1e-6;
  for (const int64_t axis : {0, 1})
    for (const bool stacked : {false, true}) {
      const Tensors in{e, f, p0};
      const Tensors grads = loss(e, f, p0, axis, stacked).gradient(in);
      for (size_t k = 0; k < 3; ++k) {
        const Tensor step = sample(in[k].dims(), 10 + k);
        Tensors up = in, down = in;
        up[k] = (in[k] + step * h).realize();
        down[k] = (in[k] - step * h).realize();
        const Tensor slope = (loss(up[0], up[1], up[2], axis, stacked) -
                              loss(down[0], down[1], down[2], axis, stacked)) /
                             (2 * h);
        expect_near((grads[k] * step).sum(), slope, "input " + std::to_string(k), 1e-6);
      }
    }
}

TEST(LoopGradient, HasAGradient) {
  const Tensor e = sample({3, 4}, 1), f = sample({3, 4}, 2), p0 = sample({}, 3);
  const auto squared = [&](const Tensor& x) {
    const Tensor g = loss(x, f, p0, 1, true).gradient({x})[0];
    return (g * g).sum();
  };
  const double h = 1e-5;
  const Tensor step = sample({3, 4}, 7);
  const Tensor grad = squared(e).gradient({e})[0];
  const Tensor slope =
      (squared((e + step * h).realize()) - squared((e - step * h).realize())) / (2 * h);
  expect_near((grad * step).sum(), slope, "second", 1e-5);
}

TEST(LoopGradient, SlicesMayBeginDifferently) {
  const Tensor e = sample({5, 3, 4}, 1), f = sample({3, 4}, 2), p0 = sample({5}, 3);
  for (const bool stacked : {false, true}) {
    const TensorFunction run = [&](const Tensors& in) {
      return pendulum(in[0], f, in[1], 1, stacked);
    };
    const Tensors all = vmap(run, {e, p0});
    for (int64_t i = 0; i < 5; ++i) {
      const Tensors one = run({e[i], p0[i]});
      for (size_t k = 0; k < 2; ++k) expect_near(all[k][i], one[k], "slice", 1e-12);
    }
  }
}

}  // namespace
}  // namespace weft
