#include "weft/graph/dependence.h"

#include <gtest/gtest.h>

#include <set>

#include "weft/graph/graph.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

std::set<size_t> members(const RangeSet& set) {
  std::set<size_t> out;
  set.each([&](size_t i) { out.insert(i); });
  return out;
}

TEST(RangeSet, IsASetOfAnyNumberOfPositions) {
  Random random(1);
  for (int64_t most : {3, 64, 65, 1000}) {
    RangeSet a, b;
    std::set<size_t> in_a, in_b;
    for (int step = 0; step < 500; ++step) {
      const auto i = static_cast<size_t>(random.between(0, most - 1));
      const bool first = random.between(0, 1) == 0, insert = random.between(0, 2) > 0;
      RangeSet& set = first ? a : b;
      std::set<size_t>& in = first ? in_a : in_b;
      insert ? (set.insert(i), in.insert(i), 0) : (set.erase(i), in.erase(i), 0);
      ASSERT_EQ(set.contains(i), insert);
      ASSERT_EQ(members(a), in_a);
      ASSERT_EQ(a.empty(), in_a.empty());
      ASSERT_EQ(a.last(), in_a.empty() ? -1 : static_cast<int>(*in_a.rbegin()));
      ASSERT_EQ(a == b, in_a == in_b);
      std::set<size_t> both, either = in_a;
      either.insert(in_b.begin(), in_b.end());
      for (size_t k : in_a)
        if (in_b.contains(k)) both.insert(k);
      RangeSet joined = a;
      joined |= b;
      ASSERT_EQ(members(joined), either);
      ASSERT_EQ(members(a & b), both);
      ASSERT_TRUE((a & b) == (b & a));
    }
  }
}

TEST(RangeDependence, AReductionEndsItsRangesAndNoOthers) {
  Graph g;
  std::vector<NodeRef> ranges;
  for (int64_t id = 0; id < 300; ++id) ranges.push_back(g.range(2, id));
  NodeRef all = ranges[0];
  for (NodeRef r : ranges) all = g.make(Op::Max, DType::Index, {all, r});
  std::vector<NodeRef> src{g.cast(all, DType::F32)};
  for (size_t i = 100; i < 300; ++i) src.push_back(ranges[i]);
  const int64_t add[] = {static_cast<int64_t>(Fold::Add)};
  NodeRef sum = g.make({Op::Reduce, DType::F32, src, add});

  const Toposort order(sum);
  const NodeMap<uint32_t> index = positions_in(order.nodes());
  const RangeDependence found(order.nodes(), [&](NodeRef n) { return index.at(n); });
  ASSERT_EQ(found.ranges().size(), 300u);
  for (size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(found.position(ranges[i]), i) << "nest order is that of ids";
    EXPECT_TRUE(found.at(index.at(src[0])).contains(i));
    EXPECT_EQ(found.at(index.at(sum)).contains(i), i < 100);
  }
}

}  // namespace
}  // namespace weft
