// Simplifying a random tensor graph, or a random index expression, keeps its value.
#include <gtest/gtest.h>

#include "tests/support/array_printer.h"
#include "tests/support/index_expression.h"
#include "weft/graph/print.h"
#include "weft/simplify/simplify.h"
#include "weft/trust/random_graph.h"

namespace weft {
namespace {

std::vector<NodeRef> simplified(Graph& g, const RandomGraph& r) {
  std::vector<NodeRef> out;
  for (NodeRef n : r.roots) out.push_back(simplify_data(g, n));
  return out;
}

bool changes_value(Graph& g, const RandomGraph& r) {
  return r.evaluate(simplified(g, r)) != r.evaluate();
}

void expect_same_values(uint64_t count, int variables) {
  RandomGraphOptions written;
  written.simplify = false;
  written.variables = variables;
  for (uint64_t seed = 0; seed < count; ++seed) {
    Graph g;
    RandomGraph r = random_graph(g, seed, written);
    if (!changes_value(g, r)) continue;
    r = shrink(g, r, [&g](const RandomGraph& x) { return changes_value(g, x); });
    const auto after = simplified(g, r);
    FAIL() << "seed " << seed << "\n"
           << describe(r) << "# = " << testing::PrintToString(r.evaluate()) << "\nbecame\n"
           << print_graph(after) << "# = " << testing::PrintToString(r.evaluate(after));
  }
}

TEST(RandomSimplify, TensorGraphsKeepTheirValues) { expect_same_values(3000, 0); }
TEST(RandomSimplify, SymbolicTensorGraphsKeepTheirValues) { expect_same_values(1000, 2); }

void expect_same_indices(uint64_t count) {
  for (uint64_t seed = 0; seed < count; ++seed) {
    Graph g;
    RandomIndex expressions(g, seed);
    for (int i = 0; i < 10; ++i) expressions.grow();
    const size_t last = expressions.size() - 1;
    NodeRef n = simplify(g, expressions.node(last));
    for (const LeafValues& point : expressions.points())
      ASSERT_EQ(expressions.value(last, point), index_value(n, point))
          << "seed " << seed << ": " << expressions.text(last) << " became " << expression(n);
  }
}

TEST(RandomSimplify, IndexExpressionsKeepTheirValues) { expect_same_indices(1000); }
TEST(RandomSimplify, SlowHundredThousandIndexExpressions) { expect_same_indices(100'000); }

}  // namespace
}  // namespace weft
