// What repeated bodies compute for all rounds at once: by the form of the Repeat that is left, and
// by values, against the loop written out (scan_test.cpp has more of those).
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tensor/near.h"
#include "weft/base/context.h"
#include "weft/graph/tuple.h"
#include "weft/run/stats.h"
#include "weft/tensor/transforms.h"

namespace weft {
namespace {

constexpr int64_t kRounds = 5;

/// Of the one Repeat that x is computed by: products in its bodies, and what it carries.
struct Left {
  int64_t products = 0;
  size_t carried = 0;
};
Left left_in(const Tensor& x) {
  Left left;
  std::vector<NodeRef> repeats;
  for (NodeRef n : Toposort(x.node()))
    if (n->op == Op::Repeat) repeats.push_back(n);
  EXPECT_EQ(repeats.size(), 1u);
  const std::vector<NodeRef> bodies(closed_sources(repeats[0]).begin(),
                                    closed_sources(repeats[0]).end());
  for (NodeRef n : Toposort(bodies)) left.products += n->op == Op::Reduce;
  left.carried = RepeatParts(repeats[0]).nexts.size();
  return left;
}

struct Given {
  Tensor h = sample({3, 4}, 1), w = sample({6, 4}, 2), v = sample({4, 4}, 3);
  Tensor x = sample({kRounds, 3, 6}, 4);
};

/// tanh(h @ v + x @ w), one h after the other.
ScanResult recurrent(const Given& given) {
  return scan(
      [&](const Tensors& carried, const Tensors& slices) {
        const Tensor h = (carried[0].matmul(given.v) + slices[0].matmul(given.w)).tanh();
        return ScanResult{{h}, {h}};
      },
      {given.h}, {given.x});
}

TEST(SplitRepeat, ProductsThatWaitForNothingAreMadeBefore) {
  const Given given;
  const ScanResult got = recurrent(given);
  EXPECT_EQ(left_in(got.carried[0]).products, 1) << "h @ v";
  Tensor h = given.h;
  for (int64_t i = 0; i < kRounds; ++i) h = (h.matmul(given.v) + given.x[i].matmul(given.w)).tanh();
  expect_near(got.carried[0], h, "the last h");
  expect_near(got.stacked[0][kRounds - 1], h, "the last of the stack");
}

TEST(SplitRepeat, ProductsThatNothingWaitsForAreMadeAfterwards) {
  const Given given;
  const auto f = [&](const Tensors& carried, const Tensors& slices) {
    const Tensor h = (carried[0] + slices[0]).tanh();
    return ScanResult{{h}, {h.matmul(given.w)}};
  };
  const Tensor got = scan(f, {sample({3, 6}, 5)}, {given.x}).stacked[0];
  EXPECT_EQ(left_in(got).products, 0);
  Tensor h = sample({3, 6}, 5);
  for (int64_t i = 0; i < kRounds; ++i) {
    h = (h + given.x[i]).tanh();
    expect_near(got[i], h.matmul(given.w), "round " + std::to_string(i));
  }
}

TEST(SplitRepeat, SumsOverTheRoundsAreMadeAfterwards) {
  const Given given;
  const auto f = [&](const Tensors& carried, const Tensors& slices) {
    const Tensor h = (carried[0] + slices[0]).tanh();
    return ScanResult{{h, h.transpose(0, 1).matmul(slices[0]) + carried[1]}, {}};
  };
  const Tensor begin = sample({6, 6}, 6);
  const Tensor got = scan(f, {sample({3, 6}, 5), begin}, {given.x}).carried[1];
  EXPECT_EQ(left_in(got).products, 0);
  EXPECT_EQ(left_in(got).carried, 1u);
  Tensor h = sample({3, 6}, 5), want = begin;
  for (int64_t i = 0; i < kRounds; ++i) {
    h = (h + given.x[i]).tanh();
    want = want + h.transpose(0, 1).matmul(given.x[i]);
  }
  expect_near(got, want, "the sum");
}

TEST(SplitRepeat, ASumThatIsLookedAtIsCarried) {
  const Given given;
  const auto f = [&](const Tensors& carried, const Tensors& slices) {
    const Tensor sum = carried[0] + slices[0].transpose(0, 1).matmul(slices[0]);
    return ScanResult{{sum}, {sum}};
  };
  const Tensor begin = sample({6, 6}, 6);
  const ScanResult got = scan(f, {begin}, {given.x});
  EXPECT_EQ(left_in(got.carried[0]).carried, 1u);
  Tensor want = begin;
  for (int64_t i = 0; i < kRounds; ++i) {
    want = want + given.x[i].transpose(0, 1).matmul(given.x[i]);
    expect_near(got.stacked[0][i], want, "round " + std::to_string(i));
  }
}

TEST(SplitRepeat, WhatIsLargerThanWhatABodyIsGivenStays) {
  const Tensor row = sample({kRounds, 1, 2}, 7), wide = sample({2, 64}, 8);
  const auto f = [&](const Tensors& carried, const Tensors& slices) {
    return ScanResult{{carried[0] + (slices[0].matmul(wide) * carried[0]).sum()}, {}};
  };
  const Tensor got = scan(f, {sample({1}, 9)}, {row}).carried[0];
  EXPECT_EQ(left_in(got).products, 2);
  Tensor want = sample({1}, 9);
  for (int64_t i = 0; i < kRounds; ++i) want = want + (row[i].matmul(wide) * want).sum();
  expect_near(got, want, "the last");
}

TEST(SplitRepeat, AGradientCarriesNoGradientsOfWeights) {
  Given given;
  for (Tensor* p : {&given.v, &given.w}) p->requires_grad_();
  recurrent(given).stacked[0].square().sum().backward();
  Tensor h = given.h.detach(), v = given.v.detach().requires_grad_(),
         w = given.w.detach().requires_grad_(), loss = Tensor::full({}, 0.0);
  for (int64_t i = 0; i < kRounds; ++i) {
    h = (h.matmul(v) + given.x[i].matmul(w)).tanh();
    loss = loss + h.square().sum();
  }
  loss.backward();
  expect_near(given.v.grad(), v.grad(), "of v");
  expect_near(given.w.grad(), w.grad(), "of w");
}

/// Kernels that `compute` runs of the recurrence with that many rounds.
int64_t kernels_of(int64_t rounds, void (*compute)(Given&)) {
  Context context;
  const ContextScope scope(context);
  Given given;
  given.x = sample({rounds, 32, 64}, 4);
  given.h = sample({32, 128}, 1), given.w = sample({64, 128}, 2), given.v = sample({128, 128}, 3);
  realize({given.x, given.h, given.w, given.v});
  const int64_t before = run_stats(context).kernels;
  compute(given);
  return run_stats(context).kernels - before;
}

TEST(SplitRepeat, WeightsAreLaidOutOnce) {
  const auto with = [](int64_t rounds) {
    return kernels_of(rounds, [](Given& given) { recurrent(given).carried[0].realize(); });
  };
  const int64_t few = with(4), more = with(5), most = with(6);
  EXPECT_EQ(more - few, most - more);
  EXPECT_LE(more - few, 2) << "the product with what follows it, and what it reads of h";
}

/// Forwards the product, which is kept, what follows it, and copies of what is carried; backwards
/// what is done with what was kept, and the product of that.
TEST(SplitRepeat, ProductsAreKeptForTheGradient) {
  const auto with = [](int64_t rounds) {
    return kernels_of(rounds, [](Given& given) {
      given.v.requires_grad_();
      recurrent(given).carried[0].square().sum().backward();
      given.v.grad().realize();
    });
  };
  const int64_t few = with(4), more = with(5), most = with(6);
  EXPECT_EQ(more - few, most - more);
  EXPECT_LE(more - few, 5);
}

}  // namespace
}  // namespace weft
