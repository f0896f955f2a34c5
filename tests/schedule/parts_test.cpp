// Values that are joined of parts: selected, or written in parts, by one kernel or several.
#include "tests/schedule/schedule_test.h"
#include "weft/schedule/axes.h"

namespace weft {
namespace {

/// Whether some kernel takes each element from one of several parts.
bool selects(NodeRef value) {
  const Schedule s = make_schedule(std::vector<ScheduleOutput>{{value}}, kTarget);
  for (const Kernel& k : s.kernels)
    for (NodeRef n : Toposort(k.sink))
      if (n->op == Op::Where) return true;
  return false;
}

TEST_F(ScheduleTest, LargePartsAreWrittenAndSmallOnesSelected) {
  struct Case {
    int parts;
    GraphBuilder::Ints dims;
    int64_t axis;
    bool selected;
  };
  const std::vector<Case> cases = {
      {2, {100}, 0, true},
      {8, {64}, 0, true},
      {2, {100000}, 0, false},
      {8, {5000}, 0, false},
      {2, {500, 100}, 1, false},
      {3, {500, 100, 1}, 1, false},
      {2, {20, 32, 50}, 1, true},
      {4, {20, 8, 8, 64}, 1, true},
      {8, {20, 8, 64, 64}, 1, false},
      {9, {20, 8, 64, 64}, 1, false},
  };
  for (const Case& c : cases) {
    GraphBuilder b;
    std::vector<NodeRef> parts;
    for (int i = 0; i < c.parts; ++i) parts.push_back(b.param(i, c.dims));
    NodeRef joined = b.graph().make({Op::Cat, DType::F32, parts, {&c.axis, 1}});
    EXPECT_EQ(selects(joined), c.selected) << c.parts << " parts along " << c.axis;
    if (c.dims[0] < 1000) check({{joined}});
  }
}

/// What lies side by side in rows, which are then written from end to end.
TEST_F(ScheduleTest, PartsThatAreCopiesShareAKernel) {
  NodeRef parts[] = {b_.param(0, {500, 100}), b_.param(1, {500, 100})};
  const int64_t axis = 1;
  EXPECT_EQ(kernels({{b_.graph().make({Op::Cat, DType::F32, parts, {&axis, 1}})}}), 1u);
}

/// What has much in common is computed once, by the kernel that writes all of it: the outputs of a
/// butterfly. Also where parts are joined of parts along another axis.
TEST_F(ScheduleTest, PartsMadeOfFewValuesShareAKernel) {
  const auto piece = [&](int64_t i) {
    return b_.reshape(b_.shrink(b_.param(0, {16, 500, 64}), {i, 0, 0}, {1, 500, 64}), {500, 64});
  };
  const auto joined = [&](std::vector<NodeRef> parts, int64_t axis) {
    for (NodeRef& p : parts)
      p = axis == 0 ? b_.reshape(p, {1, 500, 64}) : b_.reshape(p, {500, 1, 64});
    return b_.graph().make({Op::Cat, DType::F32, parts, {&axis, 1}});
  };
  std::vector<NodeRef> sums, differences;
  for (int64_t i = 0; i < 8; ++i) {
    sums.push_back(g_.add(piece(i), piece(i + 8)));
    differences.push_back(g_.add(piece(i), g_.mul(piece(i + 8), b_.constant(-1))));
  }
  std::vector<NodeRef> all = sums;
  all.insert(all.end(), differences.begin(), differences.end());
  EXPECT_EQ(kernels({{joined(all, 1)}}), 1u);
  check({{joined(all, 1)}});
  const auto beside = [&](NodeRef x) { return b_.reshape(x, {8, 500, 1, 64}); };
  NodeRef halves[] = {beside(joined(sums, 0)), beside(joined(differences, 0))};
  const int64_t inner = 2;
  NodeRef nested = b_.graph().make({Op::Cat, DType::F32, halves, {&inner, 1}});
  EXPECT_EQ(kernels({{nested}}), 1u);
  check({{nested}});
  // Of one value each, up to four share a kernel.
  std::vector<NodeRef> others;
  for (int i = 0; i < 9; ++i) others.push_back(g_.mul(b_.param(i, {500, 64}), b_.constant(3)));
  EXPECT_EQ(kernels({{joined(others, 0)}}), 3u);
}

}  // namespace
}  // namespace weft
