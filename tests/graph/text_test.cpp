#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/graph/parse.h"
#include "weft/graph/print.h"

namespace weft {
namespace {

std::string parse_error(std::string_view text) {
  Graph graph;
  try {
    parse_graph(graph, text);
  } catch (const InternalError& error) {
    return std::string("internal: ") + error.what();
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

TEST(GraphText, PrintsOneLinePerNode) {
  Graph g;
  NodeRef n = g.variable("n", 1, 64);
  const NodeRef dims[] = {g.index(8), n};
  NodeRef x = g.param(0, DType::F32, dims);
  NodeRef half = g.alu(Op::Mul, {x, g.constant(Value::of(DType::F32, 0.5))});
  NodeRef sum = g.make(Op::Reduce, DType::F32, {half}, {static_cast<int64_t>(Fold::Add), 1});
  EXPECT_EQ(print_graph(sum),
            "%0 = variable index \"n\" min=1 max=64 multiple=1\n"
            "%1 = param f32 8 %0 slot=0  # (8, n)\n"
            "%2 = mul f32 %1 0.5:f32  # (8, n)\n"
            "%3 = reduce.add f32 %2 axes=1  # (8)\n");
}

TEST(GraphText, RoundTripsToTheSameNodes) {
  const std::string text =
      "%0 = variable index \"odd \\\"name\\\\\\x0a\" min=-5 max=64 multiple=1\n"
      "%1 = range index %0 id=3 binding=core\n"
      "%2 = range index 4 id=1 binding=vector\n"
      "%3 = param f32 1024 slot=0  # (1024)\n"
      "%4 = load f32 %3 %1\n"
      "%5 = cast f64 %4\n"
      "%6 = add f64 %5 nan(0x7ff8000000000123):f64\n"
      "%7 = reduce.max f64 %6 %2\n"
      "%8 = splat f64x4 %7\n"
      "return %8 true:bool %0 -3\n";
  Graph g, other;
  const std::vector<NodeRef> roots = parse_graph(g, text);
  ASSERT_EQ(roots.size(), 4u);
  EXPECT_EQ(parse_graph(g, print_graph(roots)), roots);
  EXPECT_EQ(print_graph(parse_graph(other, text)), print_graph(roots));
  EXPECT_EQ(roots[2]->text(), "odd \"name\\\n");
}

TEST(GraphText, RemarksStayOnTheirLine) {
  Graph g;
  NodeRef twice = g.alu(Op::Mul, {g.variable("two\nlines", 1, 64), g.index(2)});
  const NodeRef dims[] = {twice};
  for (NodeRef root : {twice, g.param(0, DType::F32, dims)})
    EXPECT_EQ(parse_graph(g, print_graph(root)), std::vector<NodeRef>{root}) << print_graph(root);
}

TEST(GraphText, ConstantsMayBeRoots) {
  Graph g;
  const NodeRef roots[] = {g.constant(Value::of(DType::F32, -0.0)), g.index(3), g.index(3)};
  const std::string text = print_graph(roots);
  EXPECT_EQ(text, "%0 = const f32 -0\n%1 = const index 3\nreturn %0 %1 %1\n");
  EXPECT_EQ(parse_graph(g, text), std::vector<NodeRef>(roots, roots + 3));
}

TEST(GraphText, ErrorsHaveLineAndColumn) {
  EXPECT_EQ(parse_error(""), "graph text: there is no node in it");
  EXPECT_EQ(parse_error("\n%0 = frob f32"), "graph text: line 2 column 6: unknown op `frob`");
  EXPECT_EQ(parse_error("%0 = const f31 1"), "graph text: line 1 column 12: unknown dtype `f31`");
  EXPECT_EQ(parse_error("%0 = const i8 300"),
            "graph text: line 1 column 15: `300` is no i8 constant");
  EXPECT_EQ(parse_error("%0 = neg f32 %1"),
            "graph text: line 1 column 14: %1 is not defined above");
  EXPECT_EQ(parse_error("%0 = const f32 1\n%0 = const f32 2"),
            "graph text: line 2 column 1: %0 is defined twice");
  EXPECT_EQ(parse_error("%0 = variable index \"n"),
            "graph text: line 1 column 21: the quoted name has no end");
  EXPECT_EQ(parse_error("%0 = param f32 4 slot=0\n%1 = reduce.add f32 %0 axes=1"),
            "graph text: line 2 column 30: reduce: an axis is out of range");
  EXPECT_EQ(parse_error("%0 = param f32 4 place=0"),
            "graph text: line 1 column 18: param has no field `place` here; its fields are: slot "
            "device...");
}

TEST(GraphText, ExpressionsReadLikeSource) {
  Graph g;
  NodeRef r0 = g.range(16, 0), r1 = g.range(8, 1), n = g.variable("n", 1, 99);
  NodeRef eight = g.index(8);
  EXPECT_EQ(expression(g.index(-4)), "-4");
  EXPECT_EQ(expression(g.sub(g.mul(n, eight), g.index(1))), "n*8 - 1");
  EXPECT_EQ(expression(g.idiv(g.add(g.mul(r0, g.index(3)), r1), n)), "(r1 + r0*3)//n");
  EXPECT_EQ(expression(g.alu(Op::Max, {n, g.index(4)})), "max(n, 4)");
  EXPECT_EQ(expression(g.constant(Value::of(DType::I32, 3))), "3:i32");
  const NodeRef size[] = {g.index(128)};
  NodeRef load = g.make(Op::Load, DType::F32,
                        {g.param(2, DType::F32, size), g.add(g.mul(r0, eight), r1), g.lt(r0, n)});
  const std::string text = expression(load);
  EXPECT_TRUE(text == "p2[r0*8 + r1 if r0 < n]" || text.starts_with("p2[")) << text;
}

TEST(GraphText, ExpressionsOfEndlessGraphsAreCut) {
  Graph g;
  NodeRef x = g.make(Op::Load, DType::I32,
                     {g.param(0, DType::I32, std::vector<NodeRef>{g.index(1)}), g.index(0)});
  for (int i = 0; i < 100; ++i) x = g.alu(Op::Xor, {x, x});  // 2^100 leaves
  EXPECT_LT(expression(x).size(), 5000u);
  EXPECT_TRUE(expression(x).ends_with("..."));
}

}  // namespace
}  // namespace weft
