// Kernels of work groups: what is staged, and what is reduced across a group, gives what the kernel
// means, item by item between barriers.
#include "tests/lower/random_groups.h"
#include "weft/base/error.h"
#include "weft/graph/print.h"

namespace weft::test {
namespace {

/// Without shuffles where `wave` is 1.
LinearProgram lowered_for_groups(const Kernel& kernel, int64_t wave = 1) {
  Target target = make_target("opencl", CpuFeatures(), 1);
  target.groups.wave = wave;
  if (wave > 1) target.groups.shuffled = dtype_bit(DType::I32);
  LinearProgram program = lower_kernel(kernel, target);
  verify_program(program, "lower");
  return program;
}

void expect_meaning(const Kernel& kernel, const Buffers& buffers, const Variables& variables = {},
                    int64_t wave = 1) {
  const Buffers expected = run_kernel(kernel.sink, buffers, variables);
  const LinearProgram program = lowered_for_groups(kernel, wave);
  const Buffers got = run_program(program, buffers, variables);
  for (size_t slot = 0; slot < expected.size(); ++slot)
    for (size_t i = 0; i < expected[slot].size(); ++i)
      ASSERT_EQ(got[slot][i].as_int(), expected[slot][i].as_int())
          << "p" << slot << "[" << i << "]\n"
          << print_graph(kernel.sink) << print_program(program);
}

TEST(Groups, OneItemDoesOneElement) {
  KernelBuilder b;
  NodeRef group = b.range(3, 0, Binding::Grid), item = b.range(4, 1, Binding::Group);
  NodeRef at = b.g.add(b.g.mul(group, b.index(4)), item);
  b.store(b.param(0, DType::I32, 12), at, b.load(b.param(1, DType::I32, 12), at));
  const Kernel kernel = b.kernel();
  const LinearProgram program = lowered_for_groups(kernel);
  EXPECT_EQ(program.launch.items(), 4);
  EXPECT_EQ(program.launch.grid[0]->vmin, 3);
  EXPECT_EQ(count(program, Op::Range), 0U);
  expect_meaning(kernel, {zeros(DType::I32, 12), numbers(DType::I32, 12)});
}

TEST(Groups, TheFirstOfEqualItemsStores) {
  KernelBuilder b;
  NodeRef group = b.range(3, 0, Binding::Grid), item = b.range(5, 1, Binding::Group);
  NodeRef all = b.reduce(
      Fold::Add, b.load(b.param(1, DType::I32, 15), b.g.add(b.g.mul(group, b.index(5)), item)),
      {item});
  b.store(b.param(0, DType::I32, 3), group, all);
  const Kernel kernel = b.kernel();
  expect_meaning(kernel, {zeros(DType::I32, 3), numbers(DType::I32, 15)});
  EXPECT_EQ(count(lowered_for_groups(kernel), Op::Barrier), 4U) << "5 parts, 3, 2, 1";
}

/// The sum of each row of so many elements, one an item.
Kernel sum_of_rows(int64_t items, DType dtype = DType::I32) {
  KernelBuilder b;
  NodeRef row = b.range(3, 0, Binding::Grid), item = b.range(items, 1, Binding::Group);
  NodeRef at = b.g.add(b.g.mul(row, b.index(items)), item);
  NodeRef sum = b.reduce(Fold::Add, b.load(b.param(1, dtype, 3 * items), at), {item});
  b.store(b.param(0, dtype, 3), row, sum);
  return b.kernel();
}

TEST(Groups, WavesFoldByShuffles) {
  struct Case {
    int64_t items;
    size_t shuffles, barriers;
  };
  // One wave, two, three and the most that one wave folds; five, and what is no whole wave.
  for (const Case c :
       {Case{4, 2, 0}, {8, 2 + 1, 1}, {12, 2 + 2, 1}, {16, 2 + 2, 1}, {20, 0, 6}, {6, 0, 4}}) {
    SCOPED_TRACE(c.items);
    const Kernel kernel = sum_of_rows(c.items);
    expect_meaning(kernel, {zeros(DType::I32, 3), numbers(DType::I32, 3 * c.items)}, {}, 4);
    const LinearProgram program = lowered_for_groups(kernel, 4);
    EXPECT_EQ(count(program, Op::Shuffle), c.shuffles);
    EXPECT_EQ(count(program, Op::Barrier), c.barriers);
    EXPECT_EQ(count(lowered_for_groups(kernel), Op::Shuffle), 0U) << "a machine without";
  }
  EXPECT_EQ(count(lowered_for_groups(sum_of_rows(8, DType::I64), 4), Op::Shuffle), 0U)
      << "a dtype that it does not shuffle";
}

/// Two reductions and a store, each over the whole group: what soft-max is made of.
TEST(Groups, ReductionsInTurn) {
  for (const int64_t items : {1, 2, 3, 7, 8}) {
    KernelBuilder b;
    const int64_t columns = items * 3;
    NodeRef row = b.range(2, 0, Binding::Grid), in = b.param(1, DType::I32, 2 * columns);
    const auto at = [&](int64_t id) {
      NodeRef column =
          b.g.add(b.g.mul(b.range(3, id), b.index(items)), b.range(items, id + 1, Binding::Group));
      return b.g.add(b.g.mul(row, b.index(columns)), column);
    };
    const auto ranges = [&](int64_t id) {
      return std::vector<NodeRef>{b.range(3, id), b.range(items, id + 1, Binding::Group)};
    };
    NodeRef most = b.reduce(Fold::Max, b.load(in, at(3)), ranges(3));
    NodeRef sum = b.reduce(Fold::Add, b.g.sub(b.load(in, at(5)), most), ranges(5));
    b.store(b.param(0, DType::I32, 2 * columns), at(1), b.g.mul(sum, b.load(in, at(1))));
    expect_meaning(b.kernel(), {zeros(DType::I32, 2 * columns), numbers(DType::I32, 2 * columns)});
  }
}

constexpr int64_t kM = 12, kN = 16, kK = 20;

/// C = A @ B in tiles of 6 by 8, 2 by 2 for each item, K in blocks of 4; both operands staged, one
/// with a stride of its own, in a loop of three rounds that the operands know nothing of.
Kernel product_of_staged_tiles(int64_t buffers, bool in_rounds) {
  KernelBuilder b;
  Graph& g = b.g;
  const auto mul = [&](NodeRef x, int64_t by) { return g.mul(x, g.index(by)); };
  NodeRef gx = g.range(g.index(kN / 8), 0, Binding::Grid, 0),
          gy = g.range(g.index(kM / 6), 1, Binding::Grid, 1);
  NodeRef tx = b.range(4, 2, Binding::Group), ty = g.range(g.index(3), 3, Binding::Group, 1);
  NodeRef u = b.range(2, 4, Binding::Unroll), v = b.range(2, 5, Binding::Unroll);
  NodeRef round = b.range(3, 6), block = b.range(kK / 4, 7), k = b.range(4, 8);
  NodeRef row = g.add(mul(gy, 6), g.add(mul(ty, 2), u));
  NodeRef column = g.add(mul(gx, 8), g.add(mul(tx, 2), v));
  NodeRef depth = g.add(mul(block, 4), k);
  NodeRef left = b.stage(b.load(b.param(1, DType::I32, kM * kK), g.add(mul(row, kK), depth)),
                         {ty, u, k}, {10, 5, 1}, buffers);
  NodeRef right = b.stage(b.load(b.param(2, DType::I32, kK * kN), g.add(mul(depth, kN), column)),
                          {k, tx, v}, {}, buffers);
  NodeRef product = g.mul(left, right);
  NodeRef sum = in_rounds
                    ? b.reduce(Fold::Add, g.add(product, b.load(b.param(3, DType::I32, 3), round)),
                               {round, block, k})
                    : b.reduce(Fold::Add, product, {block, k});
  b.store(b.param(0, DType::I32, kM * kN), g.add(mul(row, kN), column), sum);
  return b.kernel();
}

TEST(Groups, ProductOfStagedTiles) {
  struct {
    int64_t buffers;
    bool in_rounds;
    size_t barriers;
  } const cases[] = {{1, false, 2}, {2, false, 1}, {1, true, 2}, {2, true, 2}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.buffers);
    const Kernel kernel = product_of_staged_tiles(c.buffers, c.in_rounds);
    Buffers buffers{zeros(DType::I32, kM * kN), numbers(DType::I32, kM * kK, 2),
                    numbers(DType::I32, kK * kN, 3)};
    if (c.in_rounds) buffers.push_back(numbers(DType::I32, 3, 4));
    expect_meaning(kernel, buffers);
    EXPECT_EQ(count(lowered_for_groups(kernel), Op::Barrier), c.barriers)
        << "both operands share them; where buffers take turns, and the loop runs once, all have "
           "come by one since they read what is written";
  }
}

TEST(Groups, SymbolicGrid) {
  KernelBuilder b;
  NodeRef n = b.g.variable("n", 0, 9, 1);
  NodeRef group = b.g.range(n, 0, Binding::Grid), item = b.range(4, 1, Binding::Group);
  NodeRef at = b.g.add(b.g.mul(group, b.index(4)), item);
  b.store(b.param(0, DType::I32, 36), at, b.load(b.param(1, DType::I32, 36), at));
  const Kernel kernel = b.kernel();
  for (int64_t groups : {0, 1, 5, 9})
    expect_meaning(kernel, {zeros(DType::I32, 36), numbers(DType::I32, 36)}, {{"n", groups}});
}

TEST(Groups, MoreThanTheirMemoryIsOurError) {
  KernelBuilder b;
  NodeRef item = b.range(64, 0, Binding::Group), k = b.range(1024, 1);
  NodeRef at = b.g.add(b.g.mul(item, b.index(1024)), k);
  NodeRef staged = b.stage(b.load(b.param(1, DType::I32, 1 << 16), at), {item, k});
  b.store(b.param(0, DType::I32, 64), item, b.reduce(Fold::Add, staged, {k}));
  EXPECT_THROW(lowered_for_groups(b.kernel()), InternalError);
}

// ---- random kernels

void run_seeds(uint32_t first, uint32_t last, int64_t wave = 1) {
  for (uint32_t seed = first; seed < last && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomGroups k(seed);
    try {
      expect_meaning(k.kernel(), k.buffers(), {}, wave);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what() << "\n" << print_graph(k.stores);
    }
  }
}

TEST(GroupsRandom, Kernels) { run_seeds(0, 150); }
TEST(GroupsRandom, KernelsWithShuffles) {
  run_seeds(0, 150, 2);
  run_seeds(150, 300, 4);
}
// A copy of which one round is a constant, in a loop.
TEST(GroupsRandom, KernelsThatOnceFailed) { run_seeds(890, 891); }
TEST(GroupsRandom, SlowManyKernels) { run_seeds(150, 5000); }

/// The same, where every Stage is replaced by its value, on a target without groups.
TEST(GroupsRandom, ErasingEveryStageLeavesTheMeaning) {
  for (uint32_t seed = 0; seed < 200 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RandomGroups k(seed);
    expect_same(k.kernel(), k.buffers());
  }
}

// ---- what the checks refuse

TEST(Groups, AKernelThatNoGroupCanRunIsRefused) {
  const auto problem = [](KernelBuilder& b) {
    const auto found = find_kernel_problem(b.g.make({Op::Sink, DType::Void, b.stores}));
    return found ? found->what : "";
  };
  {
    KernelBuilder b;
    NodeRef r = b.range(4, 0, Binding::Grid);
    b.store(b.param(0, DType::I32, 1), b.index(0),
            b.reduce(Fold::Add, b.load(b.param(1, DType::I32, 4), r), {r}));
    EXPECT_EQ(problem(b), "a reduction across the grid");
  }
  {
    KernelBuilder b;
    NodeRef x = b.range(4, 0, Binding::Group), y = b.range(4, 1, Binding::Group);
    b.store(b.param(0, DType::I32, 16), b.g.add(b.g.mul(x, b.index(4)), y),
            b.load(b.param(1, DType::I32, 4), x));
    EXPECT_EQ(problem(b), "varies over two ranges of one axis of the group");
  }
  {
    KernelBuilder b;
    NodeRef x = b.range(4, 0, Binding::Group), y = b.range(3, 1, Binding::Group);
    b.store(b.param(0, DType::I32, 4), x, b.load(b.param(1, DType::I32, 4), x));
    b.store(b.param(2, DType::I32, 3), y, b.load(b.param(1, DType::I32, 4), y));
    EXPECT_EQ(problem(b), "an axis of the group has two sizes");
  }
}

/// A program of two items by hand: each stores its number to local memory and reads the other's.
struct Exchange {
  LinearProgram program;
  NodeRef id, memory, barrier;

  Exchange() {
    program.graph = std::make_shared<Graph>();
    program.name = "exchange";
    program.params = {{DType::I32, false, true}};
    program.launch = {{}, {2, 1, 1}, true};
    const NodeRef two[] = {i32(2)}, size[] = {g().index(2)};
    id = g().intern({Op::WorkId, DType::I32, two, ids()});
    memory = g().intern({Op::Local, DType::I32, size, none()});
    const int64_t waits[] = {0, 0, 1};
    barrier = g().intern({Op::Barrier, DType::Void, {}, waits});
  }
  Graph& g() { return *program.graph; }
  NodeRef i32(int64_t v) { return g().constant(Value::of(DType::I32, v)); }
  static std::span<const int64_t> ids() {
    static constexpr int64_t kInts[] = {static_cast<int64_t>(Binding::Group), 0};
    return kInts;
  }
  static std::span<const int64_t> none() {
    static constexpr int64_t kInts[] = {0, 0};
    return kInts;
  }
  void add(std::initializer_list<NodeRef> nodes) { program.code.insert(program.code.end(), nodes); }
  NodeRef store(NodeRef to, NodeRef at, NodeRef value) {
    const NodeRef src[] = {to, at, value};
    return g().intern({Op::Store, DType::Void, src, none()});
  }
  /// With or without the barrier in between.
  void finish(bool waits) {
    NodeRef minus = g().intern({Op::Neg, DType::I32, std::span(&id, 1)});
    const NodeRef sum[] = {i32(1), minus};
    NodeRef other = g().intern({Op::Add, DType::I32, sum});
    const NodeRef from[] = {memory, other};
    NodeRef load = g().intern({Op::Load, DType::I32, from});
    const int64_t slot[] = {0};
    NodeRef out = g().intern({Op::Param, DType::I32, {}, slot});
    add({i32(1), i32(2), id, memory, store(memory, id, id)});
    if (waits) add({barrier});
    add({minus, other, load, out, store(out, id, load)});
  }
};

TEST(Groups, ARaceInLocalMemoryIsFound) {
  Exchange sound;
  sound.finish(true);
  EXPECT_FALSE(find_program_problem(sound.program));
  const Buffers got = run_program(sound.program, {zeros(DType::I32, 2)});
  EXPECT_EQ(got[0][0].as_int(), 1);
  EXPECT_EQ(got[0][1].as_int(), 0);
  Exchange racing;
  racing.finish(false);
  const auto found = find_program_problem(racing.program);
  ASSERT_TRUE(found) << "whoever compiles it is told";
  EXPECT_EQ(
      found->what,
      "a data race: item 0 of a group reads element 1 of local memory, which item 1 writes, and "
      "no barrier lies between");
  EXPECT_THROW(run_program(racing.program, {zeros(DType::I32, 2)}), InternalError);
}

TEST(Groups, ABarrierThatSomeItemsMissIsRefused) {
  Exchange e;
  NodeRef size = e.id;  // one item runs no iteration, the other one
  const int64_t ints[] = {0, 0};
  NodeRef range = e.g().intern({Op::Range, DType::I32, std::span(&size, 1), ints});
  NodeRef end = e.g().intern({Op::EndRange, DType::Void, std::span(&range, 1)});
  e.add({e.i32(2), e.id, range, e.barrier, end});
  const auto found = find_program_problem(e.program);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "not every item of a group comes to it equally often");
  EXPECT_THROW(run_program(e.program, {zeros(DType::I32, 2)}), InternalError) << "and does not run";
}

TEST(Groups, AShuffleThatSomeItemsMissIsRefused) {
  Exchange e;
  const int64_t mask[] = {1};
  NodeRef zero = e.i32(0), last[] = {e.id, zero};
  NodeRef condition = e.g().intern({Op::Ne, DType::Bool, last});
  NodeRef open = e.g().intern({Op::If, DType::Void, std::span(&condition, 1)});
  NodeRef shuffle = e.g().intern({Op::Shuffle, DType::I32, std::span(&e.id, 1), mask});
  NodeRef close = e.g().intern({Op::EndIf, DType::Void, std::span(&open, 1)});
  e.add({e.i32(2), e.id, zero, condition, open, shuffle, close});
  const auto found = find_program_problem(e.program);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, "not every item of a group comes to it equally often");
}

}  // namespace
}  // namespace weft::test
