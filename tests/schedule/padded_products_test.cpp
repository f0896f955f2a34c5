// Products over images with a border, and over what a stride leaves out.
#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

/// A convolution over a padded image, or the gradient of one, of any geometry.
struct ConvCase {
  int64_t batch, in, out, height, width, window, stride, dilation, before, after;
};

class PaddedProducts : public ScheduleTest {
 protected:
  struct Nodes {
    NodeRef y, dx, dw;
  };
  Nodes build(const ConvCase& c) {
    NodeRef x = b_.param(0, {c.batch, c.in, c.height, c.width}),
            w = b_.param(1, {c.out, c.in, c.window, c.window});
    NodeRef padded = c.before + c.after == 0
                         ? x
                         : b_.pad(x, {0, 0, c.before, c.before}, {0, 0, c.after, c.after});
    const int64_t high = c.height + c.before + c.after, wide = c.width + c.before + c.after;
    const int64_t reach = c.dilation * (c.window - 1) + 1;
    const int64_t p = (high - reach) / c.stride + 1, q = (wide - reach) / c.stride + 1;
    const GraphBuilder::Ints all{c.batch, c.out, c.in, p, q, c.window, c.window};
    NodeRef windows = b_.window(b_.window(padded, 2, c.window, c.stride, c.dilation), 3, c.window,
                                c.stride, c.dilation);
    NodeRef xs = b_.broadcast(windows, {c.batch, 1, c.in, p, q, c.window, c.window}, all),
            ws = b_.broadcast(w, {1, c.out, c.in, 1, 1, c.window, c.window}, all);
    NodeRef dy = b_.param(2, {c.batch, c.out, p, q});
    const auto of_all = [&](NodeRef d) {
      return b_.broadcast(d, {c.batch, c.out, 1, p, q, 1, 1}, all);
    };
    NodeRef dys = of_all(dy);
    NodeRef dx = b_.reduce(g_.mul(dys, ws), Fold::Add, {1});
    dx = b_.reduce(b_.unwindow(dx, wide, 3, c.window, c.stride, c.dilation), Fold::Add, {5});
    dx = b_.reduce(b_.unwindow(dx, high, 2, c.window, c.stride, c.dilation), Fold::Add, {4});
    return {b_.reduce(g_.mul(xs, ws), Fold::Add, {2, 5, 6}), dx,
            b_.reduce(g_.mul(xs, of_all(g_.alu(Op::Exp2, {dy}))), Fold::Add, {0, 3, 4})};
  }

  /// How what is neither given nor asked for lies.
  static std::vector<std::string> layouts(NodeRef of, const Target& target) {
    std::vector<std::string> found;
    for (const BufferSpec& b : make_schedule(std::vector<ScheduleOutput>{{of}}, target).buffers)
      if (b.input < 0 && b.output < 0) found.push_back(b.layout);
    std::ranges::sort(found);
    return found;
  }

  /// Masks that sums of products test.
  static int masks(const Schedule& schedule) {
    int masked = 0;
    for (const Kernel& k : schedule.kernels)
      for (NodeRef n : Toposort(k.sink)) {
        if (n->op != Op::Reduce) continue;
        for (NodeRef inside : Toposort(n->src(0)))
          masked += (inside->op == Op::Load && inside->nsrc == 3) || inside->op == Op::Where;
      }
    return masked;
  }
};

TEST_F(PaddedProducts, ReadTheirBorderWithoutAMask) {
  const Nodes n = build({2, 8, 16, 12, 11, 3, 1, 1, 1, 1});
  EXPECT_EQ(masks(make_schedule(std::vector<ScheduleOutput>{{n.y}}, kTarget)), 0);
  EXPECT_EQ(masks(make_schedule(std::vector<ScheduleOutput>{{n.dx}}, kTarget)), 0);
  // What is done in microseconds is not worth one more kernel.
  const Nodes small = build({1, 2, 3, 5, 5, 3, 1, 1, 1, 1});
  EXPECT_EQ(kernels({{small.y}}), 1u);
  EXPECT_EQ(kernels({{small.dx}}), 1u);
}

/// Three quarters of the image get nothing: a mask of the sum, which lowering leaves out whole, and
/// not one of every element that is read.
TEST_F(PaddedProducts, SumNothingWhereAStrideSkips) {
  const Nodes n = build({1, 16, 32, 8, 8, 1, 2, 1, 0, 0});
  const Schedule schedule = make_schedule(std::vector<ScheduleOutput>{{n.dx}}, kTarget);
  int sums = 0;
  for (const Kernel& k : schedule.kernels)
    for (NodeRef r : Toposort(k.sink)) {
      if (r->op != Op::Reduce) continue;
      ++sums;
      EXPECT_EQ(r->src(0)->op, Op::Where);
      for (NodeRef x : Toposort(r->src(0)->src(1))) {
        const bool tested = x->op == Op::Load && x->nsrc == 3;
        EXPECT_TRUE(!tested || x->src(2) == r->src(0)->src(0));
      }
    }
  EXPECT_EQ(sums, 1);
  check({{n.dx}}, 1e-5);
}

/// The gradient of a 1 x 1 convolution over short images: vectors run along the weights' rows,
/// which have axes of one behind them and lie in panels; what each lane shares lies along the sum.
TEST_F(PaddedProducts, OverShortImagesHaveVectorsAlongTheWeights) {
  const GraphBuilder::Ints all{32, 64, 512, 7, 7};
  NodeRef dy = g_.alu(Op::Exp2, {b_.param(0, {32, 64, 7, 7})}), w = b_.param(1, {64, 512, 1, 1});
  NodeRef product =
      g_.mul(b_.broadcast(dy, {32, 64, 1, 7, 7}, all), b_.broadcast(w, {1, 64, 512, 1, 1}, all));
  Target small = kTarget;
  small.machine.caches[1].bytes = 64 << 10;
  EXPECT_EQ(layouts(b_.reduce(product, Fold::Add, {1}), small),
            std::vector<std::string>({"axes 0,2,3,1", "axes 0,2,3,1, panels of 16"}));
}

/// Rows of 14 fill half of their lanes, all places of the image nearly all: nothing is moved for
/// vectors along them, and what a stride leaves is put side by side in the order that it has.
TEST_F(PaddedProducts, WithoutWindowsHaveVectorsAlongAllPlaces) {
  using Layouts = std::vector<std::string>;
  EXPECT_EQ(layouts(build({1, 64, 256, 14, 14, 1, 1, 1, 0, 0}).y, kTarget), Layouts());
  EXPECT_EQ(layouts(build({32, 16, 512, 28, 28, 1, 2, 1, 0, 0}).y, kTarget),
            Layouts({"axes 0,1,2,4,5,3"}));
  // 49 places leave a quarter idle, which costs more than moving the weights for 32 images.
  EXPECT_EQ(layouts(build({1, 512, 256, 7, 7, 1, 1, 1, 0, 0}).y, kTarget), Layouts());
  EXPECT_EQ(layouts(build({32, 512, 256, 7, 7, 1, 1, 1, 0, 0}).y, kTarget),
            Layouts({"axes 1,2,3,0, panels of 16"}));
  check({{build({2, 16, 64, 14, 14, 1, 1, 1, 0, 0}).y}}, 1e-5);
}

/// The weight's gradient sums over images and over places. Images are far apart in what it
/// multiplies by, so their loop is the outer one: with them innermost in memory each place takes a
/// line, and of many places none is left for the next image.
TEST_F(PaddedProducts, LieAlongTheirSumWhereItsNextElementComesSoon) {
  Target small = kTarget;
  small.machine.caches[1].bytes = 64 << 10;
  const auto has_images_innermost = [&](const ConvCase& c) {
    return std::ranges::count(layouts(build(c).dw, small), "axes 1,2,3,0");
  };
  EXPECT_EQ(has_images_innermost({32, 8, 128, 14, 14, 3, 1, 1, 1, 1}), 0);
  EXPECT_EQ(has_images_innermost({128, 8, 256, 3, 3, 3, 1, 1, 1, 1}), 1);
  check({{build({3, 8, 32, 6, 6, 3, 1, 1, 1, 1}).dw}}, 1e-5);
}

/// Of one channel each element is in nine products: where the border is few elements more, a copy
/// with zeros around it pays, for what the image's gradient computes first, too. Of long rows few
/// vectors reach the border.
TEST_F(PaddedProducts, OfSingleChannelsReadACopy) {
  const auto gradient = [&](int64_t side) {
    const GraphBuilder::Ints image{8, 32, side, side}, all{8, 32, side, side, 3, 3};
    NodeRef x = b_.param(0, image),
            dy = g_.mul(x, b_.broadcast(b_.param(1, {1, 1, 1, 1}), {1, 1, 1, 1}, image));
    NodeRef products = g_.mul(b_.broadcast(dy, {8, 32, side, side, 1, 1}, all),
                              b_.broadcast(b_.param(2, {32, 3, 3}), {1, 32, 1, 1, 3, 3}, all));
    NodeRef dx = b_.reduce(b_.unwindow(products, side + 2, 3, 3, 1, 1), Fold::Add, {5});
    dx = b_.reduce(b_.unwindow(dx, side + 2, 2, 3, 1, 1), Fold::Add, {4});
    return b_.shrink(dx, {0, 0, 1, 1}, image);
  };
  const auto masks_of = [&](NodeRef sum) {
    return masks(make_schedule(std::vector<ScheduleOutput>{{sum}}, kTarget));
  };
  EXPECT_EQ(masks_of(gradient(14)), 0);
  EXPECT_GT(masks_of(gradient(7)), 0);
  EXPECT_GT(masks_of(gradient(112)), 0);
  check({{gradient(14)}}, 1e-5);
}

/// With a stride of two a 1 x 1 convolution reads one element of four: for many outputs they are
/// put side by side once, and lie as they came.
TEST_F(PaddedProducts, WhatAStrideLeavesIsCopiedForManyOutputs) {
  const auto copies = [&](int64_t out) {
    const Nodes n = build({2, 16, out, 8, 8, 1, 2, 1, 0, 0});
    const Schedule s = make_schedule(std::vector<ScheduleOutput>{{n.y}}, kTarget);
    return std::ranges::count_if(s.buffers, [](const BufferSpec& b) {
      return b.input < 0 && b.output < 0 && b.numel->vmin == 2 * 16 * 4 * 4;
    });
  };
  EXPECT_EQ(copies(64), 0);
  EXPECT_EQ(copies(512), 1);
  check({{build({2, 16, 512, 8, 8, 1, 2, 1, 0, 0}).y}}, 1e-5);
}

TEST_F(PaddedProducts, OfEveryGeometryKeepTheirValues) {
  for (int i = 0; i < 10; ++i) {
    auto between = [&](int64_t least, int64_t most) {
      return std::uniform_int_distribution<int64_t>(least, most)(rng_);
    };
    ConvCase c{between(1, 3), between(1, 9), 16 * between(1, 2), between(5, 13), between(5, 13),
               between(2, 4), between(1, 2), between(1, 2),      between(0, 3),  between(0, 3)};
    if (c.dilation * (c.window - 1) >= std::min(c.height, c.width) + c.before) c.dilation = 1;
    const Nodes n = build(c);
    check({{n.y}, {n.dx}, {n.dw}}, 1e-5);
  }
}

}  // namespace
}  // namespace weft
