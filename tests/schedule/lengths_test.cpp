// Schedules of symbolic sizes.
#include "tests/schedule/schedule_test.h"
#include "weft/graph/index_algebra.h"

namespace weft {
namespace {

class LengthsTest : public ScheduleTest {
 protected:
  NodeRef variable(int64_t most, int64_t least = 1) { return g_.variable("n", least, most); }

  /// The first ones along each axis.
  NodeRef first(NodeRef x, std::vector<NodeRef> sizes) {
    std::vector<NodeRef> src{x};
    src.resize(1 + sizes.size(), g_.index(0));
    src.insert(src.end(), sizes.begin(), sizes.end());
    const std::vector<int64_t> steps(sizes.size(), 1);
    return g_.make({Op::Shrink, x->dtype, src, steps});
  }
  /// Of a matrix, or as many of them, and another.
  NodeRef product(NodeRef a, NodeRef b) {
    const size_t batch = a->rank() - 2;
    NodeRef one = g_.index(1), m = a->dim(batch), k = a->dim(batch + 1), n = b->dim(batch + 1);
    const auto seen = [&](NodeRef x, std::initializer_list<NodeRef> dims) {
      std::vector<NodeRef> reshape{x}, expand{nullptr};
      for (size_t i = 0; i < batch; ++i) reshape.push_back(x->dim(i)), expand.push_back(x->dim(i));
      reshape.insert(reshape.end(), dims);
      expand.insert(expand.end(), {m, k, n});
      expand[0] = g_.make({Op::Reshape, x->dtype, reshape});
      return g_.make({Op::Expand, x->dtype, expand});
    };
    return b_.reduce(g_.mul(seen(a, {m, k, one}), seen(b, {one, k, n})), Fold::Add,
                     {static_cast<int64_t>(batch) + 1});
  }

  static std::vector<NodeRef> ranges_of(const Schedule& s, size_t step) {
    std::vector<NodeRef> sizes;
    for (NodeRef x : Toposort(s.kernels[static_cast<size_t>(s.steps[step].kernel)].sink))
      if (x->op == Op::Range) sizes.push_back(x->src(0));
    return sizes;
  }

  std::vector<Schedule> schedules_;  // own the sizes that are looked at
};

/// A copy goes as far as the variable says, in whole panels, and has room for all.
TEST_F(LengthsTest, CopiesEndWhereTheVariableSays) {
  NodeRef n = variable(1024), all = g_.index(1024);
  NodeRef x = b_.param(0, {1024, 1024}), y = b_.param(1, {1024, 1024});
  const auto sizes_copied = [&](NodeRef product) {
    schedules_.push_back(make_schedule(std::vector<ScheduleOutput>{{product}}, kTarget));
    const Schedule& s = schedules_.back();
    EXPECT_EQ(s.steps.size(), 2u);
    EXPECT_EQ(s.buffers[static_cast<size_t>(s.steps[0].buffers[0])].numel->vmin, 1024 * 1024);
    return ranges_of(s, 0);
  };
  const auto varies = [](NodeRef size) { return size->op != Op::Const; };
  const std::vector<NodeRef> rows = sizes_copied(product(first(x, {all, n}), first(y, {n, all})));
  EXPECT_EQ(rows.size(), 2u);
  EXPECT_EQ(std::ranges::count_if(rows, varies), 1);
  n = variable(1024, 64);
  const std::vector<NodeRef> columns = sizes_copied(product(x, first(y, {all, n})));
  EXPECT_EQ(columns.size(), 2u);
  EXPECT_EQ(std::ranges::count_if(columns, varies), 1);
  for (NodeRef size : columns)
    EXPECT_EQ(divisor_of(size) % kTarget.lanes(DType::F32), 0) << print_graph(size);
}

}  // namespace
}  // namespace weft
