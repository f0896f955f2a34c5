#include "weft/graph/graph.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/support/small_stack.h"
#include "weft/base/error.h"
#include "weft/graph/binary.h"
#include "weft/graph/node_map.h"
#include "weft/graph/parse.h"
#include "weft/graph/print.h"
#include "weft/graph/verify.h"

namespace weft {
namespace {

NodeRef vector_param(Graph& g, int64_t slot, DType dtype = DType::F32, int64_t size = 4) {
  const NodeRef dims[] = {g.index(size)};
  return g.param(slot, dtype, dims);
}
NodeRef buffer(Graph& g, int64_t id) {
  const NodeRef dims[] = {g.index(4)};
  return g.buffer(id, DType::F32, dims, 1);
}

TEST(Graph, EqualNodesAreOne) {
  Graph g;
  NodeRef a = vector_param(g, 0), b = vector_param(g, 1);
  EXPECT_EQ(vector_param(g, 0), a);
  EXPECT_NE(a, b);
  EXPECT_EQ(g.add(a, b), g.add(b, a));
  EXPECT_EQ(g.mul(g.add(a, b), a), g.mul(a, g.add(b, a)));
  EXPECT_NE(g.constant(Value::of(DType::F32, 0.0)), g.constant(Value::of(DType::F32, -0.0)));
  EXPECT_NE(g.constant(Value::of(DType::F32, 1)), g.constant(Value::of(DType::F64, 1)));
  EXPECT_NE(g.variable("n", 1, 8), g.variable("m", 1, 8));
  EXPECT_NE(g.variable("n", 1, 8), g.variable("n", 1, 9));
}

/// Whoever holds a value while others are looked for: only new keys move what is there.
TEST(NodeMaps, KeepValuesWhereTheyAreWhileNoneIsAdded) {
  Graph g;
  NodeMap<int> map;
  std::vector<NodeRef> keys;
  for (int i = 0; i < 200; ++i) {
    keys.push_back(g.index(i));
    int* const newest = &map[keys.back()];
    *newest = i;
    for (int k = 0; k <= i; ++k) ASSERT_EQ(map[keys[static_cast<size_t>(k)]], k);
    ASSERT_EQ(&map[keys.back()], newest) << "of " << i + 1;
  }
  EXPECT_EQ(map.size(), 200U);
}

TEST(Graph, ConstantsFold) {
  Graph g;
  const auto i8 = [&g](int v) { return g.constant(Value::of(DType::I8, v)); };
  EXPECT_EQ(g.add(i8(127), i8(1)), i8(-128));
  EXPECT_EQ(g.idiv(i8(7), i8(0)), i8(0));
  EXPECT_EQ(g.lt(i8(3), i8(4)), g.boolean(true));
  EXPECT_EQ(g.cast(g.constant(Value::of(DType::F32, 1e9)), DType::I8), i8(127));
}

TEST(Graph, IndexTensorsKeepTheirShape) {
  Graph g;
  NodeRef iota = g.make(Op::Iota, DType::Index, {g.index(4)}, {0});
  EXPECT_EQ(g.mul(iota, g.index(0))->rank(), 1u);
  EXPECT_EQ(g.lt(iota, g.index(9))->rank(), 1u);
  EXPECT_EQ(g.sub(iota, iota)->rank(), 1u);
}

TEST(Graph, OperandsOfDifferentTypesAreOurBug) {
  Graph g;
  EXPECT_THROW(g.add(vector_param(g, 0), vector_param(g, 1, DType::F64)), InternalError);
  EXPECT_THROW(g.add(vector_param(g, 0), vector_param(g, 1, DType::F32, 5)), InternalError);
}

TEST(Graph, HashesDoNotDependOnBufferIdsOrHistory) {
  Graph g, other;
  vector_param(other, 7);  // another history
  NodeRef a = buffer(g, 1), b = buffer(g, 2), c = buffer(other, 3);
  EXPECT_NE(a, b);
  EXPECT_EQ(a->hash, b->hash);
  EXPECT_NE(a->key, b->key);
  EXPECT_EQ(g.add(a, vector_param(g, 0))->hash, other.add(c, vector_param(other, 0))->hash);
}

TEST(Graph, ImportCopiesIntoAnotherGraph) {
  Graph g, other;
  NodeRef n = g.add(g.mul(vector_param(g, 0), vector_param(g, 1)), vector_param(g, 0));
  NodeRef copy = other.import(n);
  EXPECT_NE(copy, n);
  EXPECT_EQ(copy->hash, n->hash);
  EXPECT_EQ(print_graph(copy), print_graph(n));
  EXPECT_EQ(other.import(n), copy);
}

TEST(Graph, SweepFreesWhatNoRootReaches) {
  Graph g(Graph::Sharing::Shared);
  NodeRef kept = g.add(buffer(g, 1), buffer(g, 2));
  NodeRef lost = g.mul(buffer(g, 3), buffer(g, 1));
  (void)lost;
  g.retain(kept);
  const size_t before = g.live_nodes();
  std::vector<int64_t> freed;
  EXPECT_EQ(g.sweep(&freed), 2u);
  EXPECT_EQ(freed, std::vector<int64_t>{3});
  EXPECT_EQ(g.live_nodes(), before - 2);
  EXPECT_EQ(g.add(buffer(g, 1), buffer(g, 2)), kept);  // what is kept is still found
  g.release(kept);
  g.sweep();
  EXPECT_EQ(g.live_nodes(), 0u);
}

TEST(Graph, SizesOfKeptNodesSurviveASweep) {
  Graph g(Graph::Sharing::Shared);
  NodeRef n = g.variable("n", 1, 64);
  const NodeRef dims[] = {g.add(n, g.index(1))};
  NodeRef padded =
      g.make(Op::Pad, DType::F32, {g.param(0, DType::F32, dims), g.index(1), g.index(2)}, {0});
  g.retain(padded);
  g.sweep();
  // n + 4 is reachable only through the shape.
  EXPECT_EQ(expression(padded->dim(0)), "n + 4");
  EXPECT_EQ(padded->dim(0), g.add(g.variable("n", 1, 64), g.index(4)));
}

TEST(Graph, SweepWaitsForWhoIsBuilding) {
  Graph g(Graph::Sharing::Shared);
  const Graph::Building outer(g);
  NodeRef a = buffer(g, 1);
  {
    const Graph::Building inner(g);
    EXPECT_EQ(g.sweep(), 0u);
  }
  EXPECT_EQ(g.sweep(), 0u);
  EXPECT_EQ(buffer(g, 1), a);
}

TEST(Graph, MemoryOfSweptNodesIsReused) {
  Graph g(Graph::Sharing::Shared);
  size_t bytes = 0;
  for (int round = 0; round < 50; ++round) {
    {
      const Graph::Building building(g);
      NodeRef x = buffer(g, round);
      for (int i = 0; i < 2000; ++i) x = g.add(x, g.constant(Value::of(DType::F32, round + i)));
    }
    g.sweep();
    if (round == 4) bytes = g.bytes();
  }
  EXPECT_LE(g.bytes(), bytes + bytes / 4);
}

/// After a peak, all but what few nodes need; those are there as before, and others can be made.
TEST(Graph, MemoryOfAPeakGoesBack) {
  Graph g(Graph::Sharing::Shared);
  const auto number = [&g](int64_t i) { return g.constant(Value::of(DType::F32, i)); };
  for (int64_t round = 1; round <= 5; ++round) {
    const int64_t every = round * round * 400;  // of which one node lives on
    std::vector<std::pair<int64_t, NodeRef>> kept;
    size_t peak = 0;
    {
      const Graph::Building building(g);
      for (int64_t i = 0; i < 50000; ++i) {
        NodeRef n = g.add(buffer(g, i), number(i));
        if (i % every != round) continue;
        g.retain(n);
        kept.emplace_back(i, n);
      }
      peak = g.bytes();
    }
    g.sweep();
    if (round > 2) {
      EXPECT_LT(g.bytes(), peak / 2) << "of 150,000 nodes " << 3 * kept.size() << " live";
    }
    const size_t live = g.live_nodes();
    for (const auto& [i, n] : kept) {
      const Graph::Building building(g);
      EXPECT_EQ(g.add(buffer(g, i), number(i)), n);
    }
    EXPECT_EQ(g.live_nodes(), live) << "nothing was made twice";
    for (const auto& [i, n] : kept) g.release(n);
  }
  g.sweep();
  EXPECT_EQ(g.live_nodes(), 0u);
  EXPECT_LT(g.bytes(), size_t{1} << 20);
}

TEST(Graph, ReachableDiscountsGivenHandles) {
  Graph g(Graph::Sharing::Shared);
  NodeRef a = buffer(g, 1), b = buffer(g, 2), sum = g.add(a, b), twice = g.add(sum, a);
  g.retain(sum);
  g.retain(twice);
  const NodeRef asked[] = {a, b, sum};
  const NodeRef except[] = {twice};
  EXPECT_EQ(g.reachable(asked, except), (std::vector<bool>{true, true, true}));
  const NodeRef both[] = {twice, sum};
  EXPECT_EQ(g.reachable(asked, both), (std::vector<bool>{false, false, false}));
  g.retain(sum);  // a second handle
  EXPECT_EQ(g.reachable(asked, both), (std::vector<bool>{true, true, true}));
}

TEST(Graph, ThreadsInternTheSameNodes) {
  Graph g(Graph::Sharing::Shared);
  const Graph::Building building(g);
  std::vector<std::vector<NodeRef>> made(4);
  std::vector<std::thread> threads;
  for (auto& mine : made)
    threads.emplace_back([&g, &mine] {
      const Graph::Building inner(g);
      NodeRef x = buffer(g, 0);
      for (int i = 0; i < 3000; ++i) {
        x = g.add(x, g.constant(Value::of(DType::F32, i % 50)));
        mine.push_back(x);
      }
    });
  for (std::thread& t : threads) t.join();
  for (const auto& mine : made) EXPECT_EQ(mine, made[0]);
}

// ---- depth

NodeRef chain(Graph& g, int64_t length) {
  NodeRef x = vector_param(g, 0, DType::I32), y = vector_param(g, 1, DType::I32);
  for (int64_t i = 0; i < length; ++i) x = g.alu(i % 2 ? Op::Xor : Op::Add, {x, y});
  return x;
}

TEST(DeepGraph, BuildsVerifiesAndCopiesOnASmallStack) {
  on_small_stack([] {
    Graph g(Graph::Sharing::Shared), other;
    NodeRef x;
    {
      const Graph::Building building(g);
      x = chain(g, 1000000);
      verify_tensor_graph({&x, 1}, "test");
      g.retain(x);
    }
    EXPECT_EQ(g.sweep(), 0u);
    EXPECT_EQ(other.import(x)->hash, x->hash);
    EXPECT_LT(expression(x).size(), 5000u);
    g.release(x);
    EXPECT_GT(g.sweep(), 1000000u);
  });
}

TEST(DeepGraph, GoesThroughBothFormsOnASmallStack) {
  on_small_stack([] {
    Graph g;
    NodeRef x = chain(g, 300000);
    EXPECT_EQ(read_graph(g, write_graph({&x, 1})), std::vector<NodeRef>{x});
    EXPECT_EQ(parse_graph(g, print_graph(x)), std::vector<NodeRef>{x});
  });
}

TEST(DeepGraph, IndexChainsAreNormalisedOnASmallStack) {
  on_small_stack([] {
    Graph g;
    NodeRef i = g.range(8, 0);
    for (int64_t k = 1; k < 200000; ++k) i = g.alu(k % 2 ? Op::Max : Op::Add, {i, g.range(4, k)});
    EXPECT_GE(i->vmax, 300000);
    // Interned without being normalised, as a hostile file would: sums nested to the right.
    NodeRef right = g.range(2, 1);
    for (int64_t k = 0; k < 200000; ++k) {
      const NodeRef src[] = {g.range(2, k % 7), right};
      right = g.intern({Op::Add, DType::Index, src});
    }
    EXPECT_NE(g.idiv(g.add(right, g.index(1)), g.index(3)), nullptr);
    EXPECT_NE(g.mod(right, g.variable("n", 1, 9)), nullptr);
    NodeRef squared = g.variable("n", 2, 9);
    for (int k = 0; k < 60; ++k) {  // n^(2^60)
      const NodeRef src[] = {squared, squared};
      squared = g.intern({Op::Mul, DType::Index, src});
    }
    EXPECT_NE(g.idiv(g.mul(squared, g.index(3)), squared), nullptr);
  });
}

}  // namespace
}  // namespace weft
