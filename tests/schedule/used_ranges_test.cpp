// For how many steps of a loop a place in memory stays the same.
#include <gtest/gtest.h>

#include "weft/graph/graph.h"
#include "weft/schedule/plan.h"

namespace weft {
namespace {

TEST(UsedRanges, PlacesAtQuotientsAreSteady) {
  Graph g;
  NodeRef r = g.range(g.index(256), 0), s = g.range(g.index(8), 1);
  const auto steps = [r](std::initializer_list<NodeRef> index) {
    return steady_steps(std::vector<NodeRef>(index), r);
  };
  NodeRef block = g.idiv(r, g.index(32));
  EXPECT_EQ(steps({r}), 1);
  EXPECT_EQ(steps({block}), 32);
  EXPECT_EQ(steps({s}), 1);
  EXPECT_EQ(steps({s, block}), 32);
  EXPECT_EQ(steps({g.add(block, s)}), 32);
  EXPECT_EQ(steps({block, g.idiv(r, g.index(48))}), 16);
  EXPECT_EQ(steps({block, r}), 1);
  EXPECT_EQ(steps({g.mod(r, g.index(32))}), 1);
  EXPECT_EQ(steps({g.idiv(g.mul(r, g.index(3)), g.index(32))}), 1);  // not plain to see
  EXPECT_EQ(steps({g.mul(block, g.index(18))}), 32);
}

}  // namespace
}  // namespace weft
