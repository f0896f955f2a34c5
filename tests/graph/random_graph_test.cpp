// Random tensor graphs: valid, the same in text and binary form, within their bounds, and unchanged
// in value by Graph::make.
#include "weft/trust/random_graph.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/array_printer.h"
#include "weft/graph/binary.h"
#include "weft/graph/parse.h"
#include "weft/graph/print.h"
#include "weft/graph/verify.h"

namespace weft {
namespace {

RandomGraphOptions symbolic() {
  RandomGraphOptions options;
  options.variables = 2;
  return options;
}

void expect_every_tensor_op(const RandomGraphOptions& options) {
  std::set<Op> seen;
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Graph g;
    const RandomGraph r = random_graph(g, seed, options);
    verify_tensor_graph(r.roots, "random_graph");
    for (NodeRef n : Toposort(r.roots)) seen.insert(n->op);
  }
  for (const OpInfo& row : kOps) {
    const bool tensor = is_alu(row.op) || row.group == OpGroup::Movement || row.op == Op::Reduce ||
                        row.op == Op::Scan || row.op == Op::Loop || row.op == Op::Get ||
                        row.op == Op::Iota || row.op == Op::Assign || row.op == Op::Scatter ||
                        row.op == Op::CumCount || row.op == Op::Cat;
    // Words are made in schedule/; their operands are no numbers
    // (tests/device/dot_products_test.cpp). How often MulAdd rounds is the target's.
    if (!tensor || row.op == Op::ToIndex || row.op == Op::MulAdd || has_trait(row.op, kWords) ||
        has_trait(row.op, kTable))
      continue;
    EXPECT_TRUE(seen.contains(row.op)) << row.mnemonic;
  }
  EXPECT_EQ(seen.contains(Op::Variable), options.variables > 0);
}

TEST(RandomGraphs, AreValidAndCoverEveryTensorOp) {
  expect_every_tensor_op({});
  expect_every_tensor_op(symbolic());
}

/// Symbolic sizes fit for every value of their variables, so that the oracle accepts them all.
TEST(RandomGraphs, SymbolicOnesHaveAValueForEveryBinding) {
  int symbolic_roots = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Graph g;
    const RandomGraph r = random_graph(g, seed, symbolic());
    symbolic_roots += !is_static(r.roots[0]);
    ASSERT_EQ(r.bindings.size(), 3u);
    ASSERT_NO_THROW(r.evaluate()) << "seed " << seed << "\n" << describe(r);
  }
  EXPECT_GT(symbolic_roots, 800);
}

TEST(RandomGraphs, RoundTripInTextAndBinary) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Graph g, other;
    const RandomGraph r = random_graph(g, seed, seed % 2 ? symbolic() : RandomGraphOptions());
    const std::string text = print_graph(r.roots);
    ASSERT_EQ(parse_graph(g, text), r.roots) << text;
    ASSERT_EQ(print_graph(parse_graph(other, text)), text);
    const std::vector<std::byte> bytes = write_graph(r.roots);
    ASSERT_EQ(read_graph(g, bytes), r.roots);
    ASSERT_EQ(write_graph(read_graph(other, bytes)), bytes);
  }
}

bool is_inside(NodeRef n, const eval::Array& values) {
  for (int64_t k = 0; k < values.count(); ++k) {
    const Value v = values.at(k);
    // u64 values above int64's maximum count as that maximum.
    const int64_t x = v.dtype() == DType::U64 && v.as_int() < 0 ? INT64_MAX : v.as_int();
    if (x < n->vmin || x > n->vmax) return false;
  }
  return true;
}

/// The first node whose value leaves its bounds.
NodeRef out_of_bounds(const RandomGraph& r) {
  std::vector<NodeRef> nodes;
  for (NodeRef n : Toposort(r.roots)) {
    const bool bounded = is_int(n->dtype) || n->dtype == DType::Bool || n->dtype == DType::Index;
    if (bounded && n->op != Op::Carry && n->op != Op::Elem) nodes.push_back(n);
  }
  // Values inside loop bodies exist per iteration only.
  std::erase_if(nodes, [](NodeRef n) {
    for (NodeRef x : Toposort(n))
      if (x->op == Op::Carry || x->op == Op::Elem) return true;
    return false;
  });
  const auto values = r.evaluate(nodes);
  for (size_t i = 0; i < values.size(); ++i)
    if (!is_inside(nodes[i % nodes.size()], values[i])) return nodes[i % nodes.size()];
  return nullptr;
}

void expect_values_within_bounds(RandomGraphOptions options) {
  options.dtypes = {DType::Bool, DType::I8, DType::U8, DType::I32, DType::I64, DType::U64};
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Graph g;
    RandomGraph r = random_graph(g, seed, options);
    if (!out_of_bounds(r)) continue;
    r = shrink(g, r, [](const RandomGraph& x) { return out_of_bounds(x) != nullptr; });
    NodeRef n = out_of_bounds(r);
    const NodeRef nodes[] = {n};
    FAIL() << "seed " << seed << ": " << summary(n) << " has bounds [" << n->vmin << ", " << n->vmax
           << "] and values " << testing::PrintToString(r.evaluate(nodes)) << "\n"
           << describe(r);
  }
}

TEST(RandomGraphs, ValuesLieWithinBounds) {
  expect_values_within_bounds({});
  expect_values_within_bounds(symbolic());
}

void expect_make_keeps_values(RandomGraphOptions simplifying) {
  RandomGraphOptions written = simplifying;
  written.simplify = false;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Graph g;
    const RandomGraph simplified = random_graph(g, seed, simplifying);
    const RandomGraph raw = random_graph(g, seed, written);
    ASSERT_EQ(raw.evaluate(), simplified.evaluate()) << "seed " << seed << "\n"
                                                     << describe(raw) << describe(simplified);
  }
}

TEST(RandomGraphs, MakeKeepsTheValueOfWhatWasWritten) {
  expect_make_keeps_values({});
  expect_make_keeps_values(symbolic());
}

TEST(RandomGraphs, ShrinkerFindsTheOneBadNode) {
  const auto has_flip = [](const RandomGraph& r) {
    for (NodeRef n : Toposort(r.roots))
      if (n->op == Op::Flip && n->rank() > 1) return true;
    return false;
  };
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Graph g;
    const RandomGraph r = random_graph(g, seed);
    if (!has_flip(r)) continue;
    const RandomGraph small = shrink(g, r, has_flip);
    int others = 0;
    for (NodeRef n : Toposort(small.roots)) others += n->op != Op::Const;
    EXPECT_EQ(others, 2) << describe(small);  // a param and the flip
  }
}

}  // namespace
}  // namespace weft
