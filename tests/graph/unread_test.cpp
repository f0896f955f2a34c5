#include <gtest/gtest.h>

#include "weft/graph/graph.h"
#include "weft/graph/print.h"
#include "weft/graph/verify.h"

namespace weft {
namespace {

TEST(Unread, CountsReadersUntilTheyAreSwept) {
  Graph g(Graph::Sharing::Shared);
  NodeRef buffer, sum;
  {
    Graph::Building building(g);
    const NodeRef dims[] = {g.index(4)};
    buffer = g.buffer(1, DType::F32, dims, 1);
    g.retain(buffer);
    sum = g.add(buffer, buffer);
    g.retain(sum);
  }
  EXPECT_FALSE(g.unread(buffer, 1));
  g.release(sum);
  EXPECT_FALSE(g.unread(buffer, 1)) << "garbage still reads it";
  g.sweep();
  EXPECT_TRUE(g.unread(buffer, 1));
  EXPECT_FALSE(g.unread(buffer, 0)) << "one handle is left";
}

TEST(Param, KeepsItsDevice) {
  Graph g;
  const NodeRef dims[] = {g.index(4)};
  NodeRef here = g.param(0, DType::F32, dims), there = g.param(0, DType::F32, dims, 2);
  EXPECT_NE(here, there);
  EXPECT_EQ(here->device, 0);
  EXPECT_EQ(g.alu(Op::Neg, {there})->device, 2);
  const NodeRef roots[] = {there};
  EXPECT_FALSE(find_tensor_problem(roots));
  EXPECT_EQ(print_graph(there), "%0 = param f32 4 slot=0 device=2  # (4)\n");
}

}  // namespace
}  // namespace weft
